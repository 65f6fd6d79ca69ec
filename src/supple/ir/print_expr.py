"""Expressions and types of both levels as text that reads back to the same nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.ir import expr as E
from supple.ir import graph as G
from supple.ir.expr import Call, FloatImm, IntImm, Var
from supple.ir.expr_operators import folded, joins_to_one
from supple.ir.loop import BufferRegion
from supple.ir.node import Expr, Type, children
from supple.ir.op import REQUIRED, Op, Param, RelaxText, settled_attrs
from supple.ir.print_names import Names, float_text, quote
from supple.ir.print_style import PrintOptions, print_options
from supple.ir.print_types import LONG_TEXT, TypePrinter, check_length
from supple.ir.structural import structural_equal
from supple.ir.types import BufferType, PrimType, result_types
from supple.ir.walk import pre_order

ATOM = 20
UNARY = 11
_MAX_DEPTH = 80  # deeper expressions are cut into named parts: Python's parser nests at most 200 parentheses
_LONG = 2000  # characters of a part that gets a name if it occurs again

_INFIX: dict[type[Expr], tuple[str, int]] = {
    E.Or: ("or", 1),
    E.And: ("and", 2),
    E.EQ: ("==", 4),
    E.NE: ("!=", 4),
    E.LT: ("<", 4),
    E.LE: ("<=", 4),
    E.GT: (">", 4),
    E.GE: (">=", 4),
    E.Add: ("+", 9),
    E.Sub: ("-", 9),
    E.Mul: ("*", 10),
    E.Div: ("/", 10),
    E.FloorDiv: ("//", 10),
    E.FloorMod: ("%", 10),
}
_COMPARISON = 4
_BITWISE = {
    "tirx.bitwise_or": ("|", 5),
    "tirx.bitwise_xor": ("^", 6),
    "tirx.bitwise_and": ("&", 7),
    "tirx.shift_left": ("<<", 8),
    "tirx.shift_right": (">>", 8),
}

Piece = tuple[str, int, int]  # text, precedence, depth


class ExprPrinter(TypePrinter):
    """Prints expressions; ``hoist`` names a part of an expression that would nest too deep."""

    def __init__(self, options: PrintOptions | None = None) -> None:
        self.options = options or print_options()
        self.style = self.options.style
        self.int_dtype = "int32"
        self.names = Names(self.options.reserved, self.options.show_object_address)
        self.printed: set[int] = set()  # variables that occurred
        self.quoted = False  # inside a signature: a dimension with symbols is text
        self.constants: list[G.Constant] = []
        self.hoist: Callable[[str], str] | None = None
        self._parts: dict[int, str] = {}  # parts of the statement that have names, by identity
        self._shared: tuple[Expr, set[int]] | None = None  # an expression, and its parts that occur more than once
        self.announce: Callable[[Var], None] | None = None  # declares a variable that an expression binds
        self.functions: dict[str, str] = {}  # name of a function of the module -> its name in the text
        self.module = ""  # name of the module that the text is of
        self.infos: dict[str, Any] = {}  # the module's global infos: virtual devices and meshes are named by them
        self.type_variables: list[str] = []  # names of symbols that the text declares before everything else
        self.owner: Any = None
        self.parameters: set[int] = set()  # of the signature that is written, those before
        self.cells: set[int] = set()  # buffers that are written as numbers that change
        self.in_sight: set[int] = set()  # symbols that a signature may name without quotes

    # ------------------------------------------------------------------------------------------------- expressions

    def expr(self, root: Expr, minimum: int = 0) -> str:
        """The text of an expression, in parentheses if it binds weaker than ``minimum``."""
        text, precedence, _ = self.piece(root)
        return f"({text})" if precedence < minimum else text

    def _marked_piece(self, root: Expr) -> Piece:
        """`piece`, with marks around the texts of nodes that have them."""
        stack: list[tuple[Iterator[Expr], Expr, dict[int, int]]] = [(self._steps(root), root, {})]
        sent: Any = None
        while True:
            steps, node, _ = stack[-1]
            try:
                child = steps.send(sent)  # type: ignore[attr-defined]
                sent = None
                stack.append((self._steps(child), child, {}))
                continue
            except StopIteration as stop:
                text, precedence, depth = self._cut(stop.value, node, root)
            stack.pop()
            outer, self.owner = self.owner, stack[-1][1] if stack else self.owner
            count = stack[-1][2].get(id(node), 0) if stack else 0
            if stack:
                stack[-1][2][id(node)] = count + 1
            sent = self.marked(text, node, count), precedence, depth
            self.owner = outer
            if not stack:
                return sent  # type: ignore[no-any-return]

    def piece(self, root: Expr) -> Piece:
        """Text, precedence and depth of an expression; the stack is explicit, since chains are long."""
        if self.options.marks is not None:
            return self._marked_piece(root)
        stack: list[tuple[Iterator[Expr], Expr]] = []
        value: Piece | None = None
        steps = self._steps(root)
        try:
            child = next(steps)
        except StopIteration as stop:
            return self._cut(stop.value, root, root)
        stack.append((steps, root))
        while True:
            inner = self._steps(child)
            try:
                node, child = child, next(inner)
                stack.append((inner, node))
                continue
            except StopIteration as stop:
                value = self._cut(stop.value, child, root)
            while True:
                steps, node = stack[-1]
                try:
                    child = steps.send(value)  # type: ignore[attr-defined]
                    break
                except StopIteration as stop:
                    stack.pop()
                    value = self._cut(stop.value, node, root)
                    if not stack:
                        return value

    def _cut(self, piece: Piece, node: Expr, root: Expr) -> Piece:
        """A part of ``root``, or the name that it gets: where it nests too deep, and where it is long and used more
        than once (written out, sums of sums of one node with itself have no end)."""
        text, _, depth = piece
        if depth <= _MAX_DEPTH and len(text) <= _LONG:
            return piece
        if self.hoist is not None and not self.quoted:  # in a signature there is no place for statements before
            shared = len(text) > _LONG and E.is_scalar(node) and id(node) in self._shared_in(root)
            if depth > _MAX_DEPTH or shared:
                name = self.hoist(text)
                if shared:
                    self._parts[id(node)] = name
                return name, ATOM, 0
        if len(text) > LONG_TEXT:
            check_length(root)
        return piece

    def _shared_in(self, root: Expr) -> set[int]:
        if self._shared is None or self._shared[0] is not root:
            seen: set[int] = set()
            again: set[int] = set()
            for item in pre_order(root):
                for child in children(item):
                    (again if id(child) in seen else seen).add(id(child))
            self._shared = root, again
        return self._shared[1]

    def forget_parts(self) -> None:
        """A statement ends: the parts that were named for it get names anew."""
        self._parts.clear()
        self._shared = None

    def _steps(self, e: Expr) -> Any:
        if id(e) in self._parts:
            return self._named(e)
        method = _PRINTERS.get(type(e))
        if method is None:
            method = ExprPrinter._unknown
        return method(self, e)

    def _named(self, e: Expr) -> Any:
        yield from ()
        return self._parts[id(e)], ATOM, 0

    def _unknown(self, e: Expr) -> Any:
        yield from ()
        return f"<{type(e).__name__}>", ATOM, 0

    def name_of(self, var: Var) -> str:
        """A variable's name."""
        return self.names.get(var)

    def _var(self, e: Var) -> Any:
        yield from ()
        name = self.name_of(e)
        self.printed.add(id(e))
        return (f"{name}.data" if isinstance(e.ty, BufferType) else name), ATOM, 0

    def _int(self, e: IntImm) -> Any:
        yield from ()
        text = self.literal(e)
        return text, UNARY if text.startswith("-") else ATOM, 0

    def _float(self, e: FloatImm) -> Any:
        yield from ()
        return self.literal(e), ATOM, 0

    def _string(self, e: E.StringImm) -> Any:
        yield from ()
        return quote(e.value), ATOM, 0

    def _infix(self, e: E.BinaryOp) -> Any:
        if isinstance(e, E.Div) and not dtypes.is_float(e.dtype):
            return (yield from self._function("T.Div", (e.a, e.b)))
        if self.style.operators_fold and not self.quoted and _folds(e):
            return (yield from self._function(f"T.{type(e).__name__}", (e.a, e.b)))
        symbol, precedence = _INFIX[type(e)]
        left: Piece = yield e.a
        right: Piece = yield e.b
        logical = isinstance(e, (E.And, E.Or))
        implied = not logical and not self.style.typed_numbers
        if implied and isinstance(e.a, IntImm) and not isinstance(e.b, IntImm) and e.a.dtype != "bool":
            left = _bare(e.a)
        if implied and isinstance(e.b, IntImm) and e.b.dtype != "bool":
            right = _bare(e.b)
        if not logical and _is_number(e.a) and _is_number(e.b):  # two bare numbers would be added by Python
            left = self.attr(e.a), ATOM, 0
        if logical and not _is_bool(e):
            return (yield from self._function(f"T.{type(e).__name__}", (e.a, e.b)))
        above = precedence + 1 if precedence == _COMPARISON else precedence
        text = f"{_wrap(left, above)} {symbol} {_wrap(right, precedence + 1)}"
        return text, precedence, max(left[2], right[2]) + 1

    def _not(self, e: E.Not) -> Any:
        inner: Piece = yield e.a
        return f"not {_wrap(inner, 3)}", 3, inner[2] + 1

    def _function(self, name: str, args: tuple[Expr, ...], *rest: str) -> Any:
        texts: list[str] = []
        depth = 0
        for arg in args:
            piece: Piece = yield arg
            texts.append(piece[0])
            depth = max(depth, piece[2])
        return f"{name}({', '.join([*texts, *rest])})", ATOM, depth + 1

    def _mod(self, e: E.Mod) -> Any:
        return (yield from self._function("T.truncmod", (e.a, e.b)))

    def _min(self, e: E.Min) -> Any:
        return (yield from self._function("T.min", (e.a, e.b)))

    def _max(self, e: E.Max) -> Any:
        return (yield from self._function("T.max", (e.a, e.b)))

    def _select(self, e: E.Select) -> Any:
        return (yield from self._function("T.Select", (e.condition, e.true_value, e.false_value)))

    def _cast(self, e: E.Cast) -> Any:
        value: Piece = yield e.value
        return f"T.Cast({quote(e.dtype)}, {value[0]})", ATOM, value[2] + 1

    def _ramp(self, e: E.Ramp) -> Any:
        return (yield from self._function("T.Ramp", (e.base, e.stride), str(e.lanes)))

    def _broadcast(self, e: E.Broadcast) -> Any:
        return (yield from self._function("T.Broadcast", (e.value,), str(e.lanes)))

    def _shuffle(self, e: E.Shuffle) -> Any:
        texts: list[str] = []
        depth = 0
        for part in (*e.vectors, *e.indices):
            piece: Piece = yield part
            texts.append(piece[0])
            depth = max(depth, piece[2])
        vectors, places = ", ".join(texts[: len(e.vectors)]), ", ".join(texts[len(e.vectors) :])
        return f"T.Shuffle([{vectors}], [{places}])", ATOM, depth + 1

    def _let(self, e: E.Let) -> Any:
        value: Piece = yield e.value
        name = self.names.find(e.var)
        if name is None:
            name = self.names.define(e.var)
            if self.announce is not None:
                self.announce(e.var)
        body: Piece = yield e.body
        return f"T.Let({body[0]}, where={{{name}: {value[0]}}})", ATOM, max(value[2], body[2]) + 2

    def _load(self, e: E.BufferLoad) -> Any:
        if self.style.declare_free:
            self.name_of(e.buffer)  # before the indices' variables
        texts: list[str] = []
        depth = 0
        for index in e.indices:
            piece: Piece = yield index
            texts.append(piece[0])
            depth = max(depth, piece[2])
        outer, self.owner = self.owner, e
        name = self.marked(self.name_of(e.buffer), e.buffer)
        self.owner = outer
        if id(e.buffer) in self.cells:
            return name, ATOM, depth + 1
        return f"{name}[{', '.join(texts) or '()'}]", ATOM, depth + 1

    def _bitwise(self, e: Call, symbol: str, precedence: int) -> Any:
        left: Piece = yield e.args[0]
        right: Piece = yield e.args[1]
        if _is_number(e.args[0]) and _is_number(e.args[1]):
            left = self.attr(e.args[0]), ATOM, 0
        text = f"{_wrap(left, precedence)} {symbol} {_wrap(right, precedence + 1)}"
        return text, precedence, max(left[2], right[2]) + 1

    def _call(self, e: Call) -> Any:
        op = e.op
        if isinstance(op, Op) and op.name.startswith("tirx."):
            name = op.name.partition(".")[2]
            if self.style.infix and op.name in _BITWISE:
                return (yield from self._bitwise(e, *_BITWISE[op.name]))
            if self.style.infix and op.name == "tirx.bitwise_not" and not _is_number(e.args[0]):
                inner = yield e.args[0]
                return f"~{_wrap(inner, UNARY)}", UNARY, inner[2] + 1
            place = op.facts.get("result")
            if place == "first":
                first = self._result(e)
                inner = yield from self._function("", e.args)
                return f"T.{name}({first}{', ' if e.args else ''}{inner[0][1:]}", ATOM, inner[2]
            if place == "last":
                last = self._result(e)
                return (yield from self._function(f"T.{name}", e.args, last))
            if name == "call_packed":
                result = e.ty_args[0].dtype  # type: ignore[attr-defined]
                said = [] if self.style.calls_stand_alone and result == "int32" else [f"dtype={quote(result)}"]
                return (yield from self._function("T.call_packed", e.args, *said))
            return (yield from self._function(f"T.{name}", e.args))
        if isinstance(op, Op):
            special = _CALL_FORMS.get(op.facts.get("prints", ""))
            return (yield from special(self, e)) if special is not None else (yield from self._operator(e, op))
        args = yield from self._values(e.args)
        if isinstance(op, G.ExternFunc):
            notes = [f"{name}={self.attr(value)}" for name, value in e.attrs.items()]
            if notes and self.style.all_attributes:
                notes.insert(0, 'attrs_type_key="ir.DictAttrs"')
            rest = [quote(op.global_symbol), *args, *notes, *self._types("ty_args", e.ty_args)]
            return f"R.call_packed({', '.join(rest)})", ATOM, 1
        callee: Piece = yield op
        return f"{_wrap(callee, ATOM)}({', '.join(args)})", ATOM, 1

    def _result(self, call: Call) -> str:
        """The dtype that a call of a function by name gives, as its argument."""
        ty = call.ty_args[0]
        if not isinstance(ty, PrimType):
            return '"void"'
        return self.style.handle if ty.dtype == "handle" else quote(ty.dtype)

    # ------------------------------------------------------------------------------------------------- graph values

    def _values(self, values: tuple[Expr, ...]) -> Any:
        """Arguments that are any graph values."""
        texts: list[str] = []
        for value in values:
            piece: Piece = yield value
            texts.append(self._as_value(value, piece[0]))
        return texts

    def _as_value(self, value: Expr, text: str) -> str:
        if isinstance(value, E.StringImm):
            return f"R.str({text})"
        if E.is_scalar(value) and not isinstance(value, (Var, Call, G.DataTypeImm)):
            return self.style.scalar_argument.format(text)
        return text

    def value(self, e: Expr) -> str:
        """A graph value where Python would read a bare literal otherwise: ``R.prim_value(3)``, ``R.str("a")``."""
        return self._as_value(e, self.expr(e))

    def _operator(self, e: Call, op: Op) -> Any:
        texts: list[str] = []
        arguments = [p for p in op.params if not p.is_attr]
        rest = list(e.args)
        depth = 0
        for param in arguments:
            taken = rest if param.kind == "varargs" else rest[:1]
            rest = rest[len(taken) :]
            for arg in taken:
                piece: Piece = yield arg
                depth = max(depth, piece[2])
                texts.append(self._argument(param, arg, piece[0]))
        for arg in rest:
            piece = yield arg
            texts.append(self._as_value(arg, piece[0]))
        texts += self._attributes(op, e.attrs)
        texts += self._types("ty_args", e.ty_args)
        return f"{self.step(f'R.{op.short_name}', e, 'op')}({', '.join(texts)})", ATOM, depth + 1

    def _argument(self, param: Param, arg: Expr, text: str) -> str:
        if isinstance(arg, G.ExternFunc):
            return quote(arg.global_symbol)
        if param.kind == "shape" and isinstance(arg, G.ShapeExpr):
            inner = ", ".join(self.dim(v) for v in arg.values)
            comma = "," if len(arg.values) == 1 and self.style.shape_argument[0] == "(" else ""
            return self.style.shape_argument.format(inner + comma)
        return self._as_value(arg, text)

    def _attributes(self, op: Op, attrs: dict[str, Any]) -> list[str]:
        defaults = {p.name: p.default for p in op.params if p.is_attr}
        texts = []
        written: RelaxText = op.facts.get(self.style.operator_text, RelaxText())
        first = [name for name in written.first if name in attrs]
        for name in [*first, *(name for name in attrs if name not in first)]:
            value = attrs[name]
            if value is None and name in written.hidden:
                continue
            default = REQUIRED if self.style.all_attributes else defaults.get(name, REQUIRED)
            if default is not REQUIRED and _means_default(op, attrs, name, default):
                continue
            text = self.attr(value)
            if name in written.strings:
                text = f"R.str({text})"
            elif name in written.floats:
                text = self.attr(_floats(value))
            text = self.step(text, attrs, name)
            texts.append(text if written.positional else f"{name}={text}")
        return texts

    def _types(self, keyword: str, types: tuple[Type, ...]) -> list[str]:
        if not types:
            return []
        if keyword == "out_ty":
            types = result_types(types)
        inner = ", ".join(self.type(t) for t in types)
        if keyword == "out_ty":
            return [f"out_ty={inner if len(types) == 1 else '[' + inner + ']'}"]
        return [f"{keyword}={(self.style.one_type if len(types) == 1 else self.style.several_types).format(inner)}"]

    def _destination(self, e: Call) -> Any:
        op = e.op
        assert isinstance(op, Op)
        callee: Piece = yield e.args[0]
        first = quote(e.args[0].global_symbol) if isinstance(e.args[0], G.ExternFunc) else callee[0]
        args: Piece = yield e.args[1]
        texts = [first, args[0]]
        if self.style.types_first:
            texts += self._types("out_ty", e.ty_args)
        if "inplace_indices" in e.attrs:
            texts.append(f"inplace_indices={list(e.attrs['inplace_indices'])}")
        if not self.style.types_first:
            texts += self._types("out_ty", e.ty_args)
        if len(e.args) > 2:
            symbols: Piece = yield e.args[2]
            texts.append(f"tir_vars={symbols[0]}")
        if "te_grad_name" in e.attrs:
            texts.append(f"te_grad_name={quote(e.attrs['te_grad_name'])}")
            if e.attrs.get("te_grad_kwargs"):
                texts.append(f"te_grad_kwargs={self.attr(e.attrs['te_grad_kwargs'])}")
        return f"R.{op.short_name}({', '.join(texts)})", ATOM, 2

    def _pure_packed(self, e: Call) -> Any:
        callee = e.args[0]
        first: Piece = (quote(callee.global_symbol), ATOM, 0) if isinstance(callee, G.ExternFunc) else (yield callee)
        args = yield from self._values(e.args[1:])
        texts = [first[0], *args, *self._types("ty_args", e.ty_args)]
        return f"R.call_pure_packed({', '.join(texts)})", ATOM, 1

    def _view(self, e: Call) -> Any:
        texts: list[str] = []
        for arg in e.args:
            piece: Piece = yield arg
            absent = isinstance(arg, G.Tuple) and not arg.fields
            texts.append("R.tuple()" if absent else self._as_value(arg, piece[0]))
        return f"R.memory.view({', '.join(texts)})", ATOM, 1

    def _hint(self, e: Call) -> Any:
        piece: Piece = yield e.args[0]
        kind, index, scope = (self.step(self.attr(v), e.attrs, k) for k, v in e.attrs.items())
        text = f"R.device(device_type={kind}, index={index})"
        return f"R.hint_on_device({self._as_value(e.args[0], piece[0])}, {text}, {scope})", ATOM, piece[2] + 1

    def _tuple(self, e: G.Tuple) -> Any:
        if not e.fields:
            return self.style.empty_tuple, ATOM, 1
        texts = yield from self._values(e.fields)
        inner = ", ".join(texts)
        return (f"({inner},)" if len(texts) == 1 else f"({inner})"), ATOM, 1

    def _item(self, e: E.TupleGetItem) -> Any:
        inner: Piece = yield e.tuple_value
        return f"{_wrap(inner, ATOM)}[{e.index}]", ATOM, inner[2] + 1

    def _shape(self, e: G.ShapeExpr) -> Any:
        yield from ()
        return f"R.shape([{', '.join(self.dim(v) for v in e.values)}])", ATOM, 1

    def _dtype_value(self, e: G.DataTypeImm) -> Any:
        yield from ()
        return f"R.dtype({quote(e.value)})", ATOM, 0

    def _global(self, e: G.GlobalVar) -> Any:
        yield from ()
        name = self.functions.get(e.name_hint, e.name_hint)
        alone = self.style.declare_free and e.name_hint not in self.functions  # outside of a module
        return (name if alone else f"{self.module_name()}.{name}"), ATOM, 0

    def module_name(self) -> str:
        """What the text calls the module whose function it is in."""
        return self.options.module_alias or self.module or "Module"

    def _extern(self, e: G.ExternFunc) -> Any:
        yield from ()
        ty = "" if getattr(e.ty, "params", None) is None else f", {self.type(e.ty)}"
        return f"R.ExternFunc({quote(e.global_symbol)}{ty})", ATOM, 0

    def _operator_value(self, e: Op) -> Any:
        yield from ()
        prefix = {"relax": "R", "tirx": "T"}.get(e.name.partition(".")[0], "R")
        return f"{prefix}.{e.short_name}", ATOM, 0

    def _constant(self, e: G.Constant) -> Any:
        yield from ()
        text = inline_constant(e.data, self.style.inline_elements, self.style.float_digits)
        if text is None:
            number = next((i for i, c in enumerate(self.constants) if c is e), len(self.constants))
            if number == len(self.constants):
                self.constants.append(e)
            text = f'metadata["{self.style.constants}"][{number}]'
        return text, ATOM, 0

    # ---------------------------------------------------------------------------------------------------- dimensions

    def dim(self, e: Expr, default: str = "int64") -> str:
        """One dimension: a bare number has the dtype ``default``; with symbols in a signature it is text."""
        if isinstance(e, IntImm):
            return str(e.value) if e.dtype == default and not self.loop_dims else f"T.{e.dtype}({e.value})"
        text = self.expr(e)
        symbols = [n for n in pre_order(e) if isinstance(n, Var)] if self.quoted else []
        said = self.in_sight if isinstance(e, Var) else self.parameters  # arithmetic on type variables is text
        if all(id(n) in said for n in symbols):
            return text
        if self.style.type_variables and all(n.dtype != "int64" for n in symbols):
            if all(id(n) in self.in_sight for n in symbols):
                return text
            self.in_sight |= {id(n) for n in symbols}  # the first occurrence says what it is
        return quote(self.options.rename(text))

    def bounds(self, low: Expr, extent: Expr) -> tuple[str, str] | None:
        """The ends of a half-open range whose extent the parser finds again; None when the dtypes differ."""
        if E.scalar_dtype(low) != E.scalar_dtype(extent):
            return None
        if isinstance(low, IntImm):
            if low.value == 0:
                return "0", self.expr(extent)
            if isinstance(extent, IntImm):
                row = dtypes.row(low.dtype)
                if not low.value + extent.value < 1 << (row.bits - 1):
                    return None
                return self.literal(low), self.literal(IntImm(low.value + extent.value, low.dtype))
        total = E.Add(low, extent)
        if isinstance(extent, E.Sub) and structural_equal(extent.b, low) and not isinstance(low, IntImm):
            if not (isinstance(extent.a, E.Add) and structural_equal(extent.a.a, low)):
                return self.expr(low), self.expr(extent.a)
        return self.expr(low), self.expr(total)

    def region(self, region: BufferRegion) -> str:
        """``A[i, 0:4]``."""
        if self.style.declare_free:
            self.name_of(region.buffer)
        texts = []
        for r in region.region:
            one = isinstance(r.extent, IntImm) and r.extent.value == 1
            if one and E.scalar_dtype(r.min) == E.scalar_dtype(r.extent):
                texts.append(self.expr(r.min))
                continue
            ends = self.bounds(r.min, r.extent)
            texts.append(f"{ends[0]}:{ends[1]}" if ends else f"T.Range({self.expr(r.min)}, {self.expr(r.extent)})")
        outer, self.owner = self.owner, region
        name = self.marked(self.name_of(region.buffer), region.buffer)
        self.owner = outer
        return self.marked(f"{name}[{', '.join(texts) or '()'}]", region)


