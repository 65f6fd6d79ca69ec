"""relax.ExecBuilder: programs of instructions, their text, their checks, and the functions they start from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import supple
from supple import relax
from supple.base.dtypes import DataType
from supple.base.errors import ArgumentError, ExecutionError, NotSupportedError
from supple.relax.exec_builder import VMFuncKind
from supple.relax.testing.runtime_builtin import MakeShapeCode, MatchShapeCode
from supple.runtime import ShapeTuple, tensor

TEXT = """\
@twice:
  call  eb.add           in: %0, %0       dst: %1
  ret   %1

@main:
  call  eb.seen          in: i-3, c[0], %0, c[1], c[2], f[twice], %vm, %void dst: %void
  call  eb.flag          in: %0           dst: %2
  If    %2, 3
  call  eb.add           in: %0, %1       dst: %3
  goto  2
  call  eb.mul           in: %0, %1       dst: %3
  call  twice            in: %3           dst: %4
  ret   %4

@eb.seen packed_func;

@eb.flag packed_func;

@eb.add packed_func;

@eb.mul packed_func;

"""

PYTHON = """\
ib = rx.Builder()
with ib.function("twice", num_inputs=1):
    ib.emit_call("eb.add", args=[ib.r(0), ib.r(0)], dst=ib.r(1))
    ib.emit_ret(ib.r(1))
with ib.function("main", num_inputs=2):
    ib.emit_call("eb.seen", args=[ib.imm(-3), ib.c(0), ib.r(0), ib.c(1), ib.c(2), ib.f("twice"), ib.vm_state(), ib.void_arg()])
    ib.emit_call("eb.flag", args=[ib.r(0)], dst=ib.r(2))
    ib.emit_if(ib.r(2), 3)
    ib.emit_call("eb.add", args=[ib.r(0), ib.r(1)], dst=ib.r(3))
    ib.emit_goto(2)
    ib.emit_call("eb.mul", args=[ib.r(0), ib.r(1)], dst=ib.r(3))
    ib.emit_call("twice", args=[ib.r(3)], dst=ib.r(4))
    ib.emit_ret(ib.r(4))
