"""Programs as users of Relax's API write them: types of operators on symbols, shape variables and unknown parts; the
builder's scopes; visitors and mutators with overridden methods; sizes that are equal by value."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import supple
from supple import relax, te, tirx, topi
from supple.error import DiagnosticError, FieldError, SuppleError
from supple.ir.structural import structural_equal, structural_hash
from supple.ir.walk import substitute
from supple.relax.expr_functor import PyExprMutator, PyExprVisitor, mutator, visitor
from supple.script import from_source
from supple.script import ir as I
from supple.script import relax as R
from supple.sym.simplify import evaluate

n, m, k, h, w = (tirx.Var(name, "int64") for name in "nmkhw")
op = relax.op


def x(*shape: Any, dtype: str = "float32") -> relax.Var:
    return relax.Var("x", relax.TensorType(shape, dtype))


def ranked(ndim: int = -1, dtype: str | None = "float32") -> relax.Var:
    return relax.Var("x", relax.TensorType(None, dtype, ndim))


def deduced(call: Any) -> Any:
    bb = relax.BlockBuilder()
    with bb.testing_scope([]):
        return bb.normalize(call).ty


def text(call: Any) -> str:
    return str(deduced(call)).replace("T.int64(", "(")


# ---------------------------------------------------------------------------------------------- sizes compare by value


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (n + m, m + n, True),
        (n * 1, n, True),
        (n - n + 3, 3, True),
        (n * 2, n + n, True),
        ((n - 1) // 2 + 1, (n + 1) // 2, True),
        (tirx.Max(n, tirx.const(0, "int64")), n, True),
        (n + m, n + n, False),
        (n + 1, n + 2, False),
        (n, m, False),
    ],
)
def test_dimensions_compare_by_value(one: Any, other: Any, equal: bool) -> None:
    for make in (lambda d: relax.TensorType((d, 4), "float32"), lambda d: relax.ShapeType((d,)), relax.ShapeExpr):
        given = (one, other) if make is not relax.ShapeExpr else ([one], [other])
        a, b = (make(g) for g in given)
        assert structural_equal(a, b) is equal
        if equal:
            assert structural_hash(a) == structural_hash(b)


def test_dimensions_compare_under_renaming() -> None:
    def function(first: Any, second: Any, size: Any) -> relax.Function:
        params = [relax.Var("a", relax.TensorType((first,))), relax.Var("b", relax.TensorType((second,)))]
        return relax.Function(params, relax.SeqExpr([], relax.ShapeExpr([size])), relax.ShapeType([size]))

    p, q = tirx.Var("p", "int64"), tirx.Var("q", "int64")
    same = function(n, m, n + m), function(p, q, q + p)
    assert structural_equal(*same) and structural_hash(same[0]) == structural_hash(same[1])
    assert not structural_equal(function(n, m, n + m), function(p, q, q + q))
    assert not structural_equal(function(n, m, n * 2 + m), function(p, q, p + q * 2))


def test_the_flag_of_blocks_does_not_count() -> None:
    source = "@T.prim_func{}\ndef f(A: T.Buffer((4,), 'float32')):\n    for i in range(4):\n"
    source += (
        "        with T.sblock('b'):\n            v = T.axis.spatial(4, i)\n            A[v] = A[v] + T.float32(1)\n"
    )
    plain, flagged = from_source(source.format("")), from_source(source.format("(s_tir=True)"))
    assert structural_equal(plain, flagged) and structural_hash(plain) == structural_hash(flagged)
    assert "s_tir=True" in plain.script(style="relax") and "s_tir" not in plain.script()


# --------------------------------------------------------------------------------------------------- operators' types

TYPES: list[tuple[Callable[[], Any], str]] = [
    (lambda: op.add(ranked(2, None), x(2, 3)), "R.Tensor(ndim=2)"),
    (lambda: op.matmul(x(2, 3), ranked(2, None)), "R.Tensor(ndim=2)"),
    (lambda: op.concat([x(2, 3), ranked(2, None)]), "R.Tensor(ndim=2)"),
    (lambda: relax.TupleGetItem(op.split(x(7, 3), 3), 2), 'R.Tensor((1, 3), dtype="float32")'),
    (lambda: relax.TupleGetItem(op.split(x(n, 3), 2), 0), 'R.Tensor(("(n + 1) // 2", 3), dtype="float32")'),
    (lambda: op.squeeze(x(n, 2), [0]), 'R.Tensor((2,), dtype="float32")'),
    (lambda: op.squeeze(x(3, 1), [0, 1]), 'R.Tensor((3,), dtype="float32")'),
    (lambda: op.repeat(x(2, n), 2), 'R.Tensor(("n * 4",), dtype="float32")'),
    (lambda: op.repeat(ranked(3), 2), 'R.Tensor(dtype="float32", ndim=1)'),
    (lambda: op.mean(x(2, 3, dtype="int8"), axis=1), 'R.Tensor((2,), dtype="int8")'),
    (lambda: op.variance(x(2, n, dtype="int32")), 'R.Tensor((), dtype="int32")'),
    (lambda: op.sum(ranked(1), axis=[0]), 'R.Tensor((), dtype="float32")'),
    (lambda: op.take(x(4, n), relax.Var("i", R.Prim("int64")), axis=0), 'R.Tensor((n,), dtype="float32")'),
    (lambda: op.take(x(4, n), relax.prim_value(1), axis=1), 'R.Tensor((4,), dtype="float32")'),
    (lambda: op.strided_slice(x(n, 9), [0], [1], [4]), 'R.Tensor(("T.min(4, n) - T.min(1, n)", 9), dtype="float32")'),
]


@pytest.mark.parametrize("case", range(len(TYPES)))
def test_types(case: int) -> None:
    made, expected = TYPES[case]
    wanted = (
        from_source(f"@R.function\ndef f(x: R.Tensor((\"n\",), 'int8'), y: {expected}):\n    return x").params[1].ty
    )
    ty = deduced(made())
    assert ty.dtype == wanted.dtype and ty.ndim == wanted.ndim and (ty.shape is None) == (wanted.shape is None)
    if ty.shape is not None:
        source, target = from_source_symbols(ty), from_source_symbols(wanted)
        assert source == target, str(ty)


def from_source_symbols(ty: Any) -> list[str]:
    """Dimensions as text, in a canonical form, so that symbols compare by their names."""
    analyzer = supple.arith.Analyzer()
    return [str(analyzer.simplify(d)).replace("T.int64(", "(") for d in ty.shape.values]


def with_shape(ty: relax.ShapeType) -> relax.Var:
    return relax.Var("x", relax.TensorType(relax.Var("s", ty), "float32"))


SHAPE_VARIABLES: list[tuple[Callable[[Any], Any], str]] = [
    (op.exp, "R.Tensor(s, "),
    (op.nn.softmax, "R.Tensor(s, "),
    (lambda v: op.add(v, v), "R.Tensor(s, "),
    (op.permute_dims, 'R.Tensor(dtype="float32", ndim=2)'),
    (lambda v: op.sum(v, axis=1), 'R.Tensor(dtype="float32", ndim=1)'),
    (lambda v: op.sum(v), 'R.Tensor((), dtype="float32")'),
    (lambda v: op.reshape(v, (3, 2)), 'R.Tensor((3, 2), dtype="float32")'),
    (op.flatten, 'R.Tensor(dtype="float32", ndim=1)'),
    (lambda v: op.concat([v, v]), 'R.Tensor(dtype="float32", ndim=2)'),
    (lambda v: op.expand_dims(v, 1), 'R.Tensor(dtype="float32", ndim=3)'),
    (lambda v: op.matmul(v, v), 'R.Tensor(dtype="float32", ndim=2)'),
    (op.shape_of, "R.Shape(ndim=2)"),
]


@pytest.mark.parametrize("case", range(len(SHAPE_VARIABLES)))
def test_a_variable_as_shape_gives_the_rank(case: int) -> None:
    made, expected = SHAPE_VARIABLES[case]
    assert text(made(with_shape(relax.ShapeType(ndim=2)))).startswith(expected)


def test_a_shape_that_is_a_variable_is_the_results_shape() -> None:
    s = relax.Var("s", relax.ShapeType(ndim=3))
    for made in (op.reshape(ranked(), s), op.broadcast_to(ranked(), s)):
        assert deduced(made).shape is s and deduced(made).ndim == 3
    assert relax.TensorType(s, "float32").ndim == 3
    with pytest.raises(ValueError, match="contradicts"):
        relax.TensorType(s, "float32", ndim=2)


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: op.broadcast_to(ranked(3), (2, 3)), "fewer dimensions"),
    (lambda: op.nn.nll_loss(x(2, 3), x(3, dtype="int64")), "one target for each prediction"),
    (lambda: op.nn.nll_loss(x(2, 3), x(2, dtype="int64"), x(4)), "one weight for each class"),
    (lambda: op.nn.conv2d_transpose(x(1, 3, 8, 8), x(3, 4, 3, 3), strides=2, output_padding=2), "output padding"),
    (lambda: op.ewise_fma(x(2), x(2), x(1)), "different shapes"),
    (lambda: op.dynamic_strided_slice(x(8), x(1, dtype="int32"), x(1, dtype="int64"), x(1, dtype="int64")), "int64"),
    (lambda: op.nn.max_pool2d(with_shape(relax.ShapeType(ndim=2))), "rank|dimensions"),
    (lambda: op.nn.conv2d(with_shape(relax.ShapeType((2, 3))), with_shape(relax.ShapeType((2, 3)))), "rank|dimensions"),
    (lambda: op.split(x(3), 5), "nothing is left"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refused(case: int) -> None:
    made, message = REFUSED[case]
    with pytest.raises(SuppleError, match=message) as caught:
        deduced(made())
    assert isinstance(caught.value, (RuntimeError, ValueError, TypeError))


def test_a_field_that_is_not_there() -> None:
    with pytest.raises(FieldError) as caught:
        deduced(relax.TupleGetItem(relax.Tuple([x(2)]), 3))
    assert isinstance(caught.value, IndexError) and isinstance(caught.value, TypeError)


# ------------------------------------------------------------------------------------------------------- the builder


def test_scopes_without_a_function() -> None:
    bb = relax.BlockBuilder()
    with bb.testing_scope(def_vars=[n]):
        assert str(bb.emit(op.add(x(n), x(n))).ty) == 'R.Tensor((n,), dtype="float32")'
    bb.begin_scope([x(n)])
    bb.end_scope()
    with pytest.raises(SuppleError, match="end_scope"):
        bb.end_scope()
    bb._begin_dataflow_block()
    bb.emit(op.exp(x(n)))
    block = bb._end_block()
    assert isinstance(block, relax.DataflowBlock) and len(block.bindings) == 1


def test_names_and_blocks() -> None:
    bb = relax.BlockBuilder()
    assert [bb.get_unique_name(name) for name in ("a", "a", "b", "a1", "a")] == ["a", "a1", "b", "a11", "a2"]
    a = x(2)
    with bb.function("main", [a]):
        assert not bb.current_block_is_dataflow()
        with bb.dataflow():
            assert bb.current_block_is_dataflow()
            out = bb.emit_output(op.exp(a))
        bb.emit_func_output(out)
    assert bb.finalize()["main"].ret_ty is not None


def test_parameters_are_said_once() -> None:
    a = x(2)
    for given, later in (([a], [a]), (None, None)):
        bb = relax.BlockBuilder()
        with pytest.raises(DiagnosticError, match="parameters"), bb.function("f", given):
            bb.emit_func_output(a, later)
    bb = relax.BlockBuilder()
    with bb.function("f"):
        bb.emit_func_output(bb.emit(op.exp(a)), [a])
    assert bb.finalize()["f"].params == (a,)


def test_compute_definitions_have_blocks_of_their_own_names() -> None:
    bb = relax.BlockBuilder()
    a = x(4, 4)

    def twice(t: Any) -> Any:
        first = te.compute((4, 4), lambda i, j: te.max(t[i, j], 0.0))
        return te.compute((4, 4), lambda i, j: first[i, j] + te.min(t[j, i], 1.0))

    with bb.function("main", [a]):
        y = bb.emit_te(twice, a)
        z = bb.emit_te(topi.add, y, 1.5)
        bb.emit_func_output(z)
    mod = bb.finalize()
    text = mod.script()
    assert 'T.sblock("compute")' in text and 'T.sblock("compute_1")' in text
    assert "sblock_alloc_buffer" not in mod["add"].script() and "T.float32(1.5)" in mod["add"].script()
    assert structural_equal(from_source(text), mod)


# ------------------------------------------------------------------------------------------- visitors and mutators


@I.ir_module
class Module:
    @R.function
    def helper(a: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        return a

    @R.function
    def main(c: R.Tensor((), "bool"), a: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        with R.dataflow():
            p = R.add(a, a)
            q = R.exp(p)
            R.output(q)
        if c:
            y = Module.helper(q)
        else:
            y = R.add(q, a)
        return y


def test_a_visitor_sees_definitions_and_uses_in_order() -> None:
    @visitor
    class Names(PyExprVisitor):
        def __init__(self) -> None:
            self.log: list[str] = []

        def visit_var_def_(self, var: Any) -> None:
            self.log.append(f"def {var.name}")

        def visit_dataflow_var_def_(self, var: Any) -> None:
            self.log.append(f"dataflow def {var.name}")

        def visit_var_(self, op: Any) -> None:
            self.log.append(op.name)

        def visit_dataflow_var_(self, op: Any) -> None:
            self.log.append(f"dataflow {op.name}")

    seen = Names()
    seen.visit_expr(Module["main"])
    start = ["def c", "def a", "a", "a", "dataflow def p", "dataflow p", "def q", "c"]
    assert seen.log[: len(start)] == start and seen.log[-1] == "y"


def test_branches_are_sequences() -> None:
    branch = relax.If(relax.Var("c", R.Tensor((), "bool")), x(2), x(2))
    assert isinstance(branch.true_branch, relax.SeqExpr) and isinstance(branch.false_branch, relax.SeqExpr)


class _Identity(PyExprMutator):
    pass


@mutator
class _Blocks(PyExprMutator):
    def visit_dataflow_block_(self, block: Any) -> Any:
        self.builder_._begin_dataflow_block()
        for binding in block.bindings:
            self.visit_binding(binding)
        return self.builder_._end_block()

    def visit_binding_block_(self, block: Any) -> Any:
        self.builder_._begin_binding_block()
        for binding in block.bindings:
            self.visit_binding(binding)
        return self.builder_._end_block()


@mutator
class _Sequences(PyExprMutator):
    def visit_seq_expr_(self, op: Any) -> Any:
        blocks = [self.visit_binding_block(block) for block in op.blocks]
        return relax.SeqExpr(blocks, self.visit_expr(op.body))


@mutator
class _Functions(PyExprMutator):
    def visit_function_(self, op: Any) -> Any:
        params = [self.visit_var_def(p) for p in op.params]
        return relax.Function(params, self.visit_with_new_scope(op.body), op.ret_ty, op.is_pure, op.attrs)


@mutator
class _Bindings(PyExprMutator):
    def visit_var_binding_(self, binding: Any) -> None:
        value = self.builder_.normalize(self.visit_expr(binding.value))
        var = self.with_type(self.visit_var_def(binding.var), value.ty)
        self.set_var_remap(binding.var, var)
        self.builder_.emit_normalized(relax.VarBinding(var, value))


@pytest.mark.parametrize("kind", [_Identity, _Blocks, _Sequences, _Functions, _Bindings])
def test_overridden_methods_rebuild_the_same_function(kind: Any) -> None:
    assert structural_equal(kind(Module).visit_expr(Module["main"]), Module["main"])


def test_a_mutator_renames_what_is_defined() -> None:
    @mutator
    class Rename(PyExprMutator):
        def visit_var_def_(self, var: Any) -> Any:
            return relax.Var(f"{var.name}_new", var.ty)

        def visit_dataflow_var_def_(self, var: Any) -> Any:
            return relax.DataflowVar(f"{var.name}_inner", var.ty)

    text = Rename(Module).visit_expr(Module["main"]).script()
    assert "p_inner = R.add(a_new, a_new)" in text and "q_new" in text and "if c_new" in text


def test_what_is_emitted_stands_before_the_binding() -> None:
    @mutator
    class Emit(PyExprMutator):
        def visit_call_(self, call: Any) -> Any:
            call = self.visit_expr_post_order(call)
            if call.op is relax.op.exp:
                return op.sin(self.builder_.emit(op.cos(call.args[0])))
            return call

    body = Emit(Module).visit_expr(Module["main"]).body
    assert [b.value.op.short_name for b in body.blocks[0].bindings] == ["add", "cos", "sin"]


# ---------------------------------------------------------------------------------------------------- rewriting, types


def test_a_rewriter_binds_what_it_replaces() -> None:
    @R.rewriter
    class Rewriter:
        @R.function
        def pattern(a: R.Tensor((3,), "float32"), b: R.Tensor((3,), "float32")):
            return R.add(a, b)

        @R.function
        def replacement(a: R.Tensor((3,), "float32"), b: R.Tensor((3,), "float32")):
            return R.call_pure_packed("my_add", a, b, ty_args=R.Tensor((3,), "float32"))

    @R.function
    def before(a: R.Tensor((3,), "float32"), b: R.Tensor((3,), "float32")):
        c = R.add(a, b)
        return R.add(c, b)

    @R.function
    def after(a: R.Tensor((3,), "float32"), b: R.Tensor((3,), "float32")):
        c = R.call_pure_packed("my_add", a, b, ty_args=R.Tensor((3,), "float32"))
        return R.call_pure_packed("my_add", c, b, ty_args=R.Tensor((3,), "float32"))

    assert structural_equal(Rewriter(before.with_attr("global_symbol", "f")), after.with_attr("global_symbol", "f"))


def test_types_as_bases() -> None:
    tensor = R.Tensor((2, 3), "float32")
    assert R.Tensor(ndim=2, dtype="float32").is_base_of(tensor) and not tensor.is_base_of(R.Tensor(ndim=2))
    assert R.Any().is_base_of(tensor) and not R.Shape().is_base_of(tensor)


def test_the_type_of_a_call() -> None:
    signature = R.Callable([R.Tensor((n, 2), "float32")], R.Tensor((n * 2,), "float32"))
    derive = relax.analysis.derive_call_ret_type
    call = relax.Call(relax.Var("f", signature), [x(3, 2)])
    assert str(derive(signature, call, relax.BlockBuilder())) == 'R.Tensor((6,), dtype="float32")'
    with pytest.raises(TypeError):
        derive(signature, relax.Call(relax.Var("f", signature), [x(3, 4)]))
    assert [s.name for s in relax.analysis.free_symbolic_vars(relax.ShapeExpr([n, m + 1, n]))] == ["n", "m"]


def test_a_field_of_a_pattern() -> None:
    pattern = relax.dpl.is_tuple([relax.dpl.wildcard(), relax.dpl.wildcard()])[0]
    pair = relax.Tuple([x(1), x(1)])
    assert pattern.match(relax.TupleGetItem(pair, 0)) and not pattern.match(relax.TupleGetItem(pair, 1))
    assert pattern.same_as(pattern) and not pattern.same_as(pattern.dup())


# ------------------------------------------------------------------------------------------------------------- scripts


def test_a_buffers_shape_names_a_parameter_that_follows() -> None:
    func = from_source(
        "@T.prim_func\ndef f(A: T.Buffer(('n', 'm'), 'float32'), B: T.Buffer((n, m), 'float32'), n: T.int32):\n"
        "    m = T.int32()\n    A[0, 0] = B[0, 0]\n"
    )
    first, second, size = func.params
    assert first.ty.shape[0] is second.ty.shape[0] is size and first.ty.shape[1] is second.ty.shape[1]


def test_a_pure_function_vouches_for_what_it_overwrites() -> None:
    source = """
