"""Documents as Python text.

Parentheses stand where Python's grammar needs them and nowhere else; the text of an expression, read by Python, is
the same tree again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from supple.ir.print_names import quote
from supple.script.printer import doc as D
from supple.script.printer.access_path import AccessPath
from supple.script.printer.doc import OperationKind as K

# Precedence, loosest first: https://docs.python.org/3/reference/expressions.html#operator-precedence
_LAMBDA, _CONDITION, _OR, _AND, _NOT, _COMPARE, _BIT_OR, _BIT_XOR, _BIT_AND, _SHIFT, _SUM, _PRODUCT, _SIGN, _POWER = (
    range(14)
)
_PRIMARY = 14

_BINARY: dict[K, tuple[str, int]] = {
    K.Or: ("or", _OR), K.And: ("and", _AND), K.Lt: ("<", _COMPARE), K.LtE: ("<=", _COMPARE), K.Eq: ("==", _COMPARE),
    K.NotEq: ("!=", _COMPARE), K.Gt: (">", _COMPARE), K.GtE: (">=", _COMPARE), K.BitOr: ("|", _BIT_OR),
    K.BitXor: ("^", _BIT_XOR), K.BitAnd: ("&", _BIT_AND), K.LShift: ("<<", _SHIFT), K.RShift: (">>", _SHIFT),
    K.Add: ("+", _SUM), K.Sub: ("-", _SUM), K.Mult: ("*", _PRODUCT), K.Div: ("/", _PRODUCT),
    K.FloorDiv: ("//", _PRODUCT), K.Mod: ("%", _PRODUCT), K.MatMul: ("@", _PRODUCT), K.Pow: ("**", _POWER),
}  # fmt: skip
_UNARY: dict[K, tuple[str, int]] = {K.USub: ("-", _SIGN), K.Invert: ("~", _SIGN), K.Not: ("not ", _NOT)}


def to_python_script(
    doc: D.Doc,
    indent_spaces: int = 4,
    print_line_numbers: bool = False,
    num_context_lines: int | None = None,
    path_to_underline: Sequence[AccessPath] | None = None,
) -> str:
    """The text of a document.

    ``path_to_underline`` marks what shows these objects, or their nearest parents that are shown, with ``^^^`` below;
    ``num_context_lines`` then leaves out lines further away. Raises ``ValueError`` for documents that are no Python:
    an assignment of nothing, a comment of several lines behind a statement.
    """
    paths = list(path_to_underline or ())
    writer = _Writer(indent_spaces, [_nearest(doc, path) for path in paths])
    writer.any(doc)
    header = [f"Access path: {path}" for path in paths]
    for path, shown in zip(paths, writer.underlined, strict=True):
        if shown is None:
            header.append("Note: No visible object for this path is rendered in TVMScript.")
        elif shown != path:
            header.append("Note: The underlined object is the nearest visible parent of this path.")
    lines = _layout("".join(writer.parts), writer.marks, print_line_numbers, num_context_lines)
    return "\n".join([*header, "", *lines] if header else lines)


def _nearest(root: D.Doc, path: AccessPath) -> AccessPath | None:
    """The longest path of a document below ``root`` that leads to ``path``."""
    found: AccessPath | None = None
    stack: list[Any] = [root]
    while stack:
        current = stack.pop()
        if isinstance(current, D.Doc):
            for own in current.source_paths:
                if own.is_prefix_of(path) and (found is None or len(own.steps) > len(found.steps)):
                    found = own
            stack.extend(vars(current).values())
        elif isinstance(current, (list, tuple)):
            stack.extend(current)
        elif isinstance(current, dict):
            stack.extend(current.values())
    return found


@dataclass(frozen=True)
class _Mark:
    """Offsets of text to underline."""

    start: int
    stop: int


class _Writer:
    """Collects the text; ``marks`` are the parts to underline."""

    def __init__(self, indent_spaces: int, underlined: list[AccessPath | None]) -> None:
        self.parts: list[str] = []
        self.length = 0
        self.step = indent_spaces
        self.indent = 0
        self.underlined = underlined
        self.marks: list[_Mark] = []

    def write(self, text: str) -> None:
        self.parts.append(text)
        self.length += len(text)

    def line(self) -> None:
        self.write("\n" + " " * self.indent)

    def any(self, doc: D.Doc) -> None:
        """An expression, a statement, or a block of them."""
        if isinstance(doc, D.ExprDoc):
            self.expr(doc)
        elif isinstance(doc, D.StmtBlockDoc):
            self.marked(doc, lambda: self.statements(doc.stmts))
        else:
            self.statement(doc)

    def marked(self, doc: D.Doc, body: Callable[[], None]) -> None:
        """Run ``body``; what it writes is underlined if the document shows an underlined object."""
        start = self.length
        body()
        if any(path is not None and path in doc.source_paths for path in self.underlined):
            self.marks.append(_Mark(start, self.length))

    # ---------------------------------------------------------------------------------------------------- expressions

    def expr(self, doc: D.ExprDoc, least: int = _LAMBDA) -> None:
        """An expression, in parentheses when it binds looser than ``least``."""
        inside = _precedence(doc) < least
        if inside:
            self.write("(")
        self.marked(doc, lambda: _EXPRESSIONS[type(doc)](self, doc))
        if inside:
            self.write(")")

    def list(self, docs: Sequence[D.ExprDoc]) -> None:
        for position, doc in enumerate(docs):
            if position:
                self.write(", ")
            self.expr(doc)

    def bare(self, doc: D.ExprDoc) -> None:
        """A tuple without its parentheses, anything else as it is."""
        if isinstance(doc, D.TupleDoc) and doc.elements:
            self.marked(doc, lambda: self.list(doc.elements))
            if len(doc.elements) == 1:
                self.write(",")
        else:
            self.expr(doc)

    # ----------------------------------------------------------------------------------------------------- statements

    def statements(self, docs: Sequence[D.StmtDoc]) -> None:
        for position, doc in enumerate(docs):
            if position:
                self.line()
            self.statement(doc)
            if isinstance(doc, D.FunctionDoc) and position + 1 < len(docs):
                self.write("\n")  # an empty line after a function

    def statement(self, doc: D.Doc) -> None:
        write = _STATEMENTS.get(type(doc))
        if write is None:
            raise TypeError(f"expected a document, got {type(doc).__name__}")
        self.marked(doc, lambda: write(self, doc))

    def suite(self, docs: Sequence[D.StmtDoc], docstring: str | None = None) -> None:
        """The indented lines of a compound statement; ``pass`` where there are none."""
        self.indent += self.step
        self.line()
        if docstring is not None:
            self.docstring(docstring)
            self.line()
        if docs:
            self.statements(docs)
        else:
            self.write("pass")
        self.indent -= self.step

    def docstring(self, text: str) -> None:
        self.write('"""')
        for line in text.splitlines():
            self.line()
            self.write(line)
        self.line()
        self.write('"""')

    def above(self, comment: str | None) -> None:
        """A comment above a compound statement."""
        if comment is None:
            return
        for line in comment.splitlines():
            self.write(f"# {line}")
            self.line()

    def behind(self, comment: str | None) -> None:
        """A comment at the end of a line."""
        if comment is None:
            return
        if "\n" in comment:
            raise ValueError("a comment behind a statement has one line")
        self.write(f"  # {comment}".rstrip())


