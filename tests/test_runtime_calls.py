"""Calls into Python and back: packed functions, exceptions, threads, recursion; no Python per operator."""

from __future__ import annotations

import sys
import threading
import traceback

import numpy as np
import pytest
from host_tools import build, machine, mlp, mlp_arguments, mlp_reference, op, sym, tensor

import supple
from supple.base.errors import RegistryError
from supple.error import ExecutionError
from supple.ir.expr import EQ, Call, StringImm, Sub, Var, int64
from supple.ir.graph import Function, GlobalVar, If, SeqExpr, ShapeExpr, Tuple
from supple.ir.types import PrimType, prim_type
from supple.ops.calls import call_dps_packed, call_packed, call_pure_packed
from supple.runtime import ShapeTuple, Tensor


@pytest.fixture
def register():
    names = []

    def add(name, function):
        supple.register_global_func(name, function, override=True)
        names.append(name)
        return name

    yield add
    for name in names:
        supple.remove_global_func(name)


def calling(packed, n, name="main"):
    """``main(x: (n,)) = packed(x)``."""
    x = Var("x", tensor(n))
    return build([x], lambda bb, v: bb.emit(call_packed(packed, v, ty_args=tensor(n))), name, pure=False)


def count_python_calls(function, args):
    """Python-level call events during one native inference."""
    events = []
    function(*args)

    def hook(frame, event, _):
        if event == "call":
            events.append(frame.f_code.co_name)

    sys.setprofile(hook)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return len(events)


def test_no_python_frame_runs_per_operator():
    counts = [count_python_calls(machine(mlp(layers))["main"], mlp_arguments(3, layers)) for layers in (1, 2, 6)]
    per_argument = (counts[1] - counts[0]) / 2  # each layer has two more parameters to convert
    assert counts[2] - counts[1] == 8 * per_argument

    def chain(length):
        n = sym("n")

        def body(bb, x):
            for _ in range(length):
                x = bb.emit(op("add", x, x))
            return x

        return count_python_calls(machine(build([Var("x", tensor(n))], body))["main"], [np.ones(3, "f4")])

    assert chain(1) == chain(20)


def test_packed_functions_get_and_return_values(register):
    seen = []

    def echo(*values):
        seen.append(values)
        return values[0]

    n = sym("n")
    name = register("test.echo", echo)

    def body(bb, x):
        a = bb.emit(op("add", x, x))
        return bb.emit(
            call_packed(name, a, x, ShapeExpr((n, int64(2))), StringImm("text"), Tuple((x, a)), n, ty_args=tensor(n))
        )

    vm = machine(build([Var("x", tensor(n))], body, pure=False))
    x = np.arange(3, dtype="f4")
    out = vm["main"](x)
    np.testing.assert_array_equal(out, x + x)
    a, given, shape, text, pair, number = seen[0]
    assert isinstance(a, Tensor)
    assert isinstance(given, Tensor)
    assert np.shares_memory(np.asarray(given), x)
    assert shape == (3, 2)
    assert isinstance(shape, ShapeTuple)
    assert (text, number) == ("text", 3)
    assert [type(v) for v in pair] == [Tensor, Tensor]
    kept = np.array(a)
    vm["main"](np.zeros(7, "f4"))
    np.testing.assert_array_equal(np.asarray(a), kept)  # what Python keeps is its own


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones(4, "f4"), r"result of packed function test.wrong: expected Tensor\(\(n,\), float32\), got "
         r"dimension 0 = 4: n is 3 \(x.shape\[0\]\) and 4"),
        (np.ones(3, "f8"), "got a tensor of float64 with 1 dimensions"),
        (np.ones((3, 1), "f4"), "got a tensor of float32 with 2 dimensions"),
        (5, r"got a number \(int64\)"),
        (None, "got a tuple"),
        ("text", "got a string or another Python object"),
    ],
)  # fmt: skip
def test_packed_results_are_checked(register, value, message):
    name = register("test.wrong", lambda x: value)
    n = sym("n")
    vm = machine(calling(name, n))
    with pytest.raises(ExecutionError, match=message):
        vm["main"](np.ones(3, "f4"))


def test_packed_results_of_every_kind(register):
    n = sym("n")
    x = np.arange(6, dtype="f4").reshape(3, 2)
    marker = object()
    cases = [None, True, 5, 2.5, "s", marker, (1, (2.0, "a")), [1, 2], ShapeTuple((3, 4)), np.float32(1.5)]
    expected = [(), True, 5, 2.5, "s", marker, (1, (2.0, "a")), (1, 2), (3, 4), 1.5]
    box = []
    name = register("test.kinds", lambda v: box[-1])
    vm = machine(build([Var("x", tensor(n, 2))], lambda bb, v: bb.emit(call_packed(name, v)), pure=False))
    for value, wanted in zip(cases, expected, strict=True):
        box.append(value)
        result = vm["main"](x)
        assert result is marker if wanted is marker else result == wanted
    box.append(x.T)
    np.testing.assert_array_equal(vm["main"](x), x.T)
    box.append(x[::2])
    np.testing.assert_array_equal(vm["main"](x), x[::2])
    for bad in (np.array(["a"]), x.astype(">f4"), 2**70):
        box.append(bad)
        with pytest.raises((TypeError, OverflowError)):
            vm["main"](x)
    name2 = register("test.same", lambda v: v)
    same = call_pure_packed
    vm = machine(build([Var("x", tensor(n, 2))], lambda bb, v: bb.emit(same(name2, v, ty_args=tensor(n, 2)))))
    assert np.shares_memory(vm["main"](x), x)