def _is_number(e: Expr) -> bool:
    return isinstance(e, IntImm) and e.dtype != "bool"


def _means_default(op: Op, attrs: Mapping[str, Any], name: str, default: Any) -> bool:
    """Whether a call without the attribute would store the same attributes."""
    value = attrs[name]
    if type(default) is type(value) and default == value:
        return True
    return "settle_attrs" in op.facts and settled_attrs(op, {**attrs, name: default}) == attrs


def _floats(value: Any) -> Any:
    """An attribute's numbers as float32 literals."""
    if isinstance(value, (tuple, list)):
        return [_floats(v) for v in value]
    return FloatImm(value, "float32") if isinstance(value, float) else value


def _wrap(piece: Piece, minimum: int) -> str:
    return f"({piece[0]})" if piece[1] < minimum else piece[0]


def _bare(e: IntImm) -> Piece:
    """A number whose dtype follows from the other operand."""
    return str(e.value), UNARY if e.value < 0 else ATOM, 0


def _folds(e: E.BinaryOp) -> bool:
    """Whether Python's operator on the operands would make something else by Relax's conventions."""
    return joins_to_one(e) if isinstance(e, (E.And, E.Or)) else folded(e) is not None


def _is_bool(e: E.BinaryOp) -> bool:
    return E.scalar_dtype(e.a).startswith("bool")


