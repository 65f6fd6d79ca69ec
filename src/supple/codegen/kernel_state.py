"""What the emission of one kernel shares: variables, storage, what is known of ranges, error sites."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace
from types import GeneratorType
from typing import Any, TypeAlias

from supple.analysis.bounds import Context
from supple.base import dtypes
from supple.base.errors import NotSupportedError
from supple.base.source import Span
from supple.base.target import Target
from supple.codegen.kernel_builder import Builder, Scope, Value
from supple.ir.expr import Var
from supple.ir.loop import For
from supple.ir.node import Expr, Node
from supple.runtime.abi import ErrorSite
from supple.sym.poly import ZERO, Atom, Poly

Task: TypeAlias = Generator[Any, Any, Any]
"""A handler: it yields nodes (or other tasks) to have them emitted and receives their values."""

Handler: TypeAlias = Callable[["State", Any], Task]


@dataclass(frozen=True, slots=True)
class Lanes:
    """The variable of a vectorised loop: ``base + <0, 1, 2, ...>``."""

    count: int
    base: Poly


@dataclass(frozen=True, slots=True)
class Storage:
    """Where a buffer lives: a pointer to its first element, its element strides, whether it is on the stack."""

    pointer: Value
    dtype: str
    strides: tuple[Poly, ...]
    offset: Poly
    align: int = 0


Binding: TypeAlias = "int | Lanes | Value"


class Region:
    """The function of a parallel loop's body while it is written, and what it takes from the function around it."""

    def __init__(self, name: str, around: State) -> None:
        self.name = name
        self.builder = Builder()
        self.arguments: list[Value] = []  # values of the function around it, in the order of the parameters
        self.noalias = around.noalias
        self._known: dict[str, Value] = {}
        self._around = around
        self._saved = (
            around.builder, around.variables, around.storage, around.loops, around.copies, around.workspace_bytes,
            around.noalias,
        )  # fmt: skip

    def value(self, outer: Value) -> Value:
        """A value of the function around this one as this one knows it."""
        if not outer.ref.startswith("%"):
            return Value(outer.ref, outer.dtype)
        known = self._known.get(outer.ref)
        if known is None:
            known = self._known[outer.ref] = Value(f"%p{len(self.arguments)}", outer.dtype)
            self.arguments.append(outer)
        return known if known.dtype == outer.dtype else Value(known.ref, outer.dtype)

    def variable(self, var: Var) -> Binding | None:
        """What a variable of the function around this one stands for here."""
        bound = self._saved[1].get(id(var))
        assert not isinstance(bound, Lanes), "parallel loops are not vectorised"
        return self.value(bound) if isinstance(bound, Value) else bound

    def place(self, buffer: Var) -> Storage | None:
        """Where a buffer of the function around this one is."""
        storage = self._saved[2].get(id(buffer))
        return None if storage is None else replace(storage, pointer=self.value(storage.pointer))

    @staticmethod
    def slot(value: Value) -> int:
        """Bytes that a value takes in the environment."""
        return -(-dtypes.nbytes(value.dtype) // 8) * 8

    def offsets(self) -> list[int]:
        """Where the arguments are in the environment, whose first word says where a chunk has failed."""
        found, at = [], 8
        for value in self.arguments:
            found.append(at)
            at += self.slot(value)
        return found

    def restore(self) -> None:
        """Go on with the function around this one."""
        a = self._around
        a.builder, a.variables, a.storage, a.loops, a.copies, a.workspace_bytes, a.noalias = self._saved


MOST_REPEATED = 10_000
"""Expressions that one statement may evaluate once more because a condition hides their values."""


@dataclass(frozen=True, slots=True)
class _Emitted:
    node: Expr | Atom  # kept, so that its identity stays its own
    value: Value
    scope: Scope


class State:
    """The emission of one kernel."""

    def __init__(
        self, name: str, target: Target, sites: list[ErrorSite], scalars: tuple[Var, ...], symbol: str = ""
    ) -> None:
        self.name = name
        self.symbol = symbol or name
        self.target = target
        self.sites = sites
        self.builder = Builder()
        self.context = Context(scalars)
        self._plain = Context(scalars)  # for proved code: knows no ranges, so that its results can be remembered
        self._polys: dict[int, Poly] = {}
        self._values: dict[int, _Emitted] = {}  # by the identity of expressions
        self._again = 0  # expressions of the statement that were emitted before, where they are out of scope now
        self.facts: dict[tuple[str, int], bool] = {}  # what was found out about statements, by identity
        self.variables: dict[int, Binding] = {}
        self.storage: dict[int, Storage] = {}
        self.distrust = False
        self.result_dtype: str | None = None  # what `T.ret` returns
        self.copies = 1  # how often the code around is written out
        self.width = 1  # lanes of the vectorised loop around
        self.proved = False  # inside code whose accesses were proved in bounds already
        self.loops: list[tuple[str, str]] = []  # (where `continue` goes, where `break` goes)
        self.symbols: set[int] = set()  # the atoms that sizes may depend on
        self.workspace_bytes: Poly = ZERO
        self.keep: list[Node] = []  # ids stay valid while the nodes live
        self.region: Region | None = None  # the body of a parallel loop that is being written
        self.outlined: list[str] = []  # functions of parallel loops
        self.noalias: set[str] = set()  # pointers through which alone their memory is reached

    def enter_loop(self, node: For) -> None:
        """Take a loop's range into the facts, unless the schedule has proved what they are for."""
        if not self.proved:
            self.context.enter_loop(node.loop_var, node.min, node.extent)

    def bind(self, var: Var, value: Binding) -> None:
        """What a variable stands for from here on."""
        self.keep.append(var)
        if id(var) in self.variables:  # what was computed with its former value is of no use
            self._values.clear()
        self.variables[id(var)] = value

    def known_value(self, node: Node) -> Value | None:
        """The value of an expression that the statement had emitted before, if it is in scope. A statement begins anew:
        one before it may have changed the memory that its expressions read."""
        if not isinstance(node, Expr):
            self._values.clear()
            self._again = 0
            return None
        return self.emitted(node)

    def emitted(self, what: Expr | Atom) -> Value | None:
        """The value of an expression, or of a part of an index, as `remember` knows it, if it is in scope."""
        known = self._values.get(id(what))
        return known.value if known is not None and self.builder.is_open(known.scope) else None

    def remember(self, node: Expr | Atom, value: Value) -> None:
        """The value of an expression, emitted in the scope where the builder is. All that a kernel calls is pure.

        Raises `NotSupportedError` where conditions inside conditions use one part so often that it would have to be
        written out without end."""
        if id(node) in self._values:
            self._again += 1
            if self._again > MOST_REPEATED:
                raise NotSupportedError(
                    f"{self.name}: an expression uses the same parts under more than {MOST_REPEATED} conditions; "
                    "store them in a buffer, or bind them to a variable, before",
                    getattr(node, "span", None),
                )
        self._values[id(node)] = _Emitted(node, value, self.builder.scope())

    def poly(self, e: Expr) -> Poly:
        """The canonical form of an index."""
        if not self.proved:
            return self.context.poly(e)
        known = self._polys.get(id(e))
        if known is None:
            known = self._polys[id(e)] = self._plain.poly(e)
            self.keep.append(e)
        return known

    def unknown(self, var: Var) -> None:
        """Nothing is known of an integer variable's range."""
        self.context.unknown(var)
        self._plain.unknown(var)

    def lookup(self, var: Var) -> Binding:
        """What a variable stands for; raises `NotSupportedError` for one that nothing defines here."""
        known = self.variables.get(id(var))
        if known is None and self.region is not None:
            known = self.region.variable(var)
            if known is not None:
                self.bind(var, known)
        if known is None:
            raise NotSupportedError(
                f"{self.name}: variable {var.name} has no value here (it is not a parameter, a loop variable, or a "
                "dimension of a buffer parameter)",
                var.span,
            )
        return known

    def buffer(self, var: Var) -> Storage:
        """Where a buffer lives; raises `NotSupportedError` for one that is not allocated here."""
        known = self.find_buffer(var)
        if known is None:
            raise NotSupportedError(
                f"{self.name}: buffer {var.name} is neither a parameter nor allocated here", var.span
            )
        return known

    def find_buffer(self, var: Var) -> Storage | None:
        """Where a buffer lives, or None."""
        known = self.storage.get(id(var))
        if known is None and self.region is not None:
            known = self.region.place(var)
            if known is not None:
                self.storage[id(var)] = known
                self.keep.append(var)
        return known

    def enter_region(self, region: Region) -> None:
        """Write the body of a parallel loop from here on."""
        self.region = region
        self.builder, self.variables, self.storage, self.loops = region.builder, {}, {}, []
        self.copies, self.workspace_bytes, self.noalias = 1, ZERO, set()

    def leave_region(self) -> Poly:
        """Go on with the function around; returns the bytes of workspace that the body needs."""
        assert self.region is not None
        needed, inner = self.workspace_bytes, self.builder
        self.region.restore()
        self.region = None
        self.builder.declarations |= inner.declarations
        return needed

    def fail_unless(
        self, condition: Value, kind: str, message: str, span: Span | None, *values: Value, expected: str = ""
    ) -> None:
        """Go on when the condition holds; else record the error site with up to six int64 values and return 1."""
        b = self.builder
        if condition.ref == "true":
            return
        site = len(self.sites)
        self.sites.append(ErrorSite(kind, message, span, expected=expected))
        fine, failed = b.fresh("ok"), b.fresh("fail")
        b.branch_if(condition, fine, failed)
        b.label(failed)
        b.emit(f"store i32 {site}, ptr %ctx, align 4")
        for position, value in enumerate(values):
            slot = b.fresh("slot")
            b.emit(f"%{slot} = getelementptr i8, ptr %ctx, i64 {8 + 8 * position}")
            b.emit(f"store i64 {value.ref}, ptr %{slot}, align 8")
        b.emit("ret i32 1")
        b.label(fine)


def drive(state: State, dispatch: Callable[[State, Any], Any], root: Any) -> Any:
    """Run tasks with an explicit stack, so that deep programs do not overflow Python's.

    An expression that is used more than once has its value emitted once, where that is still in scope.
    """
    stack: list[tuple[Task, Any]] = []  # and the node whose task it is
    result: Any = None
    item = root
    while True:
        if item is not None:
            made = item
            if type(item) is not GeneratorType:
                made = state.known_value(item)
                if made is None:
                    made = dispatch(state, item)
            if type(made) is GeneratorType:
                stack.append((made, item))
                item, sent = None, None
            else:
                item, result = None, made
                if not stack:
                    return result
                sent = result
        else:
            if not stack:
                return result
            sent = result
        try:
            item = stack[-1][0].send(sent)
        except StopIteration as stop:
            _, node = stack.pop()
            item, result = None, stop.value
            if isinstance(node, Expr):
                state.remember(node, result)
            if not stack:
                return result
