"""`VirtualMachine`: saved functions, inputs set ahead of a call, and timing."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import supple
from supple import relax
from supple.base.errors import ArgumentError, NotSupportedError
from supple.runtime import virtual_machine
from supple.runtime.native import live_objects
from supple.runtime.packed import list_global_func_names
from supple.runtime.virtual_machine import VMInstrumentReturnKind
from supple.script import from_source

X, Y = np.arange(6, dtype="float32").reshape(2, 3), np.ones((2, 3), "float32")
CALLS: list[Any] = []


@pytest.fixture
def vm() -> Any:
    mod = from_source(
        """from supple.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), y: R.Tensor(("n", 3), "float32")):
        z = R.subtract(x, y)
        return z

    @R.function
    def nothing():
        return R.shape([3])

    @R.function(pure=False)
    def counted(x: R.Tensor((2, 3), "float32")):
        y = R.call_packed("test.counted", x, ty_args=R.Tensor((2, 3), "float32"))
        return y
"""
    )
    supple.register_global_func("test.counted", lambda x: (CALLS.append(1), x)[1], override=True)
    CALLS.clear()
    yield supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())
    supple.remove_global_func("test.counted")


def test_inputs_are_set_ahead_of_the_call(vm: Any) -> None:
    with pytest.raises(ValueError, match="set_input"):
        vm.invoke_stateful("main")
    vm.set_input("main", X, y=Y)
    with pytest.raises(ValueError, match="has not run"):
        vm.get_outputs("main")
    assert vm.invoke_stateful("main") is None
    np.testing.assert_array_equal(vm.get_outputs("main"), X - Y)
    vm.set_input("main", Y, X)  # the earlier result belonged to other inputs
    with pytest.raises(ValueError, match="has not run"):
        vm.get_outputs("main")
    vm.invoke_stateful("nothing")  # needs none
    assert tuple(vm.get_outputs("nothing")) == (3,)


def test_wrong_arguments_are_refused_when_they_are_set(vm: Any) -> None:
    for args, named, message in (
        ((X,), {}, "no argument for y"),
        ((X, Y, Y), {}, "expected 2 arguments"),
        ((X,), {"z": Y}, "no parameter 'z'"),
    ):
        with pytest.raises(ArgumentError, match=message):
            vm.set_input("main", *args, **named)
        with pytest.raises(ArgumentError, match=message):
            vm.save_function("main", "saved", *args, **named)
    with pytest.raises(KeyError, match="main"):
        vm.set_input("mian", X, Y)


def test_a_function_is_saved_with_its_arguments(vm: Any) -> None:
    vm.save_function("main", "saved", X, Y)
    vm.save_function("main", "quiet", X, y=Y, include_return=False)
    assert "saved" in vm and "main" in vm and "other" not in vm
    np.testing.assert_array_equal(vm["saved"](), X - Y)
    assert vm["quiet"]() is None
    with pytest.raises(ValueError, match="already"):
        vm.save_function("main", "counted", X, Y)


def test_timing_calls_as_often_as_it_says(vm: Any) -> None:
    result = vm.time_evaluator("counted", supple.cpu(), number=3, repeat=4)(X)
    assert len(CALLS) == 1 + 3 * 4 and len(result.results) == 4
    assert 0 < result.min <= result.median <= result.max and result.min <= result.mean <= result.max
    assert "median" in str(result)
    vm.set_input("main", X, Y)
    assert vm.time_evaluator("invoke_stateful", supple.cpu(), number=2)("main").mean > 0
    np.testing.assert_array_equal(vm.get_outputs("main"), X - Y)
    for wrong in ({"number": 0}, {"repeat": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            vm.time_evaluator("main", supple.cpu(), **wrong)
    with pytest.raises(NotSupportedError, match="f_preproc"):
        vm.time_evaluator("main", supple.cpu(), f_preproc="cache_flush")


class Clock:
    """A clock that each counted call moves by a millisecond, and that sleeping moves."""

    def __init__(self) -> None:
        self.slept = 0.0

    def perf_counter(self) -> float:
        return len(CALLS) / 1000

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


def test_short_repeats_are_made_longer(vm: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(virtual_machine, "time", clock)
    options = {"number": 1, "repeat": 4, "min_repeat_ms": 20, "cooldown_interval_ms": 5, "repeats_to_cooldown": 2}
    result = vm.time_evaluator("counted", supple.cpu(), **options)(X)
    assert result.results == pytest.approx([0.001] * 4)
    assert len(CALLS) == 1 + 1 + 10 + 4 * 22  # to warm up, two that were too short, four of 22 ms
    assert clock.slept == pytest.approx(2 * 0.005)


def test_kept_results_do_not_outlive_the_machine() -> None:
    gc.collect()
    objects = live_objects()
    text = "from supple.script import relax as R\n@R.function\ndef f(x: R.Tensor((2, 3))):\n    return x\n"
    function = from_source(text)
    machine = supple.relax.VirtualMachine(supple.compile(function), supple.cpu())
    machine.set_input("f", X)
    machine.invoke_stateful("f")
    del machine
    gc.collect()
    assert live_objects() == objects


class TestInstruments:
    """`VirtualMachine.set_instrument`: every call of a loop or packed function is seen."""

    @staticmethod
    def module() -> supple.IRModule:
        return from_source(
            """
