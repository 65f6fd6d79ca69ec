"""Host IR: what graph functions become just before LLVM. It prints for reading (`HostFunction.text`).

A **memory** is a raw pointer to a compact tensor's first element, an **object** a pointer to a reference-counted native
object (``runtime.abi``), a **number** a scalar variable (`Var` of `PrimType`), the symbols among them. Every object
variable except the parameters owns one reference, which is given up when the function ends or at its `Release`.
Sizes are int64 expressions over numbers; the code for them is checked, so that nothing wraps.

Control flow is structured: a `Body` is a tuple of statements, `Branch` holds two. A statement that can fail names its
`ErrorSite`, and the numbers that its message shows.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from supple.ir import expr as E
from supple.ir.expr import Var
from supple.ir.graph import ShapeExpr
from supple.ir.node import Expr, Node, Stmt, Type, define, ignored, node, replace
from supple.ir.types import AnyType, FuncType, PrimType, ShapeType, StringType, TensorType, TupleType
from supple.runtime.abi import ErrorSite


@node
class HostVar(Node):
    """A memory or an object (``kind``)."""

    name: str = ignored()
    kind: str = "object"


@node
class HostStmt(Stmt):
    """Base of host statements."""


Body: TypeAlias = tuple[HostStmt, ...]


@node
class CheckObject(HostStmt):
    """Fail unless the object is of a kind (``Kind`` in the ABI), and, for tensors, of the dtype and rank if given."""

    value: HostVar
    kind: int
    dtype: str | None
    ndim: int
    site: ErrorSite = ignored()


@node
class Require(HostStmt):
    """Fail unless ``condition`` holds; ``values`` are shown in the message."""

    condition: Expr
    values: tuple[Expr, ...]
    site: ErrorSite = ignored()


@node
class CheckWritable(HostStmt):
    """Fail unless a tensor object's memory may be written."""

    value: HostVar
    site: ErrorSite = ignored()


@node
class CheckAligned(HostStmt):
    """Fail unless a memory begins at a multiple of ``nbytes``."""

    memory: HostVar
    nbytes: int
    site: ErrorSite = ignored()


@node
class CheckDisjoint(HostStmt):
    """Fail when two memories overlap."""

    a: HostVar
    a_bytes: Expr
    b: HostVar
    b_bytes: Expr
    site: ErrorSite = ignored()


@node
class LoadDim(HostStmt):
    """``var = tensor.shape[axis]``; ``of_shape``: an item of a shape object, or its (a tuple's) length at axis -1."""

    var: Var = define()
    value: HostVar
    axis: int
    of_shape: bool = False


@node
class LoadNumber(HostStmt):
    """``var`` = the number in a number object."""

    var: Var = define()
    value: HostVar


@node
class LoadScalar(HostStmt):
    """``var`` = the first element of a memory."""

    var: Var = define()
    memory: HostVar
    dtype: str


@node
class Compute(HostStmt):
    """``var = value``."""

    var: Var = define()
    value: Expr


@node
class Arena(HostStmt):
    """``memory`` = this activation's arena of ``nbytes`` bytes."""

    memory: HostVar = define()
    nbytes: Expr


@node
class Alloc(HostStmt):
    """``memory`` for intermediate data of ``nbytes`` bytes; planning turns it into `At`."""

    memory: HostVar = define()
    nbytes: Expr


@node
class At(HostStmt):
    """``memory = base + offset``."""

    memory: HostVar = define()
    base: HostVar
    offset: Expr


@node
class NewTensor(HostStmt):
    """A new tensor object with memory of its own."""

    var: HostVar = define()
    shape: tuple[Expr, ...]
    dtype: str


@node
class ViewOf(HostStmt):
    """A new tensor object over ``memory``, which is all or a part of that of ``source``, which it keeps alive."""

    var: HostVar = define()
    source: HostVar
    memory: HostVar
    shape: tuple[Expr, ...]
    dtype: str


@node
class DataOf(HostStmt):
    """``memory`` = the data of a tensor object."""

    memory: HostVar = define()
    value: HostVar


@node
class ConstantAt(HostStmt):
    """``memory`` = the data of the executable's constant ``index``."""

    memory: HostVar = define()
    index: int


@node
class ConstantObject(HostStmt):
    """``var`` = the executable's constant object ``index`` (a string)."""

    var: HostVar = define()
    index: int


@node
class Copy(HostStmt):
    """Copy ``nbytes`` bytes."""

    target: HostVar
    source: HostVar
    nbytes: Expr


