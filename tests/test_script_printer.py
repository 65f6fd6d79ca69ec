"""Documents as Python text: every expression reads back to the same tree; statements have Python's form."""

from __future__ import annotations

import ast
import textwrap
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supple.script.printer.access_path import AccessPath
from supple.script.printer.doc import (
    AssertDoc,
    AssignDoc,
    AttrAccessDoc,
    CallDoc,
    ClassDoc,
    CommentDoc,
    DictDoc,
    DocStringDoc,
    ExprDoc,
    ExprStmtDoc,
    ForDoc,
    FunctionDoc,
    IdDoc,
    IfDoc,
    IndexDoc,
    LambdaDoc,
    ListDoc,
    LiteralDoc,
    OperationDoc,
    OperationKind,
    ReturnDoc,
    ScopeDoc,
    SliceDoc,
    StmtBlockDoc,
    StmtDoc,
    TupleDoc,
    WhileDoc,
)
from supple.script.printer.doc_printer import to_python_script

K = OperationKind
X, Y, Z = IdDoc("x"), IdDoc("y"), IdDoc("z")

_UNARY: dict[OperationKind, Any] = {K.USub: ast.USub, K.Invert: ast.Invert, K.Not: ast.Not}
_COMPARE: dict[OperationKind, Any] = {
    K.Lt: ast.Lt, K.LtE: ast.LtE, K.Eq: ast.Eq, K.NotEq: ast.NotEq, K.Gt: ast.Gt, K.GtE: ast.GtE,
}  # fmt: skip
_BOOLEAN: dict[OperationKind, Any] = {K.And: ast.And, K.Or: ast.Or}


def tree(doc: ExprDoc) -> ast.expr:
    """The syntax tree that a document stands for."""
    if isinstance(doc, LiteralDoc):
        return ast.Constant(doc.value)
    if isinstance(doc, IdDoc):
        return ast.Name(doc.name, ast.Load())
    if isinstance(doc, AttrAccessDoc):
        return ast.Attribute(tree(doc.value), doc.name, ast.Load())
    if isinstance(doc, IndexDoc):
        parts = [tree(i) for i in doc.indices]
        index = parts[0] if len(parts) == 1 else ast.Tuple(parts, ast.Load())
        return ast.Subscript(tree(doc.value), index, ast.Load())
    if isinstance(doc, SliceDoc):
        return ast.Slice(*(None if p is None else tree(p) for p in (doc.start, doc.stop, doc.step)))
    if isinstance(doc, CallDoc):
        keywords = [ast.keyword(k, tree(v)) for k, v in doc.kwargs.items()]
        return ast.Call(tree(doc.callee), [tree(a) for a in doc.args], keywords)
    if isinstance(doc, LambdaDoc):
        args = ast.arguments([], [ast.arg(a.name) for a in doc.args], None, [], [], None, [])
        return ast.Lambda(args, tree(doc.body))
    if isinstance(doc, TupleDoc):
        return ast.Tuple([tree(e) for e in doc.elements], ast.Load())
    if isinstance(doc, ListDoc):
        return ast.List([tree(e) for e in doc.elements], ast.Load())
    if isinstance(doc, DictDoc):
        return ast.Dict([tree(k) for k in doc.keys], [tree(v) for v in doc.values])
    assert isinstance(doc, OperationDoc)
    operands = [tree(o) for o in doc.operands]
    if doc.kind in _UNARY:
        return ast.UnaryOp(_UNARY[doc.kind](), operands[0])
    if doc.kind in _COMPARE:
        return ast.Compare(operands[0], [_COMPARE[doc.kind]()], [operands[1]])
    if doc.kind in _BOOLEAN:
        return ast.BoolOp(_BOOLEAN[doc.kind](), operands)
    if doc.kind is K.IfThenElse:
        return ast.IfExp(operands[0], operands[1], operands[2])
    name = "MatMult" if doc.kind is K.MatMul else doc.kind.name
    return ast.BinOp(operands[0], getattr(ast, name)(), operands[1])