@I.ir_module
class M:
    @T.prim_func(private=True)
    def double(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[i] = A[i] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = M
        {}
"""
    call = 'y = R.call_tir_inplace(cls.double, (x,), [0], out_ty=R.Tensor((4,), "float32"))'
    assert from_source(source.format(f"{call}\n        return y"))["main"].is_pure
    inside = f"with R.dataflow():\n            {call}\n            R.output(y)\n        return y"
    with pytest.raises(DiagnosticError, match="dataflow"):
        from_source(source.format(inside))


# --------------------------------------------------------------------------------------------------- nodes and modules


def test_fields_of_nodes() -> None:
    a, b = x(1), x(2)
    pair = relax.Tuple([a, b])
    assert pair[0] is a and pair[-1] is b and list(pair) == [a, b] and len(pair) == 2
    with pytest.raises(IndexError):
        pair[2]
    assert relax.TensorType(ndim=2).dtype == "float32" and relax.TensorType(ndim=2, dtype="").dtype is None


def test_what_a_module_or_function_has_not() -> None:
    for error in (KeyError, ValueError, SuppleError):
        with pytest.raises(error, match="no function 'nothing'"):
            Module.get_global_var("nothing")
    with pytest.raises(SuppleError, match="no one variable"):
        Module["main"].bind_symbolic_vars({"nothing": 1})


def test_a_loop_function_is_specialized() -> None:
    source = "@T.prim_func\ndef f(a: T.handle, b: T.handle, size: {}):\n"
    source += "    A = T.match_buffer(a, ({0},), 'float32')\n    B = T.match_buffer(b, ({0},), 'float32')\n"
    source += "    for i in range({0}):\n        B[i] = A[i]\n"
    general = from_source(source.replace("{}", "T.int32").replace("{0}", "size"))
    fixed = from_source(source.replace(", size: {}", "").replace("{0}", "8"))
    for key in ("size", general.params[2]):
        assert structural_equal(general.specialize({key: 8}), fixed)
    eight = tirx.decl_buffer((8,), "float32")
    by_buffer = general.specialize({general.params[0]: eight})
    assert [d.value for d in by_buffer.params[1].ty.shape] == [8]
    with pytest.raises(DiagnosticError, match="dimensions"):
        general.specialize({general.params[0]: 8})


def test_a_class_of_passes() -> None:
    @supple.transform.module_pass(opt_level=1, name="Mark")
    class Mark:
        def __init__(self, value: int) -> None:
            self.value = value

        def transform_module(self, mod: Any, ctx: Any) -> Any:
            return mod.with_attr("mark", self.value)

    made = Mark(7)
    assert made(Module).attrs["mark"] == 7 and made.value == 7
    assert (made.info.name, made.info.opt_level) == ("Mark", 1)


def test_the_alias_has_the_names() -> None:
    code = """
import supple.compat
supple.compat.install_as_tvm()
import numpy as np
import tvm, tvm_ffi
from tvm import relax, tirx
a = relax.Var("a", relax.TensorType((1,)))
assert tvm_ffi.structural_equal(a, a) and tvm_ffi.structural_hash(a) == tvm_ffi.structural_hash(a)
assert tvm_ffi.get_first_structural_mismatch(a, a) is None
assert tvm.ir.make_node("ir.DictAttrs", a=1) == {"a": 1}
assert tvm.device_from_target("llvm") == tvm.cpu() and tvm.runtime.convert([1, "a"]) == [1, "a"]
assert str(tirx.shift_left(tirx.Var("i", "int32"), 1)) == "i << 1"
from tvm.ir.instrument import PassTimingInstrument
from tvm.relax.distributed import DeviceMesh, DTensorType, Placement
from tvm.runtime import load_module
from tvm.support.utils import tempdir
from tvm.target import Target
assert repr(tvm.cuda(1)) == "device(type='cuda', index=1)" and tvm.runtime.cpu() == tvm.device("cpu")
assert Target({"kind": "llvm"}).kind.name == "llvm" and Target.current() is None
assert tvm.tirx.transform.prim_func_pass and relax.transform.dataflowblock_pass and tvm.instrument.pass_instrument
assert isinstance(relax.transform.function_pass(lambda f, m, c: f, opt_level=0), tvm.transform.Pass)
x = relax.Var("x", a.ty)
bb = relax.BlockBuilder()
with bb.function("main", [x]):
    bb.emit_func_output(relax.op.add(x, x))
with Target("llvm"), tempdir() as directory:
    tvm.compile(bb.get()).export_library(directory.relpath("m.so"))
    vm = relax.VirtualMachine(load_module(directory.relpath("m.so")), tvm.cpu())
    assert vm["main"](tvm.runtime.tensor(np.float32([2.0]), device=tvm.cpu())).numpy() == 4
assert relax.build(bb.get(), Target("llvm")) and relax.build(bb.get(), target={"kind": "llvm"})
for call in (lambda: relax.op.add(a, a, a), lambda: relax.BlockBuilder().emit(a), lambda: tvm.relax.op.nope):
    try:
        call()
    except (tvm.error.InternalError, TypeError, AttributeError) as error:
        print(type(error).__name__)
"""
    done = subprocess.run([sys.executable, "-"], input=code, capture_output=True, text=True)
    assert done.stdout.split() == ["TypeError", "DiagnosticError", "AttributeError"], done.stderr


# --------------------------------------------------------------------------------------------- maps of indices, buffers


def test_index_maps() -> None:
    blocks = tirx.IndexMap.from_func(lambda i, j: [i // 4, j, i % 4])
    i = tirx.Var("i", "int32")
    assert [str(e) for e in blocks.map_indices([i * 4 + 1, 2])] == ['T.Cast("int64", i)', "2", "T.int64(1)"]
    assert [str(e) for e in blocks.map_shape([17, 8])] == ["5", "8", "4"]
    assert structural_equal(blocks.map_shape([n, 8])[0], (n + 3) // 4)
    back = blocks.inverse([16, 8])
    assert [v.name for v in back.initial_indices] == ["axis0", "j", "axis2"]
    at = back.initial_indices
    assert structural_equal(back.final_indices[0], at[0] * 4 + at[2]) and back.final_indices[1] is at[1]
    assert blocks.is_equivalent_to(tirx.IndexMap.from_func(lambda a, b: [(a * 2) // 8, b, a % 4]))
    assert not blocks.is_equivalent_to(tirx.IndexMap.from_func(lambda a, b: [a // 4, b, b % 4]))
    assert not blocks.is_equivalent_to(tirx.IndexMap.from_func(lambda a, b: [a, b]))
    with pytest.raises(SuppleError, match="not one to one"):
        blocks.inverse([15, 8])
    with pytest.raises(ValueError, match="expected 2 extents"):
        blocks.map_shape([4])
    named = tirx.IndexMap.from_func(lambda a: [a // 4, a % 4], inverse_index_map=lambda a, b: [a * 4 + b])
    assert named.inverse([16]) is named.inverse_index_map
    assert str(tirx.IndexMap.from_func(lambda *at: at[::-1], ndim=2).initial_indices) == "(i_0, i_1)"
    with pytest.raises(TypeError, match="by position"):
        tirx.IndexMap.from_func(lambda *, a: [a])


@pytest.mark.parametrize(
    ("mapping", "shape"),
    [
        (lambda i: [i // 4, i % 4], (14,)),
        (lambda i: [i // 4, i % 4], (15,)),
        (lambda i: [i // 4, i % 4], (16,)),
        (lambda i, j: [i // 4, j // 8, i % 4, j % 8], (6, 11)),
        (lambda i, j: [j // 2, i, j % 2], (1, 5)),
        (lambda i: [i // 8, i // 2 % 4, i % 2], (11,)),
        (lambda i, j: [i * 5 + j], (3, 5)),
    ],
)
def test_padded_index_maps_by_counting(mapping: Any, shape: tuple[int, ...]) -> None:
    index_map = tirx.IndexMap.from_func(mapping)
    back, padding = index_map.non_surjective_inverse(shape)
    dims = tuple(int(d) for d in index_map.map_shape(shape))
    reached = {
        tuple(evaluate(e, {}) for e in index_map.map_indices([supple.tirx.const(x, "int64") for x in at])): at
        for at in np.ndindex(shape)
    }
    for at in np.ndindex(dims):
        values = dict(zip(back.initial_indices, at, strict=True))
        assert bool(holds(padding, values)) == (at not in reached), (at, padding)
        if at in reached:
            assert tuple(evaluate(e, values) for e in back.final_indices) == reached[at]


def holds(condition: Any, values: Any) -> bool:
    fixed = {v: tirx.const(x, "int64") for v, x in values.items()}
    return bool(supple.arith.Analyzer().simplify(substitute(condition, fixed)).value)


def test_tensors_move_by_an_index_map() -> None:
    blocks = tirx.IndexMap.from_func(lambda i, j: [i // 4, j, i % 4])
    data = np.arange(16, dtype="int32").reshape(8, 2)
    moved = blocks.map_tensor(supple.runtime.tensor(data))
    np.testing.assert_array_equal(moved.numpy(), data.reshape(2, 4, 2).transpose(0, 2, 1))
    assert isinstance(blocks.map_ndarray(data), np.ndarray)
    with pytest.raises(SuppleError, match="some places have no element"):
        blocks.map_tensor(data[:7])


def test_methods_of_buffers() -> None:
    i, j = tirx.Var("i", "int32"), tirx.Var("j", "int32")
    b = tirx.decl_buffer((4, 8), "float32", name="b")
    assert str(b.vload([i, j])) == "b[i, j]" and str(b.vload([i, j], "float32x4").ty.dtype) == "float32x4"
    assert str(b.vstore([i, 1], 2.0).value) == "T.float32(2.0)"
    assert str(b.offset_of([i, j])) == "(i * 8 + j,)" and str(b.offset_of([1, 2])) == "(10,)"
    strided = tirx.decl_buffer((4, 8), name="s", strides=[16, 1], elem_offset=i)
    assert str(strided.offset_of([i, j])) == "(i * 17 + j,)" and str(strided.elem_offset) == "i"
    assert str(strided.strides) == "(16, 1)" and strided.scope() == "global"
    assert [str(f.shape) for f in (b.get_flattened_buffer(), strided.get_flattened_buffer())] == ["(32,)", "(64,)"]
    line = tirx.decl_buffer((4,), name="c")
    assert line.get_flattened_buffer() is line and line.data_alignment == 64 and line.offset_factor == 1
    with pytest.raises(ValueError, match="b has 2 dimensions, got 1"):
        b.vload([i])
    with pytest.raises(TypeError, match="holds float32, asked for int32"):
        b.vload([i, j], "int32")
    assert str(b.access_ptr("rw", offset=4)).endswith('(T.type_annotation("float32"), b.data, 4, 28, 3)')
    assert str(strided.access_ptr("r", content_lanes=4)).endswith('x4"), s.data, i // 4, 16, 1)')
    with pytest.raises(ValueError, match="unknown access 'x'"):
        b.access_ptr("x")
    with pytest.raises(TypeError, match="only buffers have it"):
        i.vload([0])