def inline_constant(data: Any, limit: int = 16, digits: int = 0) -> str | None:
    """``R.const(...)`` of a small constant; None when it is large or would not read back to the same bytes."""
    array = np.asarray(data)
    name = dtypes.from_numpy(array.dtype)
    if array.size > limit > 0 or (array.size == 0 and array.ndim > 0):
        return None
    if limit == 0 and (array.ndim > 0 or dtypes.row(name).is_coded or dtypes.row(name).kind == "uint"):
        return None

    def text(value: Any) -> str:
        if isinstance(value, list):
            return "[" + ", ".join(text(v) for v in value) + "]"
        return value if isinstance(value, str) else repr(value)

    def number(value: Any) -> Any:
        if dtypes.is_float(name):
            shown = float_text(float(value), name, digits)
            return f"float({shown})" if shown.startswith('"') and limit > 0 else shown
        return value.item()

    flat = np.empty(array.shape, dtype=object)
    for index in np.ndindex(array.shape):
        flat[index] = number(array[index])
    if dtypes.is_float(name) and np.isnan(array).any():
        canonical = np.where(np.isnan(array), np.array(float("nan"), array.dtype), array)
        if canonical.astype(array.dtype).tobytes() != array.tobytes():
            return None
    return f"R.const({text(flat.tolist())}, {quote(name)})"