def flat(node: ast.expr) -> str:
    """A tree as text; ``a and b and c`` is one node in Python, however it is grouped to the left."""

    class Join(ast.NodeTransformer):
        def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
            self.generic_visit(node)
            first = node.values[0]
            if isinstance(first, ast.BoolOp) and type(first.op) is type(node.op):
                node.values[:1] = first.values
            return node

    return ast.dump(Join().visit(node))


_LEAVES = st.one_of(
    st.sampled_from(["a", "b", "name"]).map(IdDoc),
    st.one_of(
        st.integers(0, 10**6), st.booleans(), st.none(), st.text(max_size=4), st.floats(0, 1e30, allow_nan=False)
    ).map(LiteralDoc),
)


def _wider(inner: st.SearchStrategy[ExprDoc]) -> st.SearchStrategy[ExprDoc]:
    names = st.lists(st.sampled_from(["p", "q"]).map(IdDoc), unique_by=lambda d: d.name, max_size=2)
    return st.one_of(
        st.sampled_from(list(K)).flatmap(
            lambda kind: st.lists(inner, min_size=kind.arity, max_size=kind.arity).map(lambda o: OperationDoc(kind, o))
        ),
        st.tuples(inner, st.sampled_from(["f", "g"])).map(lambda p: p[0].attr(p[1])),
        st.tuples(inner, st.lists(inner, min_size=1, max_size=3)).map(lambda p: p[0][tuple(p[1])]),
        st.tuples(inner, st.lists(inner, max_size=2), inner).map(lambda p: p[0].call(*p[1], k=p[2])),
        st.tuples(names, inner).map(lambda p: LambdaDoc(*p)),
        st.lists(inner, max_size=3).map(TupleDoc),
        st.lists(inner, max_size=3).map(ListDoc),
        st.lists(st.tuples(inner, inner), max_size=2).map(lambda pairs: DictDoc(dict(pairs))),
        st.tuples(inner, inner, inner).map(lambda p: p[0][SliceDoc(p[1], None, p[2])]),
    )


@given(st.recursive(_LEAVES, _wider, max_leaves=12))
def test_expressions_read_back(doc: ExprDoc) -> None:
    text = to_python_script(doc)
    if isinstance(doc, LiteralDoc) or (isinstance(doc, AttrAccessDoc) and isinstance(doc.value, LiteralDoc)):
        return  # 1.f is no Python: names of numbers make no sense
    try:
        read = ast.parse(text, mode="eval").body
    except SyntaxError:
        assert any(isinstance(n, AttrAccessDoc) and isinstance(n.value, LiteralDoc) for n in _parts(doc)), text
        return
    assert flat(read) == flat(tree(doc)), text


def _parts(doc: Any) -> list[Any]:
    found, stack = [], [doc]
    while stack:
        current = stack.pop()
        if isinstance(current, (list, tuple)):
            stack.extend(current)
        elif isinstance(current, dict):
            stack.extend(current.values())
        elif isinstance(current, ExprDoc):
            found.append(current)
            stack.extend(vars(current).values())
    return found


def check(doc: Any, expected: str, **options: Any) -> None:
    assert to_python_script(doc, **options) == textwrap.dedent(expected).strip("\n")


def test_literals() -> None:
    for value, text in [
        ("x", '"x"'), ('a"b', '"a\\"b"'), ("it's", '"it\'s"'), ("\n\t\\", '"\\n\\t\\\\"'), (True, "True"),
        (None, "None"),
        (-1, "-1"), (3.25, "3.25"), (1.0, "1.0"), (float("inf"), '"inf"'), (float("nan"), '"nan"'), ("é", '"é"'),
    ]:  # fmt: skip
        assert to_python_script(LiteralDoc(value)) == text  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="LiteralDoc"):
        LiteralDoc([1])  # type: ignore[arg-type]


