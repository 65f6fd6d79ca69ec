"""Every refusal names its line, column and cause, with a caret under what is wrong."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from supple.base.errors import DiagnosticError, InternalError, NotSupportedError, TypeCheckError
from supple.script import from_source, source
from supple.script import ir as I
from supple.script import relax as R
from supple.script import tirx as T


def refused(text: str) -> DiagnosticError:
    with pytest.raises(DiagnosticError) as caught:
        from_source(text)
    return caught.value


def marked(error: DiagnosticError) -> str:
    """The text above the carets."""
    lines = str(error).split("\n")
    caret = next(i for i, line in enumerate(lines) if set(line.partition("|")[2].strip()) == {"^"})
    start, end = lines[caret].index("^"), lines[caret].rindex("^") + 1
    return lines[caret - 1][start:end]


HEAD = 'A: T.Buffer((16, 16), "float32"), n: T.int32'
LOOPS = [  # statement, marked text, message
    ("A[0, 0] = B[0, 0]", "B", "undefined variable 'B'"),
    ("A[0, 0] = m", "m", "undefined variable 'm'"),
    ("A[0] = 1", "A[0]", "has 2 dimensions, but 1 indices were given"),
    ("A[0, 0.5] = 1", "A[0, 0.5]", "expected an integer"),
    ("A[0, 0] = A[0, 0] / n", None, None),
    ("A[0, 0] = T.exp(n)", "T.exp(n)", "expected a floating-point operand, got int32"),
    ("A[0, 0] = T.expp(A[0, 0])", "T.expp", "T has no name 'expp'; did you mean 'exp'"),
    ("A[0, 0] = n / 2", "n / 2", "'/' on integers is ambiguous"),
    ("if n:\n    A[0, 0] = 1", "n", "compare it: x != 0"),
    ("if n and n < 2:\n    A[0, 0] = 1", "n", "a condition must be a bool"),
    ("A[0, 0] = A[0, 0] if n else A[0, 1]", "n", "a condition must be a bool"),
    ("for i, *j, *k in T.grid(2, 2, 2):\n    A[i, 0] = 1", "i, *j, *k", "3 loops, but 3 loop variables"),
    ("for i in range(4):\n    if i > 2:\n        i = i + 1", "i", "is defined outside of this scope and cannot change"),
    ("for i in [1, 2]:\n    A[0, 0] = 1", "[1, 2]", "a loop runs over"),
    ("for i, j in T.grid(4):\n    A[i, j] = 1", "i, j", "1 loops, but 2 loop variables"),
    ("for i in range(4):\n    A[i, 0] = 1\nelse:\n    A[0, 0] = 1", "A[0, 0] = 1", "'else' of a loop"),
    ("try:\n    A[0, 0] = 1\nexcept ValueError:\n    A[0, 0] = 2", "try:", "'try' statement is not supported"),
    ("import os", "import os", "'import' statement is not supported"),
    ("def g():\n    return 1", "g", "needs @T.inline"),
    ("del n", "del n", "'del' statement is not supported"),
    ("lambda: 1", "lambda: 1", "the expression has no effect"),
    ("n + 1", "n + 1", "the expression has no effect"),
    ("A[0, 0] = 1 if True else yield_", None, None),
    ("A[0, 0] = (x := 1)", "x := 1", "not supported"),
    (
        'with T.sblock("b"):\n    v = T.axis.remap("S", [n])\n    A[v, 0] = 1',
        'T.axis.remap("S", [n])',
        "takes loop variables",
    ),
    (
        'for i in range(4):\n    with T.sblock("b"):\n        v = T.axis.remap("SS", [i])\n        A[v, 0] = 1',
        'T.axis.remap("SS", [i])',
        "one letter a loop variable",
    ),
    (
        'for i in range(4):\n    with T.sblock("b"):\n        v = T.axis.remap("X", [i])\n        A[v, 0] = 1',
        'T.axis.remap("X", [i])',
        "unknown letter",
    ),
    ("v = T.axis.spatial(4, n)", "T.axis.spatial(4, n)", "stands inside of 'with T.sblock"),
    ("with T.blok('b'):\n    A[0, 0] = 1", "T.blok", "did you mean 'block'"),
    ("with T.grid(4):\n    A[0, 0] = 1", "T.grid(4)", "'with T.grid' has no meaning"),
    ("T.reads", "T.reads", "the expression has no effect"),
    ("T.cuda.thing()", "T.cuda", "CUDA tile dialect"),
    ("A[0, 0] = T.realize(1)", "T.realize", "T.realize is not supported yet"),
    ("B = T.match_buffer(n, (4,))", "T.match_buffer(n, (4,))", "names a parameter of type T.handle"),
    ("B = T.alloc_buffer((4,), 'float33')", "T.alloc_buffer((4,), 'float33')", "unknown dtype 'float33'; did you mean"),
    ("B = T.alloc_buffer(('n', 'q'))", "T.alloc_buffer(('n', 'q'))", "undefined symbol 'q'"),
    ("B = T.alloc_buffer((1.5,))", "T.alloc_buffer((1.5,))", "a dimension must be an integer"),
    ("x = T.int32(1.5)", "T.int32(1.5)", "expected an integer"),
    ("x = T.int8(1000)", "T.int8(1000)", "does not fit in int8"),
    ("x = T.float32('hot')", "T.float32('hot')", "expected a number"),
    ("x, y = 1, 2, 3", "x, y", "cannot unpack"),
    ("x.y = 1", "x.y", None),
    ("A.z[0] = 1", "A.z", "has no attribute 'z'"),
    ("n[0] = 1", "n", "is not a buffer"),
    ("A[0, 0] = n[0]", "n[0]", None),
    ("A[0, 0] = 10 ** 10 ** 10", "10 ** 10 ** 10", "the constant is too large"),
    ("A[0, 0] = 'a' * 10 ** 9", "'a' * 10 ** 9", "the constant is too large"),
    ("A[0, 0] = b'x'", "b'x'", "bytes literals"),
    ("A[0, 0] = n.__class__", "n.__class__", "private"),
    ("A[0, 0] = T._expr", "T._expr", "private"),
    ("T.serial(4)", "T.serial(4)", "the expression has no effect"),
    ("x = T.serial(4)", "T.serial(4)", "is not a value"),
    ("T.evaluate(T.max(n))", "T.max(n)", "missing 1 required positional argument"),
    ("for i in T.serial(4, foo=1):\n    A[i, 0] = 1", "T.serial(4, foo=1)", "unexpected keyword argument 'foo'"),
    ("assert n, 'x'", "n", "a condition must be a bool"),
    ("A[0, 0]: T.int32 = 1", "A[0, 0]: T.int32 = 1", "only names are annotated"),
    ("return A", "return A", "expected a scalar"),
    ("A[0, 0] = T.serial(4) + 1", "T.serial(4)", "is not a value"),
    ("x = I.vdevic('llvm')", "I.vdevic", "I has no name 'vdevic'; did you mean 'vdevice'"),
    ("if A:\n    A[0, 0] = 1", "A", "a condition must be a bool scalar"),
    ("if n in (1, 2):\n    A[0, 0] = 1", "n in (1, 2)", "'is' and 'in' have no meaning"),
    ('with T.sblock("b"):\n    T.sblock_attr({n + 1: 2})', "n + 1", "keys must be Python values"),
    ("x = T.meta_var('a'.upper())", "'a'.upper", "methods of str are not available"),
    ("A[0, 0] = T.exp[0]", "T.exp[0]", "cannot be indexed"),
    ("A[0, 0] = ()(n)", "()", "is not a function"),
    ("A[0, 0] = n(1)", "n", "is not a function"),
    ("x = T.meta_var([q for i in range(3)])", "[q for i in range(3)]", "name 'q' is not defined"),
    ("for i in T.serial(range(10 ** 12)):\n    A[0, 0] = 1", "range(10 ** 12)", "the range is too long"),
    ("A[0, 0] = T.int32([1])", "T.int32([1])", "expected a number or a scalar expression, got list"),
    ("with T.sblock(3):\n    A[0, 0] = 1", "T.sblock(3)", "expected a string, got int"),
    ("B = T.alloc_buffer((4,), 3)", "T.alloc_buffer((4,), 3)", "expected a dtype such as 'float32', got 3"),
    ("B = T.decl_buffer((4,), data=3)", "T.decl_buffer((4,), data=3)", "data must be a pointer"),
    ("B = T.match_buffer(A, (4,), axis_separators=[1])", "T.match_buffer", "axis_separators are not supported"),
    ("B = T.match_buffer(n)", "T.match_buffer(n)", "expected the buffer's shape"),
    ("A['n', 0] = 1", "A['n', 0]", "an index must be an integer"),
    ("T.buffer_store(A, 1.0, [slice(0, 4), 0])", "T.buffer_store", "a slice is only allowed where a region is meant"),
    ('with T.sblock("b"):\n    T.reads(A[0:4:2, 0])', "A[0:4:2, 0]", "a region has no step"),
    ('with T.sblock("b"):\n    T.reads(A[0:4])', "A[0:4]", "A has 2 dimensions, but 1 were given"),
    ('with T.sblock("b"):\n    T.reads(n)', "T.reads(n)", "expected a region of a buffer"),
    ("A[0, 0:] = 1", "A[0, 0:]", "needs both ends"),
    ("A[0, 0:n] = T.float32(1)", "A[0, 0:n]", "must be a constant above 0"),
    ("A[0, 0] = A[0]", "A[0]", "has 2 dimensions, but 1 indices were given"),
    ("for i in T.serial(0, 4, extent=4):\n    A[i, 0] = 1", "T.serial(0, 4, extent=4)", "not both"),
    ("for i in T.serial(0, 4, step=-1):\n    A[i, 0] = 1", "T.serial(0, 4, step=-1)", "step must be positive"),
    ("for i in T.thread_binding(4):\n    A[i, 0] = 1", "T.thread_binding(4)", "expected the thread axis"),
    ("for i in T.grid():\n    A[i, 0] = 1", "T.grid()", "at least one extent"),
    ('with T.sblock("b"):\n    v = T.axis.spatial((1, 2, 3), n)', "T.axis", "(begin, end)"),
    ('with T.sblock("b"):\n    T.where(n)', "T.where(n)", "T.where takes a bool"),
    ("T.buffer_store(n, 1, [0])", "T.buffer_store(n, 1, [0])", "T.buffer_store takes a buffer"),
    ('with T.sblock("b", no_realize=True):\n    A[0, 0] = 1', "T.sblock", "no_realize=True) is not supported"),
    (
        'with T.sblock("b"):\n    with T.init():\n        A[0, 0] = 1\n    with T.init():\n        A[0, 0] = 1',
        "T.init()",
        "the block has an init already",
    ),
    ("with T.init():\n    A[0, 0] = 1", "T.init()", "T.init stands inside of"),
    ("with T.LetStmt(1):\n    A[0, 0] = 1", "T.LetStmt(1)", "T.LetStmt names a variable"),
    ('x = T.bind(1, "float32")', "T.bind", "the dtype differs"),
    ("A[0, 0] = T.Let(n, where={})", "T.Let(n, where={})", "where={x: value}"),
    ("A[0, 0] = T.Let(n, where={'x': 1})", "T.Let(n, where={'x': 1})", "a variable: x = T.int32()"),
    ("while n < 2:\n    A[0, 0] = 1\nelse:\n    A[0, 1] = 1", "A[0, 1] = 1", "'else' of a loop"),
    ("for A[0, 0] in range(4):\n    A[0, 0] = 1", "A[0, 0]", "a loop variable must be a name"),
    ('with T.sblock("b") as x:\n    A[0, 0] = 1', "x", "'as' has no meaning here"),
    ("with T.LetStmt(1) as (x, y):\n    A[0, 0] = 1", "(x, y)", "T.LetStmt names one variable"),
    ("x = R.shape([1])", "R.shape([1])", "cannot be named here"),
    ("x = T.int64()\nx = T.int32()", "x", "is declared with two dtypes"),
    ("x: R.Tensor((4,)) = 1", "R.Tensor((4,))", "unexpected annotation"),
    ("n[0] = 1", "n", "its elements cannot be assigned"),
    ("B = T.alloc_buffer((4,), 'int32')\nB[0] = 1.5", "1.5", "cannot store 1.5"),
    ("A[0, 0:4] = T.Broadcast(T.float32(1), 3)", "T.Broadcast(T.float32(1), 3)", "the number of lanes differs"),
    ("for i in range(A[0, 0]):\n    A[i, 0] = 1", "range(A[0, 0])", "an integer scalar"),
    ('with T.sblock("b"):\n    T.sblock_attr({"a": T.serial(4)})', "T.sblock_attr", "T.serial cannot be an attribute"),
    ('with T.sblock("b"):\n    T.sblock_attr(3)', "T.sblock_attr(3)", "expected a dict"),
    ("A[0, 0] = T.truncdiv(A[0, 0], A[0, 1])", "T.truncdiv(A[0, 0], A[0, 1])", "T.truncdiv: expected integers"),
    ("A[0, 0] = T.Ramp(0, 1, 0)", "T.Ramp(0, 1, 0)", "at least one lane"),
    ("A[0, 0] = T.Shuffle([A[0, 0:4]], [4])", "T.Shuffle([A[0, 0:4]], [4])", "expected indices from 0 to 3, got 4"),
    ("A[0, 0] = T.Broadcast(0, 0)", "T.Broadcast(0, 0)", "at least one lane"),
    (
        "A[0, 0] = T.comm_reducer(lambda x: x, [T.float32(0)])",
        "T.comm_reducer",
        "1 identities need a function of 2 values",
    ),
    ("A[0, 0] = T.func_name('f')", "T.func_name", "T.func_name is for building"),
    ("x = 1 < 'a'", "1 < 'a'", "'<' not supported between"),
    ("A[0, 0] = T.__wrapped__", "T.__wrapped__", "private"),
    ("A[0, 0] = ...", "...", "ellipsis literals have no meaning"),
    ("if A == 1:\n    A[0, 0] = 1", "A == 1", "buffers are not compared as a whole"),
    ("if n == A:\n    A[0, 0] = 1", "n == A", "buffers are not compared as a whole"),
    ("x = T.int32('inf')", "T.int32('inf')", "got 'inf'"),
    ("x = T.reinterpret('handle', T.int64(n))\nB = T.match_buffer(x, (4,))", "T.match_buffer", "names a parameter"),
    ("A[0, :4] = 1", "A[0, :4]", "needs both ends"),
    ("A[0, 0:4:n] = 1", "A[0, 0:4:n]", "must be a constant above 0"),
    ("A[0, 0:4:-1] = 1", "A[0, 0:4:-1]", "must be a constant above 0"),
    ("A[0, 4:0] = 1", "A[0, 4:0]", "must be a constant above 0"),
    ('with T.sblock("b"):\n    v = T.axis.remap("S", n)', 'T.axis.remap("S", n)', "one letter a loop variable"),
    ("T.buffer_store(3, 1, [0])", "T.buffer_store(3, 1, [0])", "T.buffer_store takes a buffer"),
    ("A[0, 0] = T.Let(n, where=3)", "T.Let(n, where=3)", "where={x: value}"),
    ("with n:\n    A[0, 0] = 1", "n", "has no meaning in a loop function"),
    ("x, y = n", "x, y", "cannot unpack"),
    ("x: T.let", "x: T.let", "an annotated name needs a value"),
    ("T[0] = 1", "T", "its elements cannot be assigned"),
    ("for i in T.serial(True):\n    A[i, 0] = 1", "T.serial(True)", "expected an integer"),
    ("B = T.alloc_buffer(('n = 1',))", "T.alloc_buffer(('n = 1',))", "is not an expression over symbols"),
    ("B = T.alloc_buffer((True,))", "T.alloc_buffer((True,))", "a dimension must be an integer"),
]


@pytest.mark.parametrize("statement, place, message", [case for case in LOOPS if case[1] is not None])
def test_loop_functions(statement, place, message):
    lines = "\n".join(f"    {line}" for line in statement.split("\n"))
    error = refused(f"@T.prim_func\ndef f({HEAD}):\n{lines}\n")
    assert error.span is not None and error.span.line >= 3
    assert marked(error) == place or marked(error).startswith(place)
    if message is not None:
        assert message in str(error)


IF = "if {}:\n    y = x\nelse:\n    y = x\nreturn y"
GRAPH = [
    ("y = R.matmul(x, z)\nreturn y", "z", "undefined variable 'z'"),
    ("yy = R.exp(x)\nreturn y", "y", "did you mean 'yy'"),
    ("return R.matmull(x, x)", "R.matmull", "R has no name 'matmull'; did you mean 'matmul'"),
    ("return R.nn.rely(x)", "R.nn.rely", "R.nn has no name 'rely'; did you mean 'relu'"),
    ("return R.exp(x, 1)", "R.exp(x, 1)", "takes 1 arguments, got 2"),
    ("return R.exp(x, axis=1)", "R.exp(x, axis=1)", "has no parameter 'axis'"),
    ("return R.exp()", "R.exp()", "parameter x is missing"),
    ("return R.add(x, s)", None, "takes a tensor"),
    ("return R.matmul(x, R.zeros((3, 4), 'float32'))", "R.matmul(x, R.zeros((3, 4), 'float32'))", None),
    ("y: R.Tensor((5,), 'float32') = R.exp(x)\nreturn y", None, 'R.Tensor((5,), dtype="float32")'),
    ("y = R.const(1, 'float33')\nreturn y", "R.const(1, 'float33')", "unknown dtype"),
    ("y: R.Tensor((4), 'float32') = R.exp(x)\nreturn y", "R.Tensor((4), 'float32')", "write (4,)"),
    ("y: R.Tensor(('q', 4), 'float32') = R.exp(x)\nreturn y", "R.Tensor(('q', 4), 'float32')", "undefined symbol 'q'"),
    ("y = R.exp(x)", "f", "returns nothing"),
    ("return", "return", "needs a value"),
    ("return x\ny = x", "y = x", "never reached"),
    ("with R.dataflow():\n    y = R.exp(x)\nreturn y", "y", "not visible outside"),
    ("with R.dataflow():\n    y = R.exp(x)\n    R.output(z)\nreturn x", "z", "is not bound in this dataflow block"),
    (
        "with R.dataflow():\n    y = R.exp(x)\n    R.output(y)\n    z = R.exp(y)\nreturn y",
        "R.output(y)",
        "must be the last",
    ),
    ("R.output(x)\nreturn x", "R.output(x)", "stands at the end of 'with R.dataflow"),
    (
        "with R.dataflow():\n    with R.dataflow():\n        y = R.exp(x)\n    R.output()\nreturn x",
        "with R.dataflow():",
        "cannot hold another",
    ),
    ("with R.dataflow():\n    R.print(x)\n    R.output()\nreturn x", "R.print(x)", None),
    ("R.print(x)\nreturn x", "R.print(x)", None),
    ("if c:\n    y = R.exp(x)\nreturn x", "if c:", "needs an 'else'"),
    ("if c:\n    y = R.exp(x)\nelse:\n    z = x\nreturn x", "z", "end by binding one name"),
    ("if c:\n    return x\nelse:\n    y = x\nreturn x", "return x", "'return' stands inside"),
    ("if x:\n    y = x\nelse:\n    y = x\nreturn y", "x", "must be a scalar bool"),
    (
        "for i in range(4):\n    y = x\nreturn x",
        "for i in range(4):",
        "'for' statement is not supported in a graph function",
    ),
    ("y = R.match_cast(x, R.Tensor((2, 2), 'float32'))\nreturn y", None, "match_cast never holds"),
    ("R.match_cast(x, R.Tensor)\nreturn x", "R.match_cast(x, R.Tensor)", "gives a new variable"),
    ("y = R.dataflow\nreturn y", "R.dataflow", "is not a value"),
    ("y = R.Tensor((4,), 'float32')\nreturn y", "R.Tensor((4,), 'float32')", "is not a value"),
    ("y, z = x\nreturn y", "x", "only a tuple can be unpacked"),
    ("y, z = (x, x, x)\nreturn y", "y, z", "cannot unpack"),
    ("y = x(x)\nreturn y", "x", "is not a function"),
    ("y = (x, x)\nreturn y[2]", "y[2]", "has no field 2"),
    ("y = cls.f(x)\nreturn y", "cls", "undefined variable 'cls'"),
    (
        "y = R.call_tir(x, (x,), out_ty=R.Tensor((4,), 'float32'))\nreturn y",
        "R.call_tir(x, (x,), out_ty=R.Tensor((4,), 'float32'))",
        "must be a function of the module",
    ),
    ("y = R.call_packed('f', x, ty_args=4)\nreturn y", "R.call_packed('f', x, ty_args=4)", "expected a type"),
    ("y = R.call_dps_packed('f', x)\nreturn y", "R.call_dps_packed('f', x)", "the result's type is missing"),
    ("y = R.memory.alloc(x)\nreturn y", "R.memory", "R.memory has no name"),
    ("y = R.shape([n, 'q'])\nreturn y", "n", "named by n = T.int64()"),
    ("n = T.int32()\nreturn x", None, None),
    ("x.a = x\nreturn x", "x.a", "only names can be assigned"),
    ("y = z = x\nreturn x", "y = z = x", "one target at a time"),
    ("y = None\nreturn x", "None", "is not a value"),
    ("y: R.Tensor((4,), 'float32')\nreturn x", "y: R.Tensor((4,), 'float32')", "an annotated name needs a value"),
    (
        "y: R.Tensor((5,), 'float32') = R.match_cast(x, R.Tensor((4,), 'float32'))\nreturn y",
        "R.Tensor((5,), 'float32')",
        "the annotation differs from the type of the match_cast",
    ),
    ("y: R.Tensor((5,), 'float32') = T.int64()\nreturn x", "R.Tensor((5,), 'float32')", "no annotation is needed"),
    ("R.dataflow()\nreturn x", "R.dataflow()", "R.dataflow cannot stand alone"),
    ("x\nreturn x", "x", "the expression has no effect"),
    ("with R.Tensor((2,)):\n    y = x\nreturn x", "R.Tensor((2,))", "unexpected 'with'"),
    ("with R.dataflow() as d:\n    y = x\n    R.output(y)\nreturn x", "d", "'as' has no meaning here"),
    (
        "with R.dataflow():\n    with R.seq():\n        y = x\n    R.output()\nreturn x",
        "with R.seq():",
        "cannot hold another block",
    ),
    ("with R.dataflow():\n    y = x\n    R.output(x + x)\nreturn x", "x + x", "R.output takes names"),
    (
        "with R.dataflow():\n    if c:\n        y = x\n    else:\n        y = x\n    z = x\n    R.output(z)\nreturn z",
        "if c:",
        "'if' cannot stand in a dataflow block",
    ),
    ("if c:\n    R.print(x)\nelse:\n    y = x\nreturn x", "R.print(x)", "a branch ends by binding"),
    ("if c:\n    y = 1 < 'a'\nelse:\n    y = x\nreturn x", "1 < 'a'", "'<' not supported"),
    ("def g(y: R.Tensor((2,), 'float32')):\n    return y\nreturn x", "g", "a local function needs @R.function"),
    ("y = (R.exp, x)\nreturn x", "(R.exp, x)", "exp is an operator: call it"),
    (
        "@R.function\ndef g(y: R.Object) -> R.Object:\n    return y\nz = g(y=x)\nreturn z",
        "g(y=x)",
        "positional arguments only",
    ),
    ("y = (x, x)\nreturn y['a']", "'a'", "the index of a tuple must be a constant integer"),
    ("R.func_attr(3)\nreturn x", "R.func_attr(3)", "R.func_attr takes a dict"),
    ("y = x(x)\nreturn y", "x", "'x' is not a function"),
    ("k = T.int32()\nk = T.int64()\nreturn x", "k", "declared with two dtypes"),
    ("y = R.to_vdevice(x, R.device(3))\nreturn y", "R.device(3)", "devices of type 3 are not supported"),
    ("y = R.call_packed('f', x, ty_args=R.Tensor, sinfo_args=R.Tensor)\nreturn y", "R.call_packed", "once"),
    ("R.emit(x)\nreturn x", "R.emit", "builds statement by statement"),
    (
        "y: R.Tensor((T.int64(),), 'float32') = x\nreturn x",
        "R.Tensor((T.int64(),), 'float32')",
        "give the new symbol a name",
    ),
    (
        "y: R.Tensor((x,), 'float32') = x\nreturn x",
        "R.Tensor((x,), 'float32')",
        "a dimension must be an integer, got Var",
    ),
    (
        "y: R.Tensor((T.float32(1),), 'float32') = x\nreturn x",
        "R.Tensor((T.float32(1),), 'float32')",
        "a dimension must be an integer, got float32",
    ),
    (
        "y: R.Tensor((T.int32(1),), 'float32') = x\nreturn x",
        "R.Tensor((T.int32(1),), 'float32')",
        "dimensions are int64",
    ),
    (
        "y: R.Tensor((2,), 'float32', vdevice=3) = x\nreturn x",
        "R.Tensor((2,), 'float32', vdevice=3)",
        "vdevice must be text",
    ),
    (
        "y: R.DTensor((2,), 'float32', 3, 'S[0]') = x\nreturn x",
        "R.DTensor((2,), 'float32', 3, 'S[0]')",
        "expected a mesh such as",
    ),
    (
        "y: R.DTensor((2,), 'float32', 'mesh[1]', 'S[0]') = x\nreturn x",
        "R.DTensor((2,), 'float32', 'mesh[1]', 'S[0]')",
        "the module has no mesh 'mesh[1]'; it has 0",
    ),
    (
        "y: R.DTensor((2,), 'float32', 'mash', 'S[0]') = x\nreturn x",
        "R.DTensor((2,), 'float32', 'mash', 'S[0]')",
        "the module has no mesh 'mash'",
    ),
    ("y: R.Prim(value=3) = x\nreturn x", "R.Prim(value=3)", "R.Prim(value=...) is not supported"),
    ("y: R.Prim() = x\nreturn x", "R.Prim()", "R.Prim: expected a dtype"),
    ("y: R.Callable(derive_func=3) = x\nreturn x", "R.Callable(derive_func=3)", "derive_func=...) is not supported"),
    ("with R.dataflow():\n    y = R.exp(x)\nreturn x", "y = R.exp(x)", "a dataflow block ends with R.output"),
    (
        IF.format("R.const(1.0, 'float32')"),
        "R.const(1.0, 'float32')",
        "must be a scalar bool",
    ),
    (
        IF.format("R.const([True], 'bool')"),
        "R.const([True], 'bool')",
        "must be a scalar bool",
    ),
    (
        "@R.function\ndef g(y: R.Object) -> R.Object:\n    return y\n" + IF.format("g"),
        "g",
        "must be a scalar bool",
    ),
    ("x.a: R.Object = x\nreturn x", "x.a: R.Object = x", "an annotated name needs a value"),
    ("with R.dataflow(), R.dataflow():\n    R.output()\nreturn x", "R.dataflow()", "unexpected 'with'"),
    ("with R.output():\n    y = x\nreturn x", "R.output()", "unexpected 'with'"),
    ("y = (x, x)\nreturn y[True]", "True", "the index of a tuple must be a constant integer"),
]
SIGNATURE = 'x: R.Tensor(("n", 4), "float32"), s: R.Shape([2]), c: R.Tensor((), "bool")'


@pytest.mark.parametrize("statement, place, message", [case for case in GRAPH if case[1] or case[2]])
def test_graph_functions(statement, place, message):
    lines = "\n".join(f"    {line}" for line in statement.split("\n"))
    error = refused(f"@R.function\ndef f({SIGNATURE}):\n{lines}\n")
    assert error.span is not None and error.span.line >= 2
    if place is not None:
        assert marked(error) == place or marked(error).startswith(place)
    if message is not None:
        assert message in str(error)


MODULE = "@I.ir_module\nclass M:\n"
MESH = (
    f"{MODULE}    I.module_global_infos({{{{'mesh': [R.device_mesh((2,), I.Range(0, 2))]}}}})\n    @R.function\n"
    "    def f(x: R.DTensor((2,), 'float32', '{}', 'S[0]')):\n        return x\n"
)
TEXTS = [
    ("", 1, "the text defines no program"),
    ("x = ", 1, "invalid Python syntax"),
    ("\x00", 1, "null bytes"),
    ("def f():\n    pass\n", 1, "has no decorator"),
    ("import os\n", 1, "can be imported"),
    ("from os import path\n", 1, "can be imported"),
    ("@R.function\ndef f(x):\n    return x\n", 2, "parameter 'x' has no type"),
    ("@T.prim_func\ndef f(x):\n    pass\n", 2, "parameter 'x' has no type"),
    ("@T.prim_func\ndef f(x: R.Tensor((2,), 'float32')):\n    pass\n", 2, "that a loop function cannot take"),
    ("@R.function\ndef f(x: 4):\n    return x\n", 2, "expected a type"),
    ("@R.function\ndef f(x: R.Tensor((4), 'float32')):\n    return x\n", 2, "write (4,)"),
    ("@R.function\ndef f(x: R.Tensor((2,), 'float32') = 1):\n    return x\n", 2, "default values"),
    ("@R.function\ndef f(*x: R.Tensor):\n    return x\n", 2, "*args"),
    ("@R.function\ndef f(x: R.Tensor) -> R.Tensor(('n',)):\n    return x\n", 2, "undefined symbol 'n'"),
    (
        "@R.function\ndef f(x: R.Tensor((2,), 'float32')) -> R.Tensor((3,), 'float32'):\n    return x\n",
        3,
        "declared type",
    ),
    ("@R.function(pure=1)\ndef f(x: R.Tensor):\n    return x\n", 1, "expected True or False"),
    ("@R.functoin\ndef f(x: R.Tensor):\n    return x\n", 1, "did you mean 'function'"),
    ("@R.function(nope=True)\ndef f(x: R.Tensor):\n    return x\n", 1, "unexpected keyword argument 'nope'"),
    ("@I.ir_module\nclass M:\n    x: int = 1\n", 3, "annotated assignment"),
    ("@I.ir_module\nclass M:\n    def f(x): pass\n", 3, "no decorator"),
    ("@I.ir_module\nclass M(int):\n    pass\n", 2, "no bases"),
    (
        "@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Tensor):\n        return x\n    @R.function\n"
        "    def f(x: R.Tensor):\n        return x\n",
        7,
        "two functions named 'f'",
    ),
    (
        "@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Tensor):\n        cls = M\n        return cls.g(x)\n",
        6,
        "has no function 'g'",
    ),
    ("@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Tensor):\n        return M.f(x)\n", 5, "annotate"[:0]),
    (
        "@I.ir_module\nclass M:\n    @T.prim_func\n    def g(A: T.Buffer((1,), 'float32')):\n        A[0] = 1\n"
        "    @R.function\n    def f(x: R.Tensor):\n        return M.g(x)\n",
        8,
        "R.call_tir(cls.g",
    ),
    ("@R.function\ndef f(x: R.Tensor):\n    return " + "(" * 300 + "x" + ")" * 300 + "\n", None, None),
    ("@R.function\ndef f(x: R.Tensor):\n    return " + "-" * 20000 + "x\n", None, None),
    ("@R.function\ndef f(x: R.Tensor((" + "'n', " * 3 + "), 'float32')):\n    return y\n", 3, "undefined"),
    ("@R.function\ndef f(x: R.Tensor(('n +',), 'float32')):\n    return x\n", 2, "is not an expression over symbols"),
    ("@R.function\ndef f(x: R.Tensor(('f(n)',), 'float32')):\n    return x\n", 2, None),
    ("@R.function\ndef f(x: R.Tensor, x: R.Tensor):\n    return x\n", 2, None),
    ("async def f():\n    pass\n", 1, "'async def' statement is not supported"),
    ("while True: pass", 1, "'while' statement is not supported"),
    ("@T.inline(3)\ndef f(x):\n    pass\n", 1, "T.inline takes keyword arguments only"),
    ("@R.exp\ndef f(x):\n    pass\n", 1, "unknown decorator"),
    (MODULE + "    @I.pyfunc\n    def f(self, x):\n        return x\n", 4, "needs a class that Python runs"),
    (MODULE + "    x = 3\n", 3, "only functions stand in a module's class"),
    (MODULE + "    R.function\n", 3, "only functions, I.module_attrs"),
    (MODULE + "    I.module_attrs(3)\n", 3, "I.module_attrs takes one dict"),
    (
        MODULE + "    @R.function(pure=1)\n    def f(x: R.Tensor):\n        return x\n",
        3,
        "pure: expected True or False",
    ),
    (MODULE + "    @R.function(nope=1)\n    def f(x: R.Tensor):\n        return x\n", 3, "unexpected keyword"),
    ("@T.prim_func(name=3)\ndef f(n: T.int32):\n    T.evaluate(n)\n", 1, "name: expected a string, got 3"),
    ("@R.function\ndef f(x: 'R.Tensor((2,'):\n    return x\n", 2, "is not a type"),
    ("x = '\ud800'\n", 1, "not Python text"),
    ("a, b = 1, 2\n", 1, "only plain names can be assigned here"),
    ("@I.ir_module\ndef f(x: R.Tensor):\n    return x\n", 2, "I.ir_module cannot decorate 'f'"),
    ("@R.function\nclass M:\n    pass\n", 2, "R.function cannot decorate 'M'"),
    (
        "@T.prim_func\ndef f(n: T.int32) -> T.Buffer((4,)):\n    T.evaluate(n)\n",
        2,
        "a loop function returns a scalar, or nothing",
    ),
    (
        "@T.prim_func\ndef f(h: T.handle):\n    A = T.match_buffer(h, (4,))\n    B = T.match_buffer(h, (4,))\n",
        4,
        "has a buffer already",
    ),
    ("x = I.metadata('[]')\n@R.function\ndef f(x: R.Tensor):\n    return x\n", 1, "metadata: expected a JSON object"),
    (
        MODULE + "    I.module_global_infos({'vdevice': [I.vdevice('llvm')]})\n    @R.function\n"
        "    def f(x: R.Tensor((2,), 'float32', 'llvm:1')):\n        return x\n",
        5,
        "the module has no virtual device 'llvm:1'; it has llvm:0",
    ),
    (MESH.format("mesh[1]"), 5, "the module has no mesh 'mesh[1]'; it has 1"),
    (
        "@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Tensor):\n        return M.f(x)\n",
        5,
        "the return type of 'f' is not known here",
    ),
    ("@T.prim_func\ndef f(A: T.Buffer((4,), byte_offset=4)):\n    A[0] = 1\n", 2, "give elem_offset"),
    ("@T.prim_func\ndef f(A: T.Buffer((4,), layout=4)):\n    A[0] = 1\n", 2, "layouts of buffers"),
    (MODULE + "    a = b = R.ExternFunc('f')\n", 3, "only functions stand in a module's class"),
    (MODULE + "    a.b = R.ExternFunc('f')\n", 3, "only functions stand in a module's class"),
    (MODULE + "    T.serial(4)\n", 3, "only functions, I.module_attrs"),
    (MODULE + "    I.module_attrs({}, {})\n", 3, "I.module_attrs takes one dict"),
    (MODULE + "    @I.ir_module\n    def f(x):\n        return x\n", 4, "is not a function of the module"),
    ("x = I.metadata('{}')\n@R.function\ndef f(x: R.Tensor):\n    return x\n", 1, "metadata: expected a JSON object"),
    (
        "@T.inline\ndef g(k):\n    T.evaluate(k)\n@T.prim_func\ndef f(n: T.int32):\n    g(n, k=n)\n",
        6,
        "'k' was given twice",
    ),
    (MESH.format("0"), 5, "the module has no mesh '0'; it has 1"),
    (MESH.format("mesh[a]"), 5, "the module has no mesh 'mesh[a]'; it has 1"),
]


@pytest.mark.parametrize("text, line, message", TEXTS)
def test_texts(text, line, message):
    error = refused(text)
    if line is not None:
        assert error.span is not None and error.span.line == line
    if message is not None:
        assert message in str(error)


@pytest.mark.parametrize(
    "expression",
    [
        "tuple(range(10 ** 12))", "[i for i in range(10 ** 12)]", "'a'.ljust(10 ** 12)", "'%1000000000d' % 1",
        "f'{1:>1000000000}'", "[().__class__ for i in range(1)]", "(lambda: ().__class__)()", "open('x')", "eval('1')",
        "__import__('os')", "T.np", "R.supple", "(1).to_bytes(10 ** 12)", "[0] * 10 ** 10", "1 << 10 ** 10",
        "[T.__dict__ for i in range(1)]", "getattr(T, 'x')",
    ],
)  # fmt: skip
def test_text_cannot_hang_or_reach_out(expression):
    error = refused(f"@T.prim_func\ndef f(n: T.int32):\n    x = T.meta_var({expression})\n    T.evaluate(n)\n")
    assert error.span is not None and error.span.line == 3


def test_long_chains_are_no_error():
    chain = " + ".join(["x"] * 5000)
    func = from_source(f"@T.prim_func\ndef f(A: T.Buffer((1,), 'float32'), x: T.float32):\n    A[0] = {chain}\n")
    again = from_source(func.script())
    assert "T.meta_var" in func.script()
    from supple.ir.structural import structural_equal

    assert structural_equal(func, again)


def test_long_elif_chains():
    clauses = "".join(f"    elif n == {i}:\n        A[0] = {i}\n" for i in range(500))
    text = f"@T.prim_func\ndef f(A: T.Buffer((1,), 'float32'), n: T.int32):\n    if n < 0:\n        A[0] = 1\n{clauses}"
    assert from_source(from_source(text).script()).script()


def test_errors_have_classes():
    assert isinstance(refused("@T.prim_func\ndef f(n: T.int32):\n    T.evaluate(T.exp(n))\n"), TypeCheckError)
    assert isinstance(refused("@T.prim_func\ndef f(n: T.int32):\n    T.const_range(4)\n"), NotSupportedError)


def test_no_source():
    code = compile("@T.prim_func\ndef f(n: T.int32):\n    T.evaluate(n)\n", "<nowhere>", "exec")
    with pytest.raises(DiagnosticError, match="the source text of 'f' is not available"):
        exec(code, {"T": T})
    code = compile("@I.ir_module\nclass M:\n    @R.function\n    def f(x: R.Tensor): return x\n", "<nowhere>", "exec")
    with pytest.raises(DiagnosticError, match="is not available"):
        exec(code, {"I": I, "R": R})


def test_a_users_exception_is_kept():
    def broken(_):
        raise ZeroDivisionError("mine")

    with pytest.raises(DiagnosticError, match="broken raised ZeroDivisionError: mine") as caught:

        @T.prim_func
        def f(n: T.int32):
            T.evaluate(broken(n))

    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert caught.value.span.file == __file__


class Odd:
    """What a program may capture whose operations raise."""

    @property
    def broken(self):
        raise ZeroDivisionError("mine")

    def __lt__(self, other):
        return self < other

    def fault(self, n):
        raise InternalError("ours")


@pytest.mark.parametrize(
    "expression, error, message",
    [
        ("odd.broken", DiagnosticError, "mine"),
        ("odd < 1", DiagnosticError, "the expression nests too deep"),
        ("odd.fault(n)", InternalError, "ours"),
    ],
)
def test_captured_objects_that_raise(tmp_path, expression, error, message):
    script = tmp_path / "script.py"
    script.write_text(f"@T.prim_func\ndef f(n: T.int32):\n    T.evaluate({expression})\n")
    with pytest.raises(error, match=message) as caught:
        exec(compile(script.read_text(), str(script), "exec"), {"T": T, "odd": Odd(), "__name__": "m"})
    assert error is InternalError or caught.value.span.line == 3


def test_decorators_of_what_is_no_function():
    for decorate, name in (
        (T.inline, "T.inline"),
        (R.macro, "R.macro"),
        (I.pyfunc, "I.pyfunc"),
        (T.prim_func, "T.prim_func"),
    ):
        with pytest.raises(TypeError, match=f"{name} decorates a function, got type"):
            decorate(int)


def test_text_that_the_deep_parser_does_not_take_either(monkeypatch):
    monkeypatch.setattr(source, "_DEEP_RECURSION", 0)
    assert "nests deeper" in str(
        refused(f"@T.prim_func\ndef f(n: T.int32):\n    T.evaluate({' + '.join(['n'] * 5000)})\n")
    )
    with pytest.raises(TypeError, match="expected the program's text, got int"):
        from_source(3)


TYPES = [
    (lambda: R.Tensor((True,), "float32"), "a dimension must be an integer or a symbol, got True"),
    (lambda: R.Tensor((1.5,), "float32"), "a dimension must be an integer or a symbol, got 1.5"),
    (lambda: R.Tensor((2,), "float32", 3), "vdevice must be text"),
    (lambda: R.DTensor((2,), "float32", "mesh[0]", "S[0]"), "'mesh\\[0\\]' names a mesh of the module"),
]


@pytest.mark.parametrize("make, message", TYPES)
def test_types_outside_of_a_program_are_refused_at_their_line(make, message):
    with pytest.raises(TypeCheckError, match=message) as caught:
        make()
    assert caught.value.span.file == __file__ and caught.value.span.line == make.__code__.co_firstlineno


PROGRAM = """
from supple.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 784), "float32"), w: R.Tensor((783, 10), "float32")):
        with R.dataflow():
            lv = R.matmul(x, w)
            R.output(lv)
        return lv