"""  # noqa: E501

SEEN: list[tuple[Any, ...]] = []


@pytest.fixture(autouse=True)
def functions() -> Iterator[None]:
    made: dict[str, Callable[..., Any]] = {
        "eb.add": lambda a, b: tensor(a.numpy() + b.numpy()),
        "eb.mul": lambda a, b: tensor(a.numpy() * b.numpy()),
        "eb.flag": lambda a: bool(a.numpy().sum() > 0),
        "eb.seen": lambda *args: SEEN.append(args),
        "eb.less": lambda a, n: int(a.numpy().max() < n),
    }
    for name, function in made.items():
        supple.register_global_func(name, function, override=True)
    yield
    SEEN.clear()
    for name in made:
        supple.remove_global_func(name)


def branching() -> Any:
    ib = relax.ExecBuilder()
    ib.declare_function("twice", VMFuncKind.VM_FUNC)
    with ib.function("main", num_inputs=2, param_names=["x", "y"]):
        given = [
            ib.imm(-3),
            ib.convert_constant(ShapeTuple([1, 2])),
            ib.r(0),
            (3, 4),
            DataType("float32"),
            ib.f("twice"),
        ]
        ib.emit_call("eb.seen", args=[*given, ib.vm_state(), ib.void_arg()])
        ib.emit_call("eb.flag", args=[ib.r(0)], dst=ib.r(9))
        ib.emit_if(ib.r(9), 3)
        ib.emit_call("eb.add", args=[ib.r(0), ib.r(1)], dst=ib.r(5))
        ib.emit_goto(2)
        ib.emit_call("eb.mul", args=[ib.r(0), ib.r(1)], dst=ib.r(5))
        ib.emit_call("twice", args=[ib.r(5)], dst=ib.r(7))
        ib.emit_ret(ib.r(7))
    with ib.function("twice", num_inputs=1):
        ib.emit_call("eb.add", args=[ib.r(0), ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    return ib.get()


def test_text_and_python():
    made = branching()
    assert made.as_text() == TEXT
    assert made.as_python() == PYTHON
    assert "Globals (#6): [twice, main, eb.seen, eb.flag, eb.add, eb.mul]" in made.stats()


def test_a_machine_runs_instructions():
    vm = relax.VirtualMachine(branching(), supple.cpu())
    x, y = np.array([1, 2], "float32"), np.array([3, 5], "float32")
    np.testing.assert_array_equal(vm["main"](x, y).numpy(), [8, 14])
    np.testing.assert_array_equal(vm["main"](tensor(-x), y=tensor(y)).numpy(), [-6, -20])
    number, shape, _, pair, dtype, twice, machine, nothing = SEEN[0]
    assert (number, shape, pair, dtype, machine, nothing) == (-3, (1, 2), (3, 4), "float32", vm, None)
    np.testing.assert_array_equal(twice(x).numpy(), [2, 4])
    vm.set_input("main", x, y)
    vm.invoke_stateful("main")
    np.testing.assert_array_equal(vm.get_outputs("main").numpy(), [8, 14])
    vm.save_function("main", "saved", x, y)
    np.testing.assert_array_equal(vm["saved"]().numpy(), [8, 14])
    called: list[str] = []
    vm.set_instrument(lambda function, name, before, result, *args: called.append(name) if before else None)
    vm["main"](x, y)
    assert called == ["eb.seen", "eb.flag", "eb.add", "eb.add"]
    with pytest.raises(ArgumentError, match=r"main: expected 2 arguments \(x, y\), got 1"):
        vm["main"](x)
    with pytest.raises(KeyError, match="no function 'mian'; did you mean 'main'"):
        vm["mian"]
    with pytest.raises(NotSupportedError, match="no native code to export"):
        branching().export_library("x.so")


def test_a_loop():
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=1):
        ib.emit_call("eb.less", args=[ib.r(0), ib.imm(100)], dst=ib.r(1))
        ib.emit_if(ib.r(1), 3)
        ib.emit_call("eb.add", args=[ib.r(0), ib.r(0)], dst=ib.r(0))
        ib.emit_goto(-3)
        ib.emit_ret(ib.r(0))
    assert relax.VirtualMachine(ib.get())["main"](np.array([3], "int32")).numpy() == [192]


def test_shapes_on_a_heap():
    ib = relax.ExecBuilder()
    store, equal = MatchShapeCode.STORE_TO_HEAP, MatchShapeCode.ASSERT_EQUAL_TO_IMM
    with ib.function("main", num_inputs=1):
        ib.emit_call("vm.builtin.alloc_shape_heap", args=[ib.vm_state(), ib.imm(2)], dst=ib.r(1))
        ib.emit_call(
            "vm.builtin.check_tensor_info", args=[ib.r(0), ib.imm(2), DataType("float32"), ib.convert_constant("x")]
        )
        codes = [ib.imm(c) for c in (2, store, 1, equal, 3)]
        ib.emit_call("vm.builtin.match_shape", args=[ib.r(0), ib.r(1), *codes, ib.convert_constant("x")])
        codes = [ib.imm(c) for c in (2, MakeShapeCode.USE_IMM, 3, MakeShapeCode.LOAD_SHAPE, 1)]
        ib.emit_call("vm.builtin.make_shape", args=[ib.r(1), *codes], dst=ib.r(2))
        ib.emit_call("vm.builtin.reshape", args=[ib.r(0), ib.r(2)], dst=ib.r(3))
        ib.emit_call("vm.builtin.make_tuple", args=[ib.r(3), ib.r(2)], dst=ib.r(4))
        ib.emit_ret(ib.r(4))
    vm = relax.VirtualMachine(ib.get())
    reshaped, shape = vm["main"](np.zeros((5, 3), "float32"))
    assert reshaped.shape == (3, 5) and shape == (3, 5)
    for wrong, message in (
        (np.zeros((5, 4), "float32"), "x: expected dimension 1 to be 3, got 4"),
        (np.zeros((5, 3), "int32"), "x: expected dtype float32, got int32"),
        (np.zeros(5, "float32"), "x: expected 2 dimensions, got 1"),
        (7, "x: expected a tensor, got 7"),
    ):
        with pytest.raises(ExecutionError, match=message):
            vm["main"](wrong)


def test_storage():
    ib = relax.ExecBuilder()
    with ib.function("main", num_inputs=0):
        args = [ib.vm_state(), (16,), ib.imm(0), DataType("uint8")]
        ib.emit_call("vm.builtin.alloc_storage", args=args, dst=ib.r(0))
        for n, offset in enumerate((0, 8, 12)):
            args = [ib.r(0), ib.imm(offset), (2,), DataType("float32")]
            ib.emit_call("vm.builtin.alloc_tensor", args=args, dst=ib.r(1 + n))
        ib.emit_ret(ib.r(1))
    with pytest.raises(ExecutionError, match="alloc_tensor: 8 bytes from 12 on, but the storage has 16"):
        relax.VirtualMachine(ib.get())["main"]()


def ends_with(build: Callable[[Any], None]) -> Callable[[], None]:
    def make() -> None:
        ib = relax.ExecBuilder()
        with ib.function("main", num_inputs=1):
            build(ib)
        ib.get()

    return make


REFUSED: dict[str, Callable[[Any], None]] = {
    "main: the function has no instructions": lambda ib: None,
    "main: the function runs over its end": lambda ib: ib.emit_call("eb.add", [ib.r(0), ib.r(0)], ib.r(0)),
    "main: instruction 0: register 5 is used but nothing defines it": lambda ib: ib.emit_ret(ib.r(5)),
    "main: instruction 0: the jump by 7 leaves": lambda ib: ib.emit_goto(7),
    "main: instruction 0: the jump by -1 leaves": lambda ib: ib.emit_if(ib.r(0), -1),
    "main: instruction 0: there is no constant 3": lambda ib: ib.emit_call("eb.add", [ib.c(3)]),
    "expected a register": lambda ib: ib.emit_ret(ib.imm(1)),
    "no place for a result": lambda ib: ib.emit_call("eb.add", [], ib.vm_state()),
    "expected an operand such as": lambda ib: ib.emit_call("eb.add", [1.5]),
    "is no operand": lambda ib: ib.emit_call("eb.add", [9 << 56]),
    "expected at least 0": lambda ib: ib.r(-1),
    "no function 'mian' yet; did you mean 'main'": lambda ib: ib.f("mian"),
    "'main' is defined already": lambda ib: ib.function("main", 1),
    "'other' begins inside 'main'": lambda ib: ib.function("other", 1),
    "does not fit in 56 bits": lambda ib: ib.imm(1 << 60),
    "declare_function: 'main' is a VM_FUNC already": lambda ib: ib.declare_function("main"),
    "'other' is declared but not defined": lambda ib: (
        ib.declare_function("other", VMFuncKind.VM_FUNC),
        ib.emit_ret(0),
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_run_is_refused(message: str):
    with pytest.raises((ValueError, TypeError), match=message.replace("(", "[(]")):
        ends_with(REFUSED[message])()


def test_emitting_needs_a_function():
    with pytest.raises(ValueError, match="emit should happen in a function scope"):
        relax.ExecBuilder().emit_ret(0)
    with pytest.raises(ValueError, match="3 inputs, but 1 param_names"):
        relax.ExecBuilder().function("f", 3, ["x"])


def test_data_types():
    vector = DataType("float16x4")
    assert vector == "float16x4" and (vector.bits, vector.lanes, vector.itemsize, vector.type_code) == (16, 4, 8, 2)
    assert DataType(np.dtype("int8")).with_lanes(2) == "int8x2" and DataType("bool").bits == 8
    with pytest.raises(TypeError, match="unknown dtype 'float33'; did you mean"):
        DataType("float33")


def test_functions_for_programs_of_instructions() -> None:
    ib = relax.ExecBuilder()
    with ib.function("f", num_inputs=2):
        ib.emit_call("test.vm.mul", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_call("test.vm.add", args=[ib.r(2), ib.r(1)], dst=ib.r(3))
        ib.emit_ret(ib.r(3))
    machine = relax.VirtualMachine(ib.get(), supple.cpu())
    a = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(machine["f"](tensor(a), tensor(a)).numpy(), a * a + a)
    with pytest.raises(AttributeError, match="no function"):
        machine["g"]