_PRINTERS: dict[type[Expr], Callable[[ExprPrinter, Any], Any]] = {
    Var: ExprPrinter._var,
    E.DataflowVar: ExprPrinter._var,
    IntImm: ExprPrinter._int,
    FloatImm: ExprPrinter._float,
    E.StringImm: ExprPrinter._string,
    **dict.fromkeys(_INFIX, ExprPrinter._infix),
    E.Not: ExprPrinter._not,
    E.Mod: ExprPrinter._mod,
    E.Min: ExprPrinter._min,
    E.Max: ExprPrinter._max,
    E.Select: ExprPrinter._select,
    E.Cast: ExprPrinter._cast,
    E.Ramp: ExprPrinter._ramp,
    E.Broadcast: ExprPrinter._broadcast,
    E.Shuffle: ExprPrinter._shuffle,
    E.Let: ExprPrinter._let,
    E.BufferLoad: ExprPrinter._load,
    Call: ExprPrinter._call,
    G.Tuple: ExprPrinter._tuple,
    E.TupleGetItem: ExprPrinter._item,
    G.ShapeExpr: ExprPrinter._shape,
    G.DataTypeImm: ExprPrinter._dtype_value,
    G.GlobalVar: ExprPrinter._global,
    G.ExternFunc: ExprPrinter._extern,
    G.Constant: ExprPrinter._constant,
    Op: ExprPrinter._operator_value,
}
_CALL_FORMS: dict[str, Callable[[ExprPrinter, Call], Any]] = {
    "destination": ExprPrinter._destination,
    "packed": ExprPrinter._pure_packed,
    "view": ExprPrinter._view,
    "hint": ExprPrinter._hint,
}
"""How the calls of operators that declare ``prints=`` are written."""
