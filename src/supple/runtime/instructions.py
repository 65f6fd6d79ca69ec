"""Programs of virtual-machine instructions, made by hand: ``relax.ExecBuilder``.

A function has registers. An instruction calls a function on operands and puts the result into a register, jumps, or
returns. Compiled modules do not use them (they are native code); here instructions are interpreted one by one, so that
tests and tools can put a program together from registered functions.
"""

from __future__ import annotations

import enum
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.errors import ExecutionError, NotSupportedError
from supple.base.registry import did_you_mean
from supple.runtime.executable import RUNNING, function_named
from supple.runtime.packed import get_global_func
from supple.runtime.signature import in_order, wrong_count
from supple.runtime.tensor import ShapeTuple, Tensor

_KIND_SHIFT = 56
_VALUE_LIMIT = 1 << 55


class SpecialReg(enum.IntEnum):
    """Registers that are none: no value, and the machine that runs."""

    VOID_ARG = (1 << 54) + 0
    VM_STATE = (1 << 54) + 1


class VMFuncKind(enum.IntEnum):
    """What a name of an executable is: a registered function, or a function of instructions."""

    PACKED_FUNC = 0
    VM_FUNC = 1


class ArgKind(enum.IntEnum):
    """What an operand is; an operand is one int with the kind in its highest byte."""

    REGISTER = 0
    IMMEDIATE = 1
    CONSTANT = 2
    FUNCTION = 3


def _encode(kind: ArgKind, value: int) -> int:
    return (kind << _KIND_SHIFT) | (value & ((1 << _KIND_SHIFT) - 1))


def _decode(operand: int) -> tuple[ArgKind, int]:
    value = operand & ((1 << _KIND_SHIFT) - 1)
    if value >= _VALUE_LIMIT:
        value -= 1 << _KIND_SHIFT  # immediates have signs
    try:
        return ArgKind(operand >> _KIND_SHIFT), value
    except ValueError:
        raise ValueError(f"{operand} is no operand: make operands with r(), imm(), c(), f()") from None


@dataclass(frozen=True, slots=True)
class CallInstruction:
    """``dst = name(args)``; ``dst`` is a register, or `SpecialReg.VOID_ARG`."""

    name: str
    args: tuple[int, ...]
    dst: int


@dataclass(frozen=True, slots=True)
class Ret:
    """Return a register."""

    result: int


@dataclass(frozen=True, slots=True)
class Goto:
    """Go on ``offset`` instructions after this one."""

    offset: int


@dataclass(frozen=True, slots=True)
class If:
    """Go on with the next instruction where a register holds no zero, else ``false_offset`` after this one."""

    cond: int
    false_offset: int


Instruction = CallInstruction | Ret | Goto | If


@dataclass(frozen=True, slots=True)
class VMFunction:
    """A function of instructions; its first registers are its parameters."""

    name: str
    params: tuple[str, ...]
    code: tuple[Instruction, ...]
    registers: int


class InstructionExecutable:
    """What `ExecBuilder.get` makes; a `VirtualMachine` runs it. Functions are checked when it is made."""

    passes_machine = True
    watched = None

    def __init__(self, names: Mapping[str, VMFuncKind], functions: Sequence[VMFunction], constants: Sequence[Any]):
        self.names = dict(names)
        self.by_number = tuple(self.names)
        self.constants = tuple(constants)
        self.machine: weakref.ref[Any] = weakref.ref(self)
        self._functions = {f.name: f for f in functions}

    @property
    def functions(self) -> list[str]:
        """The names of the functions that can be called."""
        return list(self._functions)

    def __getitem__(self, name: str) -> InstructionFunction:
        """The function of that name; raises ``KeyError`` with close names for a miss."""
        return InstructionFunction(self, function_named(self._functions, name))

    def __contains__(self, name: object) -> bool:
        return name in self._functions

    def as_text(self) -> str:
        """The instructions for reading."""
        parts = []
        for name, kind in self.names.items():
            if kind == VMFuncKind.PACKED_FUNC:
                parts.append(f"@{name} packed_func;\n")
            else:
                parts.append("\n".join([f"@{name}:", *(_line(i, self) for i in self._functions[name].code)]) + "\n")
        return "\n".join(parts) + "\n"

    def as_python(self) -> str:
        """The program that makes this executable, but for its constants."""
        lines = ["ib = rx.Builder()"]
        for function in self._functions.values():
            lines.append(f'with ib.function("{function.name}", num_inputs={len(function.params)}):')
            lines += [f"    {_python(i, self)}" for i in function.code]
        return "\n".join(lines) + "\n"

    def stats(self) -> str:
        """The constants and names."""
        constants = ", ".join(_constant_text(c) for c in self.constants)
        return (
            "Relax VM executable statistics:\n"
            f"  Constant pool (# {len(self.constants)}): [{constants}]\n"
            f"  Globals (#{len(self.names)}): [{', '.join(self.names)}]\n"
        )

    def show(self) -> None:
        """Print `as_text`."""
        print(self.as_text())

    @property
    def mod(self) -> InstructionExecutable:
        """The executable itself: it is its own module."""
        return self

    def export_library(self, *args: Any, **options: Any) -> None:
        """Refused by name: instructions call Python functions of this process."""
        raise NotSupportedError("export_library: an executable of instructions has no native code to export")