from supple.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def shifted(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32"), k: T.int64):
        for i in range(4):
            with T.sblock("y"):
                v = T.axis.spatial(4, i)
                y[v] = x[v] + T.Cast("float32", k)

    @R.function
    def main(x: R.Tensor((4,), "float32"), s: R.Shape(["k"])):
        k = T.int64()
        with R.dataflow():
            a = R.call_tir(Module.shifted, (x,), out_ty=R.Tensor((4,), "float32"), tir_vars=R.shape([k]))
            b = R.call_pure_packed("vm_test.twice", a, ty_args=R.Tensor((4,), "float32"))
            c = R.sort(b, descending=True)
            R.output(c)
        return c
"""
        )

    def test_calls_are_shown_and_may_be_left_out(self) -> None:
        supple.register_global_func("vm_test.twice", lambda a: supple.runtime.tensor(2 * a.numpy()), override=True)
        vm = relax.VirtualMachine(supple.compile(self.module()), supple.cpu())
        x, expected = np.arange(4, dtype="f4"), np.array([16, 14, 12, 10], "f4")
        seen: list[tuple[str, bool, int]] = []

        def look(function: object, name: str, before: bool, result: object, *args: object) -> int:
            assert callable(function)
            seen.append((name, before, len(args)))
            if not before and name == "vm_test.twice":
                assert np.array_equal(result.numpy(), [10, 12, 14, 16])
            return VMInstrumentReturnKind.NO_OP

        plain = vm["main"]
        vm.set_instrument(look)
        np.testing.assert_array_equal(vm["main"](x, (5,)), expected)
        names = [(name, before) for name, before, _ in seen]
        assert names == [(n, b) for n in ("shifted", "vm_test.twice", "sort") for b in (True, False)]
        assert seen[0][2] == 3  # the input, the result, the number
        seen.clear()
        np.testing.assert_array_equal(plain(x, (5,)), expected)  # taken before
        vm.set_instrument(lambda function, name, before, *_: int(before and name == "shifted"))
        np.testing.assert_array_equal(vm["main"](x, (5,)), np.zeros(4, "f4"))
        vm.set_instrument(None)
        np.testing.assert_array_equal(vm["main"](x, (5,)), expected)
        assert not seen

    def test_an_exception_of_the_instrument_is_the_call_s(self) -> None:
        supple.register_global_func("vm_test.twice", lambda a: a, override=True)
        vm = relax.VirtualMachine(supple.compile(self.module()), supple.cpu())

        def fail(*_: object) -> None:
            raise KeyError("looked away")

        vm.set_instrument(fail)
        with pytest.raises(KeyError, match="looked away"):
            vm["main"](np.zeros(4, "f4"), (1,))

    def test_registered_names_go_with_the_machine(self) -> None:
        vm = relax.VirtualMachine(supple.compile(self.module()), supple.cpu())
        vm.set_instrument(lambda *_: None)
        prefix = "vm.instrument."
        assert any(name.startswith(prefix) for name in list_global_func_names())
        del vm
        gc.collect()
        assert not any(name.startswith(prefix) for name in list_global_func_names())

    def test_what_was_taken_while_instrumented_keeps_its_instrument(self) -> None:
        supple.register_global_func("vm_test.twice", lambda a: a, override=True)
        seen: list[str] = []
        vm = relax.VirtualMachine(supple.compile(self.module()), supple.cpu())
        vm.set_instrument(lambda _, name, *__: seen.append(name))
        taken, x = vm["main"], np.arange(4, dtype="f4")
        expected = taken(x, (5,))
        vm.set_instrument(None)
        seen.clear()
        np.testing.assert_array_equal(taken(x, (5,)), expected)
        assert seen
        del vm
        gc.collect()
        np.testing.assert_array_equal(taken(x, (5,)), expected)
        del taken
        gc.collect()
        assert not any(name.startswith("vm.instrument.") for name in list_global_func_names())

    def test_an_instrument_may_remove_itself_during_a_call(self) -> None:
        supple.register_global_func("vm_test.twice", lambda a: a, override=True)
        vm = relax.VirtualMachine(supple.compile(self.module()), supple.cpu())
        vm.set_instrument(lambda *_: vm.set_instrument(None))
        x = np.arange(4, dtype="f4")
        np.testing.assert_array_equal(vm["main"](x, (5,)), vm["main"](x, (5,)))

    def test_what_is_no_instrument_is_refused(self) -> None:
        vm = relax.VirtualMachine(supple.compile(self.module()), supple.cpu())
        with pytest.raises(TypeError, match="set_instrument: expected a function or None, got 3"):
            vm.set_instrument(3)  # type: ignore[arg-type]
        vm.set_instrument(lambda *_: 77)
        with pytest.raises(TypeError, match="expected None or a VMInstrumentReturnKind as its result, got 77"):
            vm["main"](np.zeros(4, "f4"), (1,))