def _precedence(doc: D.ExprDoc) -> int:
    if isinstance(doc, D.OperationDoc):
        if doc.kind is K.IfThenElse:
            return _CONDITION
        return (_UNARY.get(doc.kind) or _BINARY[doc.kind])[1]
    return _LAMBDA if isinstance(doc, D.LambdaDoc) else _PRIMARY


def _literal(writer: _Writer, doc: D.LiteralDoc) -> None:
    value = doc.value
    if isinstance(value, float) and not math.isfinite(value):
        value = repr(value)
    writer.write(quote(value) if isinstance(value, str) else repr(value))


def _attribute(writer: _Writer, doc: D.AttrAccessDoc) -> None:
    writer.expr(doc.value, _PRIMARY)
    writer.write(f".{doc.name}")


def _index(writer: _Writer, doc: D.IndexDoc) -> None:
    writer.expr(doc.value, _PRIMARY)
    writer.write("[")
    if doc.indices:
        writer.list(doc.indices)
    else:
        writer.write("()")
    writer.write("]")


def _slice(writer: _Writer, doc: D.SliceDoc) -> None:
    if doc.start is not None:
        writer.expr(doc.start)
    writer.write(":")
    if doc.stop is not None:
        writer.expr(doc.stop)
    if doc.step is not None:
        writer.write(":")
        writer.expr(doc.step)