@node
class KernelCall(HostStmt):
    """Run a kernel: buffers, scalars, symbols, workspace (the calling convention's order)."""

    kernel: str
    buffers: tuple[HostVar, ...]
    scalars: tuple[Expr, ...]
    symbols: tuple[Expr, ...]
    workspace: HostVar | None


@node
class ClearReturn(HostStmt):
    """The next kernel has returned nothing yet."""


@node
class TakeReturn(HostStmt):
    """``flag`` = whether the last kernel returned a number, ``var`` = the number."""

    flag: Var = define()
    var: Var = define()


@node
class HostCall(HostStmt):
    """Call a compiled graph function."""

    var: HostVar = define()
    function: str
    args: tuple[HostVar, ...]


@node
class PackedCall(HostStmt):
    """Call into Python: entry ``index`` of the executable's table (``name`` for reading)."""

    var: HostVar = define()
    index: int
    name: str
    args: tuple[HostVar, ...]


@node
class MakeTuple(HostStmt):
    """A new tuple object."""

    var: HostVar = define()
    fields: tuple[HostVar, ...]


@node
class TupleField(HostStmt):
    """One field of a tuple object."""

    var: HostVar = define()
    value: HostVar
    index: int


@node
class MakeShape(HostStmt):
    """A new shape object."""

    var: HostVar = define()
    values: tuple[Expr, ...]


@node
class ShapeFrom(HostStmt):
    """A new shape object of the first ``length`` int64 elements of a memory."""

    var: HostVar = define()
    memory: HostVar
    length: Expr


@node
class MakeClosure(HostStmt):
    """A new closure: function ``index`` of the executable's closures (``name`` for reading, ``params`` parameters) with
    its first arguments."""

    var: HostVar = define()
    index: int
    name: str
    params: int
    captured: tuple[HostVar, ...]


@node
class ExtendClosure(HostStmt):
    """A new closure: a closure (or, through call ``python``, a Python callable) with more arguments fixed. Fails at
    ``site`` when the callee is neither, at ``count`` when it takes fewer arguments."""

    var: HostVar = define()
    callee: HostVar
    captured: tuple[HostVar, ...]
    python: int
    site: ErrorSite = ignored()
    count: ErrorSite = ignored()


@node
class CallClosure(HostStmt):
    """Call a closure (or, through call ``python``, a Python callable). Fails as `ExtendClosure` does."""

    var: HostVar = define()
    callee: HostVar
    args: tuple[HostVar, ...]
    python: int
    site: ErrorSite = ignored()
    count: ErrorSite = ignored()


@node
class MakeNumber(HostStmt):
    """A new number object."""

    var: HostVar = define()
    value: Expr


@node
class Branch(HostStmt):
    """``if condition: then else: otherwise``. ``var`` is what `Yield` sets in both (None: nothing)."""

    condition: Expr
    then: Body
    otherwise: Body
    var: HostVar | Var | None = define()


@node
class Yield(HostStmt):
    """Set the variable of the enclosing `Branch`."""

    target: HostVar | Var
    value: HostVar | Expr


@node
class Release(HostStmt):
    """Give up an object's reference early (it is not used again)."""

    var: HostVar


@node
class Return(HostStmt):
    """The function's result; always last."""

    value: HostVar


@node
class HostFunction(Node):
    """A compiled graph function. ``prologue`` checks the parameters and defines the symbols; then ``body`` runs."""

    name: str
    params: tuple[HostVar, ...] = define()
    prologue: Body
    body: Body

    def text(self) -> str:
        """The function for reading."""
        return "\n".join(_lines(self))

    def script(self, show_meta: bool = False, **options: Any) -> str:
        return self.text()


INDENT = "    "


def sub_bodies(statement: HostStmt) -> tuple[Body, ...]:
    """The bodies nested in a statement."""
    return (statement.then, statement.otherwise) if isinstance(statement, Branch) else ()


def walk(body: Body) -> Iterator[HostStmt]:
    """Every statement in the order of the text, branches included."""
    stack = [iter(body)]
    while stack:
        statement = next(stack[-1], None)
        if statement is None:
            stack.pop()
            continue
        yield statement
        for nested in reversed(sub_bodies(statement)):
            stack.append(iter(nested))