@dataclass(frozen=True)
class _Info:
    """What a machine asks of a function."""

    name: str
    params: tuple[str, ...]


class InstructionFunction:
    """A function of instructions, to be called; raises `ArgumentError` for a wrong number of arguments and
    `ExecutionError` for what goes wrong inside, but what a registered function raises as it is."""

    def __init__(self, executable: InstructionExecutable, function: VMFunction) -> None:
        self.executable = executable
        self.info = _Info(function.name, function.params)
        self.__name__ = function.name
        self._function = function

    def __call__(self, *args: Any, **named: Any) -> Any:
        if named:
            args = self.in_order(args, named)
        if len(args) != len(self.info.params):
            raise wrong_count(self.info.name, self.info.params, len(args))
        return _run(self.executable, self._function, tuple(_taken(a) for a in args))

    def __repr__(self) -> str:
        return f"<function of instructions {self.info.name}({', '.join(self.info.params)})>"

    def in_order(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """All arguments in the order of the parameters; raises `ArgumentError` where names or number do not fit."""
        return in_order(self.info.name, self.info.params, args, named)


def _taken(value: Any) -> Any:
    """An argument as registered functions see it."""
    return Tensor(value) if isinstance(value, np.ndarray) else value


def _run(executable: InstructionExecutable, function: VMFunction, args: tuple[Any, ...]) -> Any:
    registers: list[Any] = [*args, *([None] * (function.registers - len(args)))]
    at = 0
    while True:
        instruction = function.code[at]
        if isinstance(instruction, CallInstruction):
            values = tuple(_operand(executable, registers, a) for a in instruction.args)
            result = _call(executable, instruction.name, values)
            if instruction.dst != SpecialReg.VOID_ARG:
                registers[instruction.dst] = result
            at += 1
        elif isinstance(instruction, Goto):
            at += instruction.offset
        elif isinstance(instruction, If):
            at += 1 if _truth(registers[instruction.cond], function.name) else instruction.false_offset
        else:
            return registers[instruction.result]


def _truth(value: Any, name: str) -> bool:
    if isinstance(value, (bool, int, np.generic)):
        return bool(value)
    if isinstance(value, Tensor) and value.shape == ():
        return bool(value.numpy().item())
    raise ExecutionError(f"{name}: if: expected a number, got {value!r}")


def _operand(executable: InstructionExecutable, registers: list[Any], operand: int) -> Any:
    kind, value = _decode(operand)
    if kind == ArgKind.IMMEDIATE:
        return value
    if kind == ArgKind.CONSTANT:
        return executable.constants[value]
    if kind == ArgKind.FUNCTION:
        return _callee(executable, executable.by_number[value])
    if value == SpecialReg.VM_STATE:
        return RUNNING.machine
    return None if value == SpecialReg.VOID_ARG else registers[value]


def _callee(executable: InstructionExecutable, name: str) -> Callable[..., Any]:
    if executable.names[name] == VMFuncKind.VM_FUNC:
        return executable[name]
    found = get_global_func(name)
    assert found is not None, "a miss raises"
    return found


def _call(executable: InstructionExecutable, name: str, values: tuple[Any, ...]) -> Any:
    function = _callee(executable, name)
    watch = getattr(RUNNING.machine, "instrument", None)
    if watch is None or executable.names[name] == VMFuncKind.VM_FUNC:
        return function(*values)
    return watch(function, name, values)


# ---------------------------------------------------------------------------------------------------------------- text


@dataclass(frozen=True, slots=True)
class _Style:
    """How operands are written: the two special registers, and what stands for a number or name."""

    void: str
    machine: str
    register: str
    function: str
    immediate: str
    constant: str

    def reg(self, value: int) -> str:
        """A register."""
        special = {int(SpecialReg.VOID_ARG): self.void, int(SpecialReg.VM_STATE): self.machine}
        return special.get(value, self.register.format(value))

    def operands(self, operands: Sequence[int], executable: InstructionExecutable) -> str:
        """Operands with commas between."""
        return ", ".join(self._operand(*_decode(operand), executable) for operand in operands)

    def _operand(self, kind: ArgKind, value: int, executable: InstructionExecutable) -> str:
        if kind == ArgKind.REGISTER:
            return self.reg(value)
        if kind == ArgKind.FUNCTION:
            return self.function.format(executable.by_number[value])
        return (self.immediate if kind == ArgKind.IMMEDIATE else self.constant).format(value)


_TEXT = _Style("%void", "%vm", "%{}", "f[{}]", "i{}", "c[{}]")
_PYTHON = _Style("ib.void_arg()", "ib.vm_state()", "ib.r({})", 'ib.f("{}")', "ib.imm({})", "ib.c({})")


def _line(instruction: Instruction, executable: InstructionExecutable) -> str:
    if isinstance(instruction, CallInstruction):
        inputs = _TEXT.operands(instruction.args, executable)
        return f"  {'call':<6}{instruction.name:<16} in: {inputs:<12} dst: {_TEXT.reg(instruction.dst)}"
    if isinstance(instruction, Ret):
        return f"  {'ret':<6}{_TEXT.reg(instruction.result)}"
    if isinstance(instruction, Goto):
        return f"  {'goto':<6}{instruction.offset}"
    return f"  {'If':<6}{_TEXT.reg(instruction.cond)}, {instruction.false_offset}"


def _python(instruction: Instruction, executable: InstructionExecutable) -> str:
    if isinstance(instruction, CallInstruction):
        args = _PYTHON.operands(instruction.args, executable)
        dst = "" if instruction.dst == SpecialReg.VOID_ARG else f", dst=ib.r({instruction.dst})"
        return f'ib.emit_call("{instruction.name}", args=[{args}]{dst})'
    if isinstance(instruction, Ret):
        return f"ib.emit_ret(ib.r({instruction.result}))"
    if isinstance(instruction, Goto):
        return f"ib.emit_goto({instruction.offset})"
    return f"ib.emit_if(ib.r({instruction.cond}), {instruction.false_offset})"


def _constant_text(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"Tensor{list(value.shape)}"
    return f'"{value}"' if isinstance(value, str) else str(value)


# ------------------------------------------------------------------------------------------------------------- builder


class ExecBuilder:
    """Makes an executable of instructions::

        ib = relax.ExecBuilder()
        with ib.function("main", num_inputs=2):
            ib.emit_call("my.add", args=[ib.r(0), ib.r(1)], dst=ib.r(2))
            ib.emit_ret(ib.r(2))
        vm = relax.VirtualMachine(ib.get(), relax.cpu())

    Registers that are not parameters may have any numbers; they are numbered anew in the order of their use.
    """

    def __init__(self) -> None:
        self._names: dict[str, VMFuncKind] = {}
        self._constants: list[Any] = []
        self._functions: dict[str, VMFunction] = {}
        self._open: _Open | None = None

    # operands ---------------------------------------------------------------------------------------------------------

    def r(self, idx: int) -> int:
        """A register as an operand."""
        return _encode(ArgKind.REGISTER, _index(idx, "a register's number"))

    def imm(self, value: int) -> int:
        """A number as an operand."""
        number = _index(value, "an immediate", least=-_VALUE_LIMIT)
        if number >= _VALUE_LIMIT:
            raise ValueError(f"imm: {number} does not fit in 56 bits; use convert_constant")
        return _encode(ArgKind.IMMEDIATE, number)

    def c(self, idx: int) -> int:
        """The constant of that number as an operand."""
        return _encode(ArgKind.CONSTANT, _index(idx, "a constant's number"))

    def f(self, name: str) -> int:
        """A function as an operand; it must be declared, defined or called before."""
        if name not in self._names:
            raise ValueError(f"f: no function {name!r} yet{did_you_mean(str(name), self._names)}; declare_function")
        return _encode(ArgKind.FUNCTION, list(self._names).index(name))

    def void_arg(self) -> int:
        """An operand without a value."""
        return self.r(SpecialReg.VOID_ARG)

    def vm_state(self) -> int:
        """The machine that runs, as an operand."""
        return self.r(SpecialReg.VM_STATE)

    def convert_constant(self, const: object) -> int:
        """A constant as an operand: a tensor or array, shape, dtype, text or number; equal ones are kept once. An
        integer that fits is an immediate."""
        value = _constant(const)
        if type(value) is int and -_VALUE_LIMIT <= value < _VALUE_LIMIT:
            return self.imm(value)
        for n, known in enumerate(self._constants):
            if type(known) is type(value) and known is value:
                return self.c(n)
            if type(known) is type(value) and not isinstance(value, Tensor) and known == value:
                return self.c(n)
        self._constants.append(value)
        return self.c(len(self._constants) - 1)

    # functions --------------------------------------------------------------------------------------------------------

    def declare_function(self, func_name: str, kind: VMFuncKind = VMFuncKind.PACKED_FUNC) -> None:
        """Say what a name is before it is defined; raises ``ValueError`` when it is known as something else."""
        known = self._names.setdefault(func_name, VMFuncKind(kind))
        if known != kind:
            raise ValueError(f"declare_function: {func_name!r} is a {known.name} already")

    def function(
        self, func_name: str, num_inputs: int | None = 0, param_names: Sequence[str] | None = None
    ) -> VMFuncScope:
        """The scope of a function: ``with ib.function("main", num_inputs=2):``."""
        count = _index(num_inputs or 0, "num_inputs")
        names = tuple(param_names) if param_names is not None else tuple(f"param{i}" for i in range(count))
        if len(names) != count:
            raise ValueError(f"function: {count} inputs, but {len(names)} param_names")
        if func_name in self._functions or (self._open is not None and self._open.name == func_name):
            raise ValueError(f"function: {func_name!r} is defined already")
        if self._open is not None:
            raise ValueError(f"function: {func_name!r} begins inside {self._open.name!r}")
        self.declare_function(func_name, VMFuncKind.VM_FUNC)
        self._open = _Open(func_name, names)
        return VMFuncScope(self)

    def _end(self, failed: bool) -> None:
        done, self._open = self._open, None
        if done is not None and not failed:
            self._functions[done.name] = done.finished()

    def emit_call(self, name: str, args: Sequence[Any] | None = None, dst: int | None = None) -> None:
        """A call of a registered function, or of a function of instructions. Tensors, dtypes, shapes and tuples of ints
        among the arguments become constants."""
        scope = self._scope()
        operands = [self._as_operand(a, name) for a in args or ()]
        target = int(SpecialReg.VOID_ARG) if dst is None else _register_of(dst, "dst")
        if target == SpecialReg.VM_STATE:
            raise ValueError(f"emit_call({name!r}): the machine is no place for a result")
        self._names.setdefault(name, VMFuncKind.PACKED_FUNC)
        scope.code.append(CallInstruction(name, tuple(operands), target))

    def _as_operand(self, value: Any, name: str) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            _decode(value)
            return value
        if isinstance(value, (tuple, Tensor, np.ndarray, np.dtype, dtypes.DataType)):
            return self.convert_constant(ShapeTuple(value) if type(value) is tuple else value)
        raise TypeError(
            f"emit_call({name!r}): expected an operand such as ib.r(0), ib.imm(1) or ib.convert_constant(value), "
            f"got {value!r}"
        )

    def emit_ret(self, result: int) -> None:
        """Return a register."""
        self._scope().code.append(Ret(_register_of(result, "emit_ret")))

    def emit_goto(self, pc_offset: int) -> None:
        """Go on that many instructions after this one (before it where negative)."""
        self._scope().code.append(Goto(_index(pc_offset, "pc_offset", least=-_VALUE_LIMIT)))

    def emit_if(self, cond: int, false_offset: int) -> None:
        """Go on with the next instruction where the register is no zero, else ``false_offset`` after this one."""
        offset = _index(false_offset, "false_offset", least=-_VALUE_LIMIT)
        self._scope().code.append(If(_register_of(cond, "emit_if"), offset))

    def _scope(self) -> _Open:
        if self._open is None:
            raise ValueError("emit should happen in a function scope: with ib.function(name, num_inputs=...)")
        return self._open

    def get(self) -> InstructionExecutable:
        """The executable; raises ``ValueError`` naming function and instruction for a program that cannot run."""
        if self._open is not None:
            raise ValueError(f"get: the function {self._open.name!r} has not ended")
        for name, kind in self._names.items():
            if kind == VMFuncKind.VM_FUNC and name not in self._functions:
                raise ValueError(f"get: the function {name!r} is declared but not defined")
        for function in self._functions.values():
            _check(function, len(self._constants), len(self._names))
        functions = [_renumbered(self._functions[name]) for name in self._names if name in self._functions]
        return InstructionExecutable(self._names, functions, self._constants)


@dataclass
class _Open:
    """A function that is being written."""

    name: str
    params: tuple[str, ...]
    code: list[Instruction] = field(default_factory=list)

    def finished(self) -> VMFunction:
        return VMFunction(self.name, self.params, tuple(self.code), 0)


class VMFuncScope:
    """The scope of a function of a builder."""

    def __init__(self, builder: ExecBuilder) -> None:
        self._builder = builder

    def __enter__(self) -> VMFuncScope:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._builder._end(kind is not None)


def _index(value: Any, what: str, least: int = 0) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what}: expected an integer, got {value!r}")
    number = int(value.__index__())
    if number < least:
        raise ValueError(f"{what}: expected at least {least}, got {number}")
    return number


def _register_of(operand: int, what: str) -> int:
    kind, value = _decode(_index(operand, what))
    if kind != ArgKind.REGISTER:
        raise ValueError(f"{what}: expected a register such as ib.r(0), got an operand of kind {kind.name.lower()}")
    return value


def _constant(value: object) -> Any:
    if isinstance(value, (np.ndarray, np.generic)):
        return Tensor(np.asarray(value))
    if isinstance(value, np.dtype):
        return dtypes.DataType(value)
    if isinstance(value, list):
        return ShapeTuple(value)
    if isinstance(value, (Tensor, ShapeTuple, str, int, float)):
        return value
    raise TypeError(f"convert_constant: expected a tensor, shape, dtype, text or number, got {value!r}")


# -------------------------------------------------------------------------------------------------------------- checks


def _check(function: VMFunction, constants: int, names: int) -> None:
    """Refuse what cannot run: jumps out of the function, no return, registers that nothing defines."""
    if not function.code:
        raise ValueError(f"{function.name}: the function has no instructions")
    defined = set(range(len(function.params)))
    defined |= {i.dst for i in function.code if isinstance(i, CallInstruction)}
    for n, instruction in enumerate(function.code):
        where = f"{function.name}: instruction {n}"
        for register in _read(instruction):
            if register not in defined and register not in (SpecialReg.VOID_ARG, SpecialReg.VM_STATE):
                raise ValueError(f"{where}: register {register} is used but nothing defines it")
        if isinstance(instruction, CallInstruction):
            for kind, value in map(_decode, instruction.args):
                limit = {ArgKind.CONSTANT: constants, ArgKind.FUNCTION: names}.get(kind)
                if limit is not None and not 0 <= value < limit:
                    raise ValueError(f"{where}: there is no {kind.name.lower()} {value}")
        elif not isinstance(instruction, Ret):
            offset = instruction.offset if isinstance(instruction, Goto) else instruction.false_offset
            if not 0 <= n + offset < len(function.code):
                raise ValueError(f"{where}: the jump by {offset} leaves the function")
            if isinstance(instruction, If) and instruction.cond > SpecialReg.VOID_ARG - 1:
                raise ValueError(f"{where}: the condition must be a register")
    last = function.code[-1]
    if isinstance(last, (CallInstruction, If)):
        raise ValueError(f"{function.name}: the function runs over its end: emit_ret is missing")


def _read(instruction: Instruction) -> list[int]:
    """The registers that an instruction reads."""
    if isinstance(instruction, CallInstruction):
        return [value for kind, value in map(_decode, instruction.args) if kind == ArgKind.REGISTER]
    if isinstance(instruction, Ret):
        return [instruction.result]
    return [instruction.cond] if isinstance(instruction, If) else []


def _renumbered(function: VMFunction) -> VMFunction:
    """The function with its registers numbered in the order of their use, parameters first."""
    numbers = {n: n for n in range(len(function.params))}
    special = (SpecialReg.VOID_ARG, SpecialReg.VM_STATE)
    numbers |= {int(s): int(s) for s in special}

    def number(register: int) -> int:
        return numbers.setdefault(register, len(numbers) - len(special))

    def operand(given: int) -> int:
        kind, value = _decode(given)
        return _encode(kind, number(value)) if kind == ArgKind.REGISTER else given

    code: list[Instruction] = []
    for i in function.code:
        if isinstance(i, CallInstruction):
            code.append(CallInstruction(i.name, tuple(operand(a) for a in i.args), number(i.dst)))
        elif isinstance(i, Ret):
            code.append(Ret(number(i.result)))
        else:
            code.append(If(number(i.cond), i.false_offset) if isinstance(i, If) else i)
    return VMFunction(function.name, function.params, tuple(code), len(numbers) - len(special))