def _call(writer: _Writer, doc: D.CallDoc) -> None:
    writer.expr(doc.callee, _PRIMARY)
    writer.write("(")
    writer.list(doc.args)
    for position, (name, value) in enumerate(doc.kwargs.items()):
        writer.write(", " if position or doc.args else "")
        writer.write(f"{name}=")
        writer.expr(value)
    writer.write(")")


def _operation(writer: _Writer, doc: D.OperationDoc) -> None:
    if doc.kind is K.IfThenElse:
        condition, then, otherwise = doc.operands
        writer.expr(then, _CONDITION + 1)
        writer.write(" if ")
        writer.expr(condition, _CONDITION + 1)
        writer.write(" else ")
        writer.expr(otherwise, _CONDITION + 1)
    elif doc.kind in _UNARY:
        sign, level = _UNARY[doc.kind]
        writer.write(sign)
        writer.expr(doc.operands[0], level)
    else:
        sign, level = _BINARY[doc.kind]
        # ** groups to the right and takes a signed exponent; comparisons do not group, they chain
        left = level + 1 if level in (_POWER, _COMPARE) else level
        right = _SIGN if level == _POWER else level + 1
        writer.expr(doc.operands[0], left)
        writer.write(f" {sign} ")
        writer.expr(doc.operands[1], right)


def _lambda(writer: _Writer, doc: D.LambdaDoc) -> None:
    writer.write("lambda ")
    writer.list(doc.args)
    writer.write(": ")
    writer.expr(doc.body)


def _tuple(writer: _Writer, doc: D.TupleDoc) -> None:
    writer.write("(")
    writer.list(doc.elements)
    writer.write(",)" if len(doc.elements) == 1 else ")")


def _list(writer: _Writer, doc: D.ListDoc) -> None:
    writer.write("[")
    writer.list(doc.elements)
    writer.write("]")


def _dict(writer: _Writer, doc: D.DictDoc) -> None:
    writer.write("{")
    for position, (key, value) in enumerate(zip(doc.keys, doc.values, strict=True)):
        writer.write(", " if position else "")
        writer.expr(key)
        writer.write(": ")
        writer.expr(value)
    writer.write("}")


def _assign(writer: _Writer, doc: D.AssignDoc) -> None:
    if doc.rhs is None and doc.annotation is None:
        raise ValueError("AssignDoc: an assignment needs a value or an annotation")
    _binding(writer, doc)
    writer.behind(doc.comment)


def _binding(writer: _Writer, doc: D.AssignDoc) -> None:
    """``lhs: annotation = rhs``, as a statement or as a parameter."""
    if doc.annotation is None:
        writer.bare(doc.lhs)
    else:
        writer.expr(doc.lhs)
        writer.write(": ")
        writer.expr(doc.annotation)
    if doc.rhs is not None:
        writer.write(" = ")
        writer.bare(doc.rhs)


def _if(writer: _Writer, doc: D.IfDoc) -> None:
    writer.above(doc.comment)
    writer.write("if ")
    writer.expr(doc.predicate)
    writer.write(":")
    writer.suite(doc.then_branch)
    if doc.else_branch:
        writer.line()
        writer.write("else:")
        writer.suite(doc.else_branch)


def _while(writer: _Writer, doc: D.WhileDoc) -> None:
    writer.above(doc.comment)
    writer.write("while ")
    writer.expr(doc.predicate)
    writer.write(":")
    writer.suite(doc.body)


def _for(writer: _Writer, doc: D.ForDoc) -> None:
    writer.above(doc.comment)
    writer.write("for ")
    writer.bare(doc.lhs)
    writer.write(" in ")
    writer.expr(doc.rhs)
    writer.write(":")
    writer.suite(doc.body)


def _scope(writer: _Writer, doc: D.ScopeDoc) -> None:
    writer.above(doc.comment)
    writer.write("with ")
    writer.expr(doc.rhs)
    if doc.lhs is not None:
        writer.write(" as ")
        writer.expr(doc.lhs)
    writer.write(":")
    writer.suite(doc.body)


def _expression(writer: _Writer, doc: D.ExprStmtDoc) -> None:
    writer.expr(doc.expr)
    writer.behind(doc.comment)


def _assert(writer: _Writer, doc: D.AssertDoc) -> None:
    writer.write("assert ")
    writer.expr(doc.test)
    if doc.msg is not None:
        writer.write(", ")
        writer.expr(doc.msg)
    writer.behind(doc.comment)