def test_destination_passing_into_python(register):
    def fill(x, out):
        np.asarray(out)[...] = np.asarray(x) * 3

    name = register("test.fill", fill)
    n = sym("n")
    vm = machine(build([Var("x", tensor(n))], lambda bb, x: bb.emit(call_dps_packed(name, Tuple((x,)), tensor(n)))))
    np.testing.assert_array_equal(vm["main"](np.arange(4, dtype="f4")), [0, 3, 6, 9])


def test_exceptions_pass_through_native_frames(register):
    def raise_it(x):
        raise LookupError("deep inside")

    name = register("test.raise", raise_it)
    n = sym("n")
    mod = calling(name, n, "inner")
    inner = mod.get_global_var("inner")
    mod = build([Var("x", tensor(n))], lambda bb, x: bb.emit(Call(inner, (x,))), mod=mod, pure=False)
    vm = machine(mod)
    with pytest.raises(LookupError, match="deep inside") as error:
        vm["main"](np.ones(2, "f4"))
    assert any(frame.name == "raise_it" for frame in traceback.extract_tb(error.value.__traceback__))
    with pytest.raises(KeyboardInterrupt):
        supple.register_global_func("test.raise", lambda x: (_ for _ in ()).throw(KeyboardInterrupt()), override=True)
        vm["main"](np.ones(2, "f4"))
    supple.register_global_func("test.raise", lambda x: x, override=True)
    np.testing.assert_array_equal(vm["main"](np.ones(2, "f4")), [1, 1])


def test_a_missing_packed_function_is_named(register):
    register("test.present", len)
    n = sym("n")
    vm = machine(calling("test.presnt", n))
    with pytest.raises(RegistryError, match=r"test.presnt.*did you mean 'test.present'"):
        vm["main"](np.ones(2, "f4"))


def test_print_prints(capsys):
    n = sym("n")

    def body(bb, x):
        bb.emit(op("print", x))
        bb.emit(op("print", x, n, format="{0} of {1}"))
        return x

    machine(build([Var("x", tensor(n))], body, pure=False))["main"](np.ones(2, "f4"))
    assert capsys.readouterr().out == "[1. 1.]\n[1. 1.] of 2\n"


def test_reentrant_calls(register):
    n = sym("n")
    depth = []

    def again(x):
        depth.append(len(depth))
        return vm["main"](np.asarray(x)) if len(depth) < 5 else x

    name = register("test.again", again)

    def body(bb, x):
        y = bb.emit(op("add", x, x))
        return bb.emit(call_packed(name, y, ty_args=tensor(n)))

    vm = machine(build([Var("x", tensor(n))], body, pure=False))
    np.testing.assert_array_equal(vm["main"](np.ones(3, "f4")), np.full(3, 32))


def test_threads_share_an_executable():
    vm = machine(mlp(3, 32))
    failures = []

    def work(seed):
        try:
            for i in range(30):
                args = mlp_arguments((seed * 7 + i) % 40, 3, 32, seed)
                np.testing.assert_allclose(vm["main"](*args), mlp_reference(*args), rtol=1e-3, atol=1e-3)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def countdown(step):
    """``f(k, x) = x if k == 0 else f(k - step, x + x)``."""
    k = Var("k", prim_type("int64"))
    x = Var("x", tensor(3))
    f = GlobalVar("f", supple.relax.FuncType((PrimType("int64"), tensor(3)), tensor(3)))
    mod = build([Var("x", tensor(3))], lambda bb, v: bb.emit(op("add", v, v)), "double", private=True)
    double = mod.get_global_var("double")
    y = Var("y", tensor(3))
    again = Var("again", tensor(3))
    result = Var("result", tensor(3))
    binding = supple.relax.VarBinding
    block = supple.relax.BindingBlock
    other = SeqExpr(
        (
            block((
                binding(y, Call(double, (x,), ty=tensor(3))),
                binding(again, Call(f, (Sub(k, int64(step)), y), ty=tensor(3))),
            )),
        ),
        again,
    )  # fmt: skip
    branch = If(EQ(k, int64(0)), SeqExpr((), x), other, ty=tensor(3))
    body = SeqExpr((block((binding(result, branch),)),), result)
    mod[f] = Function((k, x), body, tensor(3), True, {"global_symbol": "f"})
    return mod


def test_recursion_is_native():
    f = machine(countdown(1))["f"]
    np.testing.assert_array_equal(f(10, np.ones(3, "f4")), np.full(3, 1024))
    x = np.ones(3, "f4")
    assert f(0, x) is x


def test_endless_recursion_is_an_error():
    f = machine(countdown(0))["f"]
    before = supple.runtime.native.live_objects()
    with pytest.raises(RecursionError, match="f: compiled functions call each other too deeply"):
        f(1, np.zeros(3, "f4"))
    assert supple.runtime.native.live_objects() == before
    assert supple.runtime.native.live_arenas() == 0
    errors = []

    def work():
        try:
            f(1, np.zeros(3, "f4"))
        except RecursionError as error:
            errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(errors) == 1


def test_endless_reentry_is_an_error(register):
    def again(x):
        return vm["main"](x)

    name = register("test.endless", again)
    n = sym("n")
    vm = machine(calling(name, n))
    with pytest.raises(RecursionError):
        vm["main"](np.ones(3, "f4"))


def test_a_scalar_result(register):
    name = register("test.sum", lambda x: float(np.asarray(x).sum()))
    n = sym("n")
    double = PrimType("float64")
    vm = machine(build([Var("x", tensor(n))], lambda bb, x: bb.emit(call_packed(name, x, ty_args=double)), pure=False))
    assert vm["main"](np.ones(3, "f4")) == 3.0
