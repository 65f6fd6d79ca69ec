"""The state of one host function's emission, and the small pieces of code that its statements are made of."""

from __future__ import annotations

import re
from collections.abc import Sequence

from supple.base import dtypes
from supple.base.errors import InternalError
from supple.base.source import Span
from supple.codegen.host_numbers import Numbers, number_type
from supple.codegen.writer import Writer
from supple.ir import expr as E
from supple.ir.expr import Var
from supple.ir.host import HostFunction, HostVar
from supple.ir.node import Expr
from supple.runtime import abi
from supple.runtime.abi import ErrorSite, Status


def host_symbol(name: str) -> str:
    """The symbol of a graph function's code."""
    return f"host.{plain(name)}"


def entry_symbol(name: str) -> str:
    """The symbol of the entry that Python calls: ``i32(ptr ctx, ptr args, ptr result)``."""
    return f"entry.{plain(name)}"


def plain(name: str) -> str:
    """A name in the characters that LLVM takes without quotes, different for different names."""
    return re.sub(r"[^A-Za-z0-9_]", lambda m: f".{ord(m[0]):x}.", name)


def closure_symbol(name: str) -> str:
    """The symbol of what a closure of a function runs."""
    return f"closure.{plain(name)}"


class Emitter:
    """The emission of one function: values by variable, code so far, where failures go."""

    def __init__(self, function: HostFunction, sites: list[ErrorSite], declarations: set[str]) -> None:
        self.function = function
        self.name = function.name
        self.sites = sites
        self.declarations = declarations
        declarations.add("declare ptr @llvm.frameaddress.p0(i32)")
        self.w = Writer()
        self.numbers = Numbers(self)
        self.pointers: dict[int, str] = {}  # memories and objects by id
        self.slots: dict[int, int] = {}  # objects that own a reference, by id
        self.failures: list[str] = []
        self.number_slots: dict[int, str] = {}  # results of branches that are numbers, by id
        self.allocas: list[str] = []
        self.widest_call = 0
        self.here: Span | None = None  # the place of the statement that is being written

    # ---------------------------------------------------------------------------------------------------- small pieces

    def failure(self, site: ErrorSite, values: Sequence[str], status: Status = Status.ERROR_SITE) -> str:
        """The label of code that records an error site with values and leaves the function."""
        number = len(self.sites)
        self.sites.append(site)
        label = self.w.fresh("fail")
        lines = [f"{label}:", f"  store i32 {number}, ptr %ctx"]
        if site.span is None:
            lines.extend(self._place(str(abi.NO_PLACE), keep=False))
        stored = list(enumerate(values))
        if site.kind == "parameter":
            stored.append((abi.CONTEXT_VALUE_COUNT - 1, "%depth"))
        for i, value in stored:
            at = f"%{self.w.fresh('value.at')}"
            lines.append(f"  {at} = getelementptr i8, ptr %ctx, i64 {abi.CONTEXT_VALUES + 8 * i}")
            lines.append(f"  store i64 {value}, ptr {at}")
        lines.append(f"  store i32 {int(status)}, ptr %status")
        lines.append("  br label %exit")
        self.failures.extend(lines)
        return label

    def branch_if(self, condition: str, target: str) -> None:
        """Go to ``target`` if the condition holds, on otherwise."""
        fine = self.w.fresh("ok")
        self.w.emit(f"br i1 {condition}, label %{target}, label %{fine}")
        self.w.label(fine)

    def leave_on(self, status: str, *, callee: str = "") -> None:
        """Leave the function when a call failed. What fails in a ``"kernel"`` happened at the place of its call; what
        fails in a ``"function"``, at the place that is known there, or else at the call's."""
        fine, failed = self.w.fresh("ok"), self.w.fresh("failed")
        self.failures.append(f"{failed}:")
        here = len(self.sites) if self.here is not None else abi.NO_PLACE
        if callee:
            self.failures.extend(self._place(str(here), keep=callee == "function"))
        if callee and self.here is not None:
            self.sites.append(ErrorSite("call", "", self.here))
        self.failures.extend([f"  store i32 {status}, ptr %status", "  br label %exit"])
        bad = self.w.value(f"icmp ne i32 {status}, 0")
        self.w.emit(f"br i1 {bad}, label %{failed}, label %{fine}")
        self.w.label(fine)

    def _place(self, here: str, *, keep: bool) -> list[str]:
        """Code that says where the program failed; with ``keep``, only if that is not known yet."""
        at, known, none, chosen = (f"%{self.w.fresh(hint)}" for hint in ("place.at", "known", "none", "place"))
        lines = [f"  {at} = getelementptr i8, ptr %ctx, i64 {abi.CONTEXT_PLACE}"]
        if keep:
            lines.append(f"  {known} = load i64, ptr {at}")
            lines.append(f"  {none} = icmp eq i64 {known}, {abi.NO_PLACE}")
            lines.append(f"  {chosen} = select i1 {none}, i64 {here}, i64 {known}")
        return [*lines, f"  store i64 {chosen if keep else here}, ptr {at}"]

    def api(self, name: str, result: str, args: str) -> str:
        """Call a function of the runtime."""
        at = self.w.value(f"getelementptr ptr, ptr %api, i64 {abi.API.index(name)}")
        function = self.w.value(f"load ptr, ptr {at}")
        if result == "void":
            self.w.emit(f"call void {function}({args})")
            return ""
        return self.w.value(f"call {result} {function}({args})")

    def field(self, pointer: str, offset: int, ty: str) -> str:
        """A field of an object."""
        return self.w.field(pointer, offset, ty)

    def pointer(self, var: HostVar) -> str:
        """The pointer that a memory or object variable is."""
        name = self.pointers.get(id(var))
        if name is None:
            raise InternalError(f"{self.name}: {var.name} is used before it has a value")
        return name

    def own(self, var: HostVar, pointer: str) -> None:
        """An object variable gets its reference."""
        slot = self.slot(var)
        self.w.emit(f"store ptr {pointer}, ptr {slot}")
        self.pointers[id(var)] = pointer

    def slot(self, var: HostVar) -> str:
        """Where the function keeps the reference of an object variable."""
        index = self.slots.setdefault(id(var), len(self.slots))
        return self.w.value(f"getelementptr ptr, ptr %slots, i64 {index}")

    def made(self, var: HostVar, pointer: str) -> None:
        """An object that was just made: out of memory if it is null."""
        none = self.w.value(f"icmp eq ptr {pointer}, null")
        self.branch_if(none, "fail.memory")
        self.own(var, pointer)

    def value(self, e: Expr) -> str:
        """Code for a scalar expression."""
        return self.numbers.value(e)

    def wide(self, e: Expr) -> str:
        """A number as the context's values hold it."""
        value = self.value(e)
        ty = number_type(E.scalar_dtype(e))
        if ty == "i64":
            return value
        return self.w.value(f"zext i1 {value} to i64" if ty == "i1" else f"fptosi {ty} {value} to i64")

    def number_at(self, var: Var, pointer: str, offset: int) -> None:
        """A number from memory, where it is an int64 or a float64."""
        ty = number_type(E.scalar_dtype(var))
        if ty in ("i64", "i1"):
            value = self.field(pointer, offset, "i64")
            value = self.w.value(f"icmp ne i64 {value}, 0") if ty == "i1" else value
        else:
            value = self.field(pointer, offset, "double")
            if dtypes.is_narrow(E.scalar_dtype(var)):
                value = self.numbers.rounded(E.scalar_dtype(var), "float64", value)
            elif ty == "float":
                value = self.w.value(f"fptrunc double {value} to float")
        self.numbers.define(var, value)

    def store_objects(self, pointer: str, offset: int, objects: Sequence[HostVar]) -> None:
        """References of objects in the fields of an object."""
        for i, item in enumerate(objects):
            value = self.pointer(item)
            self.api("incref", "void", f"ptr {value}")
            at = self.w.value(f"getelementptr i8, ptr {pointer}, i64 {offset + 8 * i}")
            self.w.emit(f"store ptr {value}, ptr {at}")

    def is_no_callable(self, kind: str, code: str) -> str:
        """Whether an object is not a Python callable."""
        opaque = self.w.value(f"icmp ne i32 {kind}, {int(abi.Kind.PYTHON)}")
        other = self.w.value(f"icmp ne i32 {code}, {abi.CALLABLE}")
        return self.w.value(f"or i1 {opaque}, {other}")
