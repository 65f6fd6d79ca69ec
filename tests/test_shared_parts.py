"""Programs whose expressions share parts: 40 doublings are 2**40 paths, so that a walk without memory never ends.
That these tests finish is what they test."""

# ruff: noqa: B023 - a program reads its variables while it is parsed

import copy
import pickle

import numpy as np
import pytest
from kernel_tools import run as run_kernel

import supple
from supple import arith, relax, te, tirx
from supple.base.errors import DiagnosticError, NotSupportedError, TextTooLongError
from supple.interp.loops import run_prim_func
from supple.ir.expr import Range
from supple.ir.serialize import load_json, save_json
from supple.ir.structural import structural_equal, structural_hash
from supple.script import from_source
from supple.script import tirx as T

DOUBLINGS = 40


def repeated(value, step, times=DOUBLINGS):
    """A value of which each step uses the one before several times."""
    for _ in range(times):
        value = step(value)
    return value


@T.prim_func
def sums(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("b"):
            vi = T.axis.spatial(8, i)
            B[vi] = repeated(A[vi], lambda v: (v + v) * T.float32(0.5))


@T.prim_func
def places(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[repeated(i, lambda v: T.max(v // 2, v % 3) + i) % 8]


@T.prim_func
def powers(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[repeated(T.Cast("int64", i), lambda v: v * v) % T.int64(8)]


@T.prim_func
def choices(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        with T.sblock("b"):
            vi = T.axis.spatial(8, i)
            B[vi] = repeated(A[vi], lambda v: T.if_then_else(vi < 4, T.fabs(v) + A[vi], T.fabs(v) - T.fabs(A[vi])))


@T.prim_func
def conditions(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = T.if_then_else(repeated(A[i] > T.float32(3), lambda v: T.And(T.Or(v, i > 5), v)), A[i], T.float32(0))


LOOPS = {"sums": sums, "places": places, "powers": powers, "choices": choices, "conditions": conditions}


@pytest.mark.parametrize("func", LOOPS.values(), ids=LOOPS)
def test_loop_functions(func):
    mod = supple.IRModule({"main": func})
    relax.analysis.well_formed(mod)
    for other in (copy.deepcopy(mod), pickle.loads(pickle.dumps(mod)), load_json(save_json(mod))):
        assert structural_equal(mod, other) and structural_hash(mod) == structural_hash(other)
    assert structural_equal(from_source(mod.script()), mod)  # shared parts have names in the text
    given = np.arange(1, 9, dtype="float32")
    results = []
    for vectorized in (True, False):
        made = np.zeros(8, "float32")
        run_prim_func(func, [given, made], vectorized=vectorized)
        results.append(made)
    for schedule in (True, False):
        made = np.zeros(8, "float32")
        run_kernel(func, [given, made], schedule=schedule)
        results.append(made)
    for made in results[1:]:
        np.testing.assert_array_equal(made, results[0])
    assert results[0].any()


def test_what_conditions_hide_again_and_again_is_refused_by_native_code():
    @T.prim_func
    def f(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = repeated(
                A[i],
                lambda v: T.if_then_else(
                    i < 4, T.if_then_else(i < 2, v, T.float32(0)), T.if_then_else(i < 6, v, T.float32(1))
                ),
            )

    with pytest.raises(NotSupportedError, match="the same parts under more than 10000 conditions"):
        run_kernel(f, [np.ones(8, "float32"), np.zeros(8, "float32")], schedule=False)


def test_compute_definitions():
    A = te.placeholder((8, 8), "float32", "A")
    k = te.reduce_axis((0, 8), "k")
    B = te.compute((8,), lambda i: te.sum(repeated(A[i, k], lambda v: (v + v) * T.float32(0.5)), axis=k), "B")
    made = np.zeros(8, "float32")
    run_kernel(te.create_prim_func([A, B]), [np.ones((8, 8), "float32"), made])
    np.testing.assert_array_equal(made, np.full(8, 8, "float32"))


def test_values_are_read_again_after_a_store():
    """The same node reads memory in two statements, and in both iterations of an unrolled loop."""

    @T.prim_func
    def f(A: T.Buffer((2,), "float32"), B: T.Buffer((4,), "float32")):
        first = T.meta_var(A[0] + A[1])
        for i in T.unroll(2):
            B[2 * i] = first + first
            A[0] = first
            B[2 * i + 1] = first

    def expected():
        a, found = [1.0, 2.0], []
        for _ in range(2):
            found.append(2 * (a[0] + a[1]))
            a[0] = a[0] + a[1]
            found.append(a[0] + a[1])
        return found

    for schedule in (True, False):
        made = np.zeros(4, "float32")
        run_kernel(f, [np.array([1, 2], "float32"), made], schedule=schedule)
        np.testing.assert_array_equal(made, expected())


def test_undefined_variables_among_shared_parts():
    """A variable of ``let`` is defined in its body only, also where the part that uses it stands outside too."""
    x = tirx.Var("x", "int32")
    shared = repeated(x, lambda v: v + v)
    inside = tirx.Let(x, tirx.IntImm("int32", 1), shared)
    out = tirx.decl_buffer((1,), "int32", name="out")

    def program(value):
        return tirx.PrimFunc([out], tirx.BufferStore(out, value, [0]))

    relax.analysis.well_formed(supple.IRModule({"main": program(inside)}))
    with pytest.raises(DiagnosticError, match="the variable x is not defined"):
        relax.analysis.well_formed(supple.IRModule({"main": program(inside + shared)}))


def test_dimensions():
    n = tirx.Var("n", "int64")
    for is_sum, step in ((True, lambda v: v + v), (False, lambda v: tirx.max(v // 3 * 5, v % 7 + n))):
        builder = relax.BlockBuilder()
        x = relax.Var("x", relax.TensorType((n,), "float32"))
        y = relax.Var("y", relax.TensorType((repeated(n, step),), "float32"))
        with builder.function("main", [x, y]):
            with builder.dataflow():
                out = builder.emit_output(builder.emit(relax.op.nn.relu(y)))
            builder.emit_func_output(out)
        mod = builder.get()
        relax.analysis.well_formed(mod)
        assert structural_equal(mod, load_json(save_json(mod)))
        assert repr(mod) == "<IRModule, too long to be written out>"
        with pytest.raises(TextTooLongError, match=r"would be written out with [0-9]{13,} parts"):
            mod.script()
        given = np.zeros(0, "float32")
        if is_sum:
            virtual_machine = relax.VirtualMachine(supple.compile(mod), supple.cpu())
            assert virtual_machine["main"](given, given).shape == (0,)


def test_nested_graph_expressions():
    x = relax.Var("x", relax.TensorType((2,), "float32"))
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(repeated(x, lambda v: relax.op.add(v, v)))
    mod = builder.get()
    assert len(mod["main"].body.blocks[0].bindings) == DOUBLINGS
    result = relax.VirtualMachine(supple.compile(mod), supple.cpu())["main"](np.ones(2, "float32"))
    np.testing.assert_array_equal(result, np.full(2, 2.0**DOUBLINGS, "float32"))
    nested = relax.Function([x], repeated(x, lambda v: relax.op.add(v, v)), x.ty)
    with pytest.raises(DiagnosticError, match="normal form"):
        relax.analysis.well_formed(supple.IRModule({"main": nested}))
    tuples = repeated(x, lambda v: relax.Tuple([v, v]))
    assert repr(tuples).endswith("too long to be written out>") and repr(tuples.ty).endswith("to be written out>")
    builder = relax.BlockBuilder()
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(tuples))
    relax.analysis.well_formed(builder.get())


@pytest.mark.parametrize(
    "step",
    [
        lambda v: v + v,
        lambda v: v * v,
        lambda v: v - (v + v),
        lambda v: tirx.max(v // 3, v % 7),
        lambda v: tirx.Select(v > 3, v + 1, v - 1),
        lambda v: (v << 1) | v,
    ],
)
def test_reasoning(step):
    i = tirx.Var("i", "int64")
    analyzer = arith.Analyzer()
    analyzer.bind(i, Range(0, 5))
    shared = repeated(i, step)
    analyzer.const_int_bound(shared)
    analyzer.modular_set(shared)
    analyzer.simplify(shared)
    assert analyzer.can_prove_equal(shared, repeated(i, step))