def traverse(
    body: Body,
    enter: Callable[[], None],
    before: Callable[[HostStmt], None],
    after: Callable[[HostStmt], None],
    leave: Callable[[], Body],
) -> Body:
    """Rebuild a body and those nested in it, with a stack of its own.

    ``enter`` starts a body, ``before`` sees each statement as it was, ``after`` sees it with its branches rebuilt, and
    ``leave`` gives the rebuilt body.
    """
    enter()
    stack: list[tuple[Iterator[HostStmt], list[Branch], list[Body]]] = [(iter(body), [], [])]
    while True:
        statements, branches, rebuilt = stack[-1]
        if branches and len(rebuilt) == 2:
            after(replace(branches.pop(), then=rebuilt[0], otherwise=rebuilt[1]))
            rebuilt.clear()
        if branches:
            enter()
            nested = branches[-1].then if not rebuilt else branches[-1].otherwise
            stack.append((iter(nested), [], []))
            continue
        statement = next(statements, None)
        if statement is None:
            stack.pop()
            finished = leave()
            if not stack:
                return finished
            stack[-1][2].append(finished)
            continue
        before(statement)
        if isinstance(statement, Branch):
            branches.append(statement)
        else:
            after(statement)


def rewrite(body: Body, change: Callable[[HostStmt], HostStmt]) -> Body:
    """A body with every statement, branches included, replaced by what ``change`` gives for it."""
    open_bodies: list[list[HostStmt]] = []
    return traverse(
        body,
        lambda: open_bodies.append([]),
        lambda statement: None,
        lambda statement: open_bodies[-1].append(change(statement)),
        lambda: tuple(open_bodies.pop()),
    )


# ------------------------------------------------------------------------------------------------------------ reading


_DEEPEST = 40
_MOST_SHOWN = 400


def show(e: object) -> str:
    """A scalar expression as a reader writes it: ``n + 1``. What is too deep or too long to read is cut to ``...``."""
    return _show(e, 0, itertools.count())


def _show(e: object, depth: int, shown: Iterator[int]) -> str:
    if isinstance(e, Var):
        return e.name
    if isinstance(e, (E.IntImm, E.FloatImm)):
        return str(e.value)
    if depth > _DEEPEST or next(shown) > _MOST_SHOWN:
        return "..."
    if isinstance(e, (E.Min, E.Max)):
        return f"{type(e).__name__.lower()}({_show(e.a, depth + 1, shown)}, {_show(e.b, depth + 1, shown)})"
    if isinstance(e, E.BinaryOp) and e.symbol:
        return f"{_operand(e.a, e, False, depth, shown)} {e.symbol} {_operand(e.b, e, True, depth, shown)}"
    if isinstance(e, E.Cast):
        return _show(e.value, depth + 1, shown)
    if isinstance(e, E.Not):
        return f"not {_show(e.a, depth + 1, shown)}"
    return type(e).__name__.lower() + "(...)"


_STRENGTH = {"or": 0, "and": 1, "==": 2, "!=": 2, "<": 2, "<=": 2, ">": 2, ">=": 2, "+": 3, "-": 3}


def _operand(e: object, parent: E.BinaryOp, right: bool, depth: int, shown: Iterator[int]) -> str:
    text = _show(e, depth + 1, shown)
    if isinstance(e, E.BinaryOp) and e.symbol:
        mine, outer = _STRENGTH.get(e.symbol, 4), _STRENGTH.get(parent.symbol, 4)
        if mine < outer or (right and mine == outer):
            return f"({text})"
    return text


def show_shape(values: tuple[Expr, ...]) -> str:
    """A shape as Python shows tuples: ``(n, 784)``, ``(4,)``."""
    inner = ", ".join(show(v) for v in values)
    return f"({inner},)" if len(values) == 1 else f"({inner})"


def show_type(ty: Type | None) -> str:
    """A graph type for messages: ``Tensor((n, 784), float32)``."""
    if isinstance(ty, TensorType):
        if isinstance(ty.shape, ShapeExpr):
            parts = [show_shape(ty.shape.values)]
        else:
            parts = [f"ndim={ty.ndim}"] if ty.ndim >= 0 else []
        return f"Tensor({', '.join(parts + ([ty.dtype] if ty.dtype else []))})"
    if isinstance(ty, TupleType):
        return f"Tuple({', '.join(show_type(f) for f in ty.fields)})"
    if isinstance(ty, ShapeType):
        return f"Shape({show_shape(ty.values) if ty.values is not None else f'ndim={ty.ndim}'})"
    if isinstance(ty, PrimType):
        return ty.dtype
    if isinstance(ty, StringType):
        return "str"
    return "Any" if ty is None or isinstance(ty, AnyType) else "Callable" if isinstance(ty, FuncType) else str(ty)