"""


def test_a_plain_run_shows_the_user_s_line(tmp_path):
    script = tmp_path / "model.py"
    script.write_text(PROGRAM)
    result = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert f"{script}:10:18" in result.stderr
    assert "            lv = R.matmul(x, w)" in result.stderr
    assert "^^^^^^^^^^^^^^" in result.stderr
    assert result.stderr.count("  File ") <= 3


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("T.func_attr({'a': 1})\n    T.func_attr({'a': 1})", "given twice"),
        ("with T.sblock('b'):\n        T.reads(A[0])\n        T.reads(A[1])\n        A[0] = 1.0", "T.reads stands"),
        ("with T.sblock('b'):\n        T.writes(A[0])\n        T.writes(A[1])\n        A[0] = 1.0", "T.writes stands"),
        ("with T.sblock('b'):\n        T.where(A[0] > 0)\n        T.where(A[1] > 0)\n        A[0] = 1.0",
         "T.where stands"),
    ],
)  # fmt: skip
def test_what_a_function_says_twice(body: str, message: str) -> None:
    with pytest.raises(DiagnosticError, match=message):
        from_source(f"@T.prim_func(s_tir=True)\ndef f(A: T.Buffer((2,), 'float32')):\n    {body}\n    A[0] = 1.0\n")


def test_what_a_module_says_twice() -> None:
    function = "    @R.function\n    def f(x: R.Tensor((2,), 'float32')):\n        {}return x\n"
    twice = "R.func_attr({'a': 1})\n        R.func_attr({'a': 2})\n        "
    with pytest.raises(DiagnosticError, match="given twice"):
        from_source("@I.ir_module\nclass M:\n" + function.format(twice))
    with pytest.raises(DiagnosticError, match="already"):
        from_source(
            "@I.ir_module\nclass M:\n    I.module_attrs({'a': 1})\n    I.module_attrs({'b': 1})\n" + function.format("")
        )


def test_constants_without_a_dtype() -> None:
    assert R.const(np.array([1.5])).ty == R.Tensor((1,), "float32")
    assert R.const(np.array([1, 2])).ty == R.Tensor((2,), "int32")
    assert R.const(np.array([1], "int16")).ty == R.Tensor((1,), "int16")
    assert R.const(np.array([1, 2]), "int64").ty == R.Tensor((2,), "int64")
    with pytest.raises(OverflowError, match="int64"):
        R.const(np.array([1 << 40]))