def test_statements() -> None:
    check(AssignDoc(TupleDoc([X, Y]), TupleDoc([Y, X])), "x, y = y, x")
    check(AssignDoc(TupleDoc([X]), Y), "x, = y")
    check(AssignDoc(X, None, Y), "x: y")
    check(AssignDoc(X, Z, Y, comment="why"), "x: y = z  # why")
    check(IfDoc(X, [ReturnDoc(Y)], [ReturnDoc(Z)]), "if x:\n    return y\nelse:\n    return z")
    check(IfDoc(X, [], [ReturnDoc(Z)]), "if x:\n    pass\nelse:\n    return z")
    check(ForDoc(TupleDoc([X, Y]), Z, []), "for x, y in z:\n    pass")
    check(WhileDoc(X, [ExprStmtDoc(Y)], comment="a\nb"), "# a\n# b\nwhile x:\n    y")
    check(ScopeDoc(None, X, [ExprStmtDoc(Y)]), "with x:\n    y")
    check(ScopeDoc(X, Y.call(), []), "with y() as x:\n    pass")
    check(AssertDoc(X, LiteralDoc("no")), 'assert x, "no"')
    check(CommentDoc("a\nb"), "# a\n# b")
    check(DocStringDoc("a\nb"), '"""\na\nb\n"""')
    for wrong in (lambda: to_python_script(AssignDoc(X)), lambda: IfDoc(X, [], [])):
        with pytest.raises(ValueError, match="needs a"):
            wrong()
    with pytest.raises(ValueError, match="one line"):
        to_python_script(ExprStmtDoc(X, comment="a\nb"))
    with pytest.raises(ValueError, match="2 operands, got 1"):
        OperationDoc(K.Add, [X])
    with pytest.raises(TypeError, match="expected a document"):
        to_python_script(3)  # type: ignore[arg-type]


def test_definitions() -> None:
    inner = FunctionDoc(
        IdDoc("g"), [AssignDoc(X, None, Y), AssignDoc(Y, Z)], [X.call(Y)], TupleDoc([X]), [ReturnDoc(X)]
    )
    check(
        ClassDoc(IdDoc("C"), [X], [inner, inner, AssignDoc(X, Y)], comment="text"),
        '''
        @x
        class C:
            """
            text
            """
            @x(y)
            def g(x: y, y = z) -> (x,):
                return x

            @x(y)
            def g(x: y, y = z) -> (x,):
                return x

            x = y
        ''',
    )
    check(FunctionDoc(IdDoc("f"), [], [], None, []), "def f():\n  pass", indent_spaces=2)
    noted = FunctionDoc(IdDoc("f"), [AssignDoc(X, None, comment="text")], [], None, [])
    with pytest.raises(ValueError, match="a parameter has no comment"):
        to_python_script(noted)
    with pytest.raises(RuntimeError, match="IdDoc cannot be iterated"):
        iter(X)


def numbered(count: int, marked: set[int]) -> StmtBlockDoc:
    statements: list[StmtDoc] = []
    for n in range(count):
        value = IdDoc("foo", source_paths=[AccessPath.root().attr("a")] if n in marked else [])
        statements.append(AssignDoc(IdDoc(f"x{n}"), OperationDoc(K.Add, [value, Y])))
    return StmtBlockDoc(statements)


def test_underlines() -> None:
    path = AccessPath.root().attr("a")
    check(
        numbered(8, {2, 5}),
        """
        Access path: <root>.a

        (... 2 lines skipped ...)
         3 x2 = foo + y
                ^^^
        (... 2 lines skipped ...)
         6 x5 = foo + y
                ^^^
        (... 2 lines skipped ...)
        """.replace(" 3 x", "3 x")
        .replace(" 6 x", "6 x")
        .replace("                ^", "               ^"),
        path_to_underline=[path],
        num_context_lines=0,
        print_line_numbers=True,
    )
    check(
        numbered(3, {1}),
        """
        Access path: <root>.a[0]
        Note: The underlined object is the nearest visible parent of this path.

        x0 = foo + y
        x1 = foo + y
             ^^^
        x2 = foo + y
        """,
        path_to_underline=[path.array_item(0)],
    )
    text = to_python_script(numbered(2, set()), path_to_underline=[path], num_context_lines=0)
    assert "No visible object" in text and text.endswith("x0 = foo + y\nx1 = foo + y")
    assert str(AccessPath.root().map_item("k").attr("b")) == '<root>["k"].b'
