"""The driver: what it accepts and refuses, names, dumps, timings."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from host_tools import build, machine, mlp, mlp_arguments, mlp_reference, op, sym, tensor

import supple
from supple.driver import PIPELINE
from supple.error import DiagnosticError, NotSupportedError
from supple.ir.expr import Var
from supple.ir.graph import Function, SeqExpr
from supple.script import from_source
from supple.script import tirx as T


def doubled():
    n = sym("n")
    return build([Var("x", tensor(n))], lambda bb, x: bb.emit(op("add", x, x)), "doubled")


def test_a_bare_function_is_reachable_as_main():
    vm = machine(doubled()["doubled"])
    x = np.ones(3, "f4")
    np.testing.assert_array_equal(vm["doubled"](x), x + x)
    np.testing.assert_array_equal(vm["main"](x), x + x)
    for name in ("doubled", "main"):
        for bad in (x.astype("f8"), np.ones((3, 1), "f4")):
            with pytest.raises(supple.error.ArgumentError, match="doubled: parameter x"):
                vm[name](bad)
    whole = machine(doubled())
    assert "main" not in whole
    assert whole.module.functions == ["doubled"]


def test_private_functions_cannot_be_called():
    ex = supple.compile(mlp(1))
    assert ex.functions == ["main"]
    with pytest.raises(KeyError, match="no function 'matmul'"):
        ex["matmul"]


def test_several_public_functions_in_one_executable():
    mod = doubled()
    n = sym("n")
    mod = build([Var("x", tensor(n))], lambda bb, x: bb.emit(op("multiply", x, x)), "squared", mod=mod)
    vm = machine(mod)
    x = np.arange(3, dtype="f4")
    np.testing.assert_array_equal(vm["doubled"](x), x + x)
    np.testing.assert_array_equal(vm["squared"](x), x * x)


def test_names_of_any_spelling():
    n = sym("n")
    for name in ("été", "a b", 'quo"te', "x.y", "1st"):
        f = machine(build([Var("x", tensor(n))], lambda bb, x: bb.emit(op("add", x, x)), name))[name]
        np.testing.assert_array_equal(f(np.ones(2, "f4")), [2, 2])


def test_what_is_refused():
    with pytest.raises(TypeError, match="expected an IRModule or a function, got list"):
        supple.compile([])
    with pytest.raises(ValueError, match="cuda"):
        supple.compile(mlp(1), target="cuda")
    with pytest.raises(NotSupportedError, match="not this machine"):
        supple.compile(mlp(1), target="llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=generic")
    with pytest.raises(TypeError, match="expected an Executable"):
        supple.relax.VirtualMachine(mlp(1))
    with pytest.raises(TypeError, match="expected a device"):
        supple.relax.VirtualMachine(supple.compile(mlp(1)), "cpu")
    loose = Var("loose", tensor(3))
    x = Var("x", tensor(3))
    with pytest.raises(DiagnosticError, match="loose"):
        supple.compile(Function((x,), SeqExpr((), loose), tensor(3), True, {"global_symbol": "main"}))


def test_every_step_is_timed_and_has_a_reason():
    ex = supple.compile(mlp(1))
    for step in PIPELINE:
        assert step.reason
        assert ex.timings[step.name] >= 0
    for name in ("kernels", "llvm kernels", "host", "llvm host", "load"):
        assert ex.timings[name] > 0


def test_dumps_follow_the_pipeline(tmp_path):
    supple.compile(mlp(1), dump=tmp_path)
    names = sorted(p.name for p in tmp_path.iterdir())
    assert names[: 1 + len(PIPELINE)] == [
        "00_input.py", *(f"{i:02d}_{step.name}.py" for i, step in enumerate(PIPELINE, 1))
    ]  # fmt: skip
    for path in sorted(tmp_path.glob("*.py")):
        again = supple.script.from_source(path.read_text())
        args = mlp_arguments(2, 1)
        np.testing.assert_allclose(machine(again)["main"](*args), mlp_reference(*args), rtol=1e-4, atol=1e-4)
    assert any(name.endswith("host.txt") for name in names)
    assert any(name.endswith("host.ll") for name in names)


def test_garbage_collection_is_as_before():
    before = gc.get_threshold()
    supple.compile(mlp(1))
    assert gc.get_threshold() == before
    with pytest.raises(TypeError):
        supple.compile(5)
    assert gc.get_threshold() == before


def test_threads_may_compile_at_once():
    before = gc.get_threshold()
    failures = []

    def work(layers):
        try:
            args = mlp_arguments(3, layers)
            np.testing.assert_allclose(machine(mlp(layers))["main"](*args), mlp_reference(*args), rtol=1e-3, atol=1e-3)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(layers,)) for layers in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert gc.get_threshold() == before


def test_the_host_code_reads_well():
    text = supple.compile(mlp(1)).as_text()
    assert "main(x: Tensor((n, 16), float32)" in text
    assert "require w0.0 == 16" in text
    assert "kernel kernel" in text


def test_one_kernel_for_equal_loop_functions():
    ex = supple.compile(mlp(4))
    layers = len(ex.program.objects) - 1
    assert layers <= 4  # matmul, add, relu; not one of each a layer
    args = mlp_arguments(3, 4)
    np.testing.assert_allclose(ex["main"](*args), mlp_reference(*args), rtol=1e-3, atol=1e-3)


@T.prim_func
def public_loop(X: T.Buffer((4,), "float32"), Y: T.Buffer((4,), "float32")):
    for i in T.serial(4):
        Y[i] = X[i] + T.float32(1)


def test_loop_functions_alone():
    y = np.zeros(4, "f4")
    machine(public_loop)["public_loop"](np.ones(4, "f4"), y)
    np.testing.assert_array_equal(y, [2, 2, 2, 2])


def test_an_executable_calls_main_or_its_only_function() -> None:
    source = """
from supple.script import ir as I, relax as R, tirx as T

@I.ir_module
class M:
    @R.function
    def {first}(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.add(x, x)

    @R.function
    def {second}(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.negative(x)
"""
    x = np.ones(2, "float32")
    np.testing.assert_array_equal(supple.compile(from_source(source.format(first="f", second="main")))(x), -x)
    with pytest.raises(TypeError, match=r"expected main, or one function alone, found f, g; .*executable\['f'\]"):
        supple.compile(from_source(source.format(first="f", second="g")))(x)
    loops = from_source(
        """
from supple.script import tirx as T

@T.prim_func
def add_one(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
    for i in range(2):
        B[i] = A[i] + T.float32(1)
"""
    )
    out = np.zeros(2, "float32")
    supple.compile(loops)(x, out)
    np.testing.assert_array_equal(out, x + 1)