def _return(writer: _Writer, doc: D.ReturnDoc) -> None:
    writer.write("return ")
    writer.expr(doc.value)
    writer.behind(doc.comment)


def _decorators(writer: _Writer, docs: Sequence[D.ExprDoc]) -> None:
    for doc in docs:
        writer.write("@")
        writer.expr(doc)
        writer.line()


def _function(writer: _Writer, doc: D.FunctionDoc) -> None:
    _decorators(writer, doc.decorators)
    writer.write("def ")
    writer.expr(doc.name)
    writer.write("(")
    for position, arg in enumerate(doc.args):
        if arg.comment is not None:
            raise ValueError("a parameter has no comment")
        writer.write(", " if position else "")
        writer.marked(arg, lambda arg=arg: _binding(writer, arg))  # type: ignore[misc]
    writer.write(")")
    if doc.return_type is not None:
        writer.write(" -> ")
        writer.expr(doc.return_type)
    writer.write(":")
    writer.suite(doc.body, doc.comment)


def _class(writer: _Writer, doc: D.ClassDoc) -> None:
    _decorators(writer, doc.decorators)
    writer.write("class ")
    writer.expr(doc.name)
    writer.write(":")
    writer.suite(doc.body, doc.comment)


def _comment(writer: _Writer, doc: D.CommentDoc) -> None:
    for position, line in enumerate((doc.comment or "").splitlines()):
        if position:
            writer.line()
        writer.write(f"# {line}")


def _docstring(writer: _Writer, doc: D.DocStringDoc) -> None:
    if doc.comment:
        writer.docstring(doc.comment)


_EXPRESSIONS: dict[type, Callable[[_Writer, Any], None]] = {
    D.LiteralDoc: _literal,
    D.IdDoc: lambda writer, doc: writer.write(doc.name),
    D.AttrAccessDoc: _attribute,
    D.IndexDoc: _index,
    D.CallDoc: _call,
    D.OperationDoc: _operation,
    D.LambdaDoc: _lambda,
    D.TupleDoc: _tuple,
    D.ListDoc: _list,
    D.DictDoc: _dict,
    D.SliceDoc: _slice,
}
_STATEMENTS: dict[type, Callable[[_Writer, Any], None]] = {
    D.AssignDoc: _assign,
    D.IfDoc: _if,
    D.WhileDoc: _while,
    D.ForDoc: _for,
    D.ScopeDoc: _scope,
    D.ExprStmtDoc: _expression,
    D.AssertDoc: _assert,
    D.ReturnDoc: _return,
    D.FunctionDoc: _function,
    D.ClassDoc: _class,
    D.CommentDoc: _comment,
    D.DocStringDoc: _docstring,
}

# ------------------------------------------------------------------------------------------------- lines and underlines


def _layout(text: str, marks: list[_Mark], numbered: bool, context: int | None) -> list[str]:
    """The lines with numbers and underlines; lines further than ``context`` from an underline are left out."""
    lines = [line.rstrip() for line in text.split("\n")]
    below = _underlines(text, marks)
    kept = set(range(len(lines)))
    if context is not None and below:
        kept = {n for at in below for n in range(at - context, at + context + 1)}
    width = len(str(len(lines))) + 1 if numbered else 0
    result: list[str] = []
    skipped: list[str] = []

    def resume() -> None:
        if skipped:  # a note is not shorter than one line
            result.extend(skipped if len(skipped) == 1 else [f"(... {len(skipped)} lines skipped ...)"])
            skipped.clear()

    for number, line in enumerate(lines):
        shown = f"{number + 1:>{width - 1}} {line}".rstrip() if numbered else line
        if number not in kept:
            skipped.append(shown)
            continue
        resume()
        result.append(shown)
        if number in below:
            result.append(" " * width + below[number])
    resume()
    return result


def _underlines(text: str, marks: list[_Mark]) -> dict[int, str]:
    """The text below each line that shows something marked."""
    found: dict[int, str] = {}
    start = 0
    for number, line in enumerate(text.split("\n")):
        body = len(line) - len(line.lstrip())
        under = [" "] * len(line)
        for mark in marks:
            for column in range(max(mark.start - start, body), min(mark.stop - start, len(line))):
                under[column] = "^"
        if "^" in under:
            found[number] = "".join(under).rstrip()
        start += len(line) + 1
    return found