def _lines(function: HostFunction) -> Iterator[str]:
    yield f"def {function.name}({', '.join(p.name for p in function.params)}):"
    for title, body in (("check", function.prologue), ("run", function.body)):
        yield f"{INDENT}# {title}"
        yield from _body_lines(body)


def _body_lines(body: Body) -> Iterator[str]:
    stack: list[tuple[int, HostStmt | str]] = [(1, s) for s in reversed(body)]
    while stack:
        depth, item = stack.pop()
        if isinstance(item, str):
            yield INDENT * depth + item
            continue
        yield INDENT * depth + _line(item)
        if isinstance(item, Branch):
            stack.extend((depth + 1, s) for s in reversed(item.otherwise or ()))
            stack.append((depth, "else:"))
            stack.extend((depth + 1, s) for s in reversed(item.then))


def _names(values: tuple[HostVar, ...]) -> str:
    return ", ".join(v.name for v in values)


def _line(s: HostStmt) -> str:
    match s:
        case CheckObject():
            wanted = [f"kind={s.kind}"] + ([s.dtype] if s.dtype else []) + ([f"ndim={s.ndim}"] if s.ndim >= 0 else [])
            return f"check {s.value.name}: {', '.join(wanted)}"
        case Require():
            return f"require {show(s.condition)}  # {s.site.message}"
        case CheckWritable():
            return f"require writable({s.value.name})"
        case CheckAligned():
            return f"require aligned({s.memory.name}, {s.nbytes})"
        case CheckDisjoint():
            return f"require disjoint({s.a.name}, {s.b.name})"
        case LoadDim():
            return f"{s.var.name} = {s.value.name}{'' if s.of_shape else '.shape'}[{s.axis}]"
        case LoadNumber():
            return f"{s.var.name} = {s.value.name}.value"
        case LoadScalar():
            return f"{s.var.name} = {s.memory.name}[0]"
        case Compute():
            return f"{s.var.name} = {show(s.value)}"
        case Arena():
            return f"{s.memory.name} = arena({show(s.nbytes)})"
        case Alloc():
            return f"{s.memory.name} = alloc({show(s.nbytes)})"
        case At():
            return f"{s.memory.name} = {s.base.name} + {show(s.offset)}"
        case NewTensor():
            return f"{s.var.name} = new_tensor({show_shape(s.shape)}, {s.dtype})"
        case ViewOf():
            return f"{s.var.name} = view({s.memory.name} of {s.source.name}, {show_shape(s.shape)}, {s.dtype})"
        case DataOf():
            return f"{s.memory.name} = data({s.value.name})"
        case ConstantAt():
            return f"{s.memory.name} = constants[{s.index}]"
        case ConstantObject():
            return f"{s.var.name} = constants[{s.index}]"
        case Copy():
            return f"copy({s.target.name}, {s.source.name}, {show(s.nbytes)})"
        case KernelCall():
            numbers = "".join(f", {show(n)}" for n in (*s.scalars, *s.symbols))
            space = f", workspace={s.workspace.name}" if s.workspace is not None else ""
            return f"kernel {s.kernel}({_names(s.buffers)}{numbers}{space})"
        case ClearReturn():
            return "returned = nothing"
        case TakeReturn():
            return f"{s.flag.name}, {s.var.name} = returned"
        case HostCall():
            return f"{s.var.name} = {s.function}({_names(s.args)})"
        case PackedCall():
            return f"{s.var.name} = python {s.name}({_names(s.args)})"
        case MakeTuple():
            return f"{s.var.name} = tuple({_names(s.fields)})"
        case TupleField():
            return f"{s.var.name} = {s.value.name}[{s.index}]"
        case MakeShape():
            return f"{s.var.name} = shape{show_shape(s.values)}"
        case ShapeFrom():
            return f"{s.var.name} = shape({s.memory.name}[:{show(s.length)}])"
        case MakeClosure():
            return f"{s.var.name} = closure {s.name}({_names(s.captured)})"
        case ExtendClosure():
            return f"{s.var.name} = closure ({s.callee.name})({_names(s.captured)})"
        case CallClosure():
            return f"{s.var.name} = call {s.callee.name}({_names(s.args)})"
        case MakeNumber():
            return f"{s.var.name} = number({show(s.value)})"
        case Branch():
            return f"if {show(s.condition)}:"
        case Yield():
            return f"{s.target.name} = {s.value.name if isinstance(s.value, (HostVar, Var)) else show(s.value)}"
        case Release():
            return f"release {s.var.name}"
        case Return():
            return f"return {s.value.name}"
    raise TypeError(f"unknown host statement {type(s).__name__}")
