"""Every refusal names its line, column and cause, with a caret under what is wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest

from supple.base.errors import DiagnosticError, NotSupportedError, TypeCheckError
from supple.script import from_source
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
    ("if n:\n    A[0, 0] = 1", "n", "a condition must be a bool"),
    ("if n and n < 2:\n    A[0, 0] = 1", "n", "a condition must be a bool"),
    ("A[0, 0] = A[0, 0] if n < 2 else A[0, 1]", "A[0, 0] if n < 2 else A[0, 1]", "T.if_then_else"),
    ("n = 3\nn += 1", "n += 1", "a name cannot change"),
    ("x = 0\nfor i in range(4):\n    x = x + 1", "x", "is defined outside of this scope and cannot change"),
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
    ("A[0, 0]: T.int32 = 1", "A[0, 0]: T.int32 = 1", "an annotated name needs a value"),
    ("return A", "return A", "expected a scalar"),
]


@pytest.mark.parametrize("statement, place, message", [case for case in LOOPS if case[1] is not None])
def test_loop_functions(statement, place, message):
    lines = "\n".join(f"    {line}" for line in statement.split("\n"))
    error = refused(f"@T.prim_func\ndef f({HEAD}):\n{lines}\n")
    assert error.span is not None and error.span.line >= 3
    assert marked(error) == place or marked(error).startswith(place)
    if message is not None:
        assert message in str(error)


GRAPH = [
    ("y = R.matmul(x, z)\nreturn y", "z", "undefined variable 'z'"),
    ("yy = R.exp(x)\nreturn y", "y", "did you mean 'yy'"),
    ("return R.matmull(x, x)", "R.matmull", "R has no name 'matmull'; did you mean 'matmul'"),
    ("return R.nn.rely(x)", "R.nn.rely", "R.nn has no name 'rely'; did you mean 'relu'"),
    ("return R.exp(x, 1)", "R.exp(x, 1)", "takes 1 arguments, got 2"),
    ("return R.exp(x, axis=1)", "R.exp(x, axis=1)", "has no parameter 'axis'"),
    ("return R.exp()", "R.exp()", "parameter x is missing"),
    ("return R.add(x, s)", None, "takes a tensor"),
    ("return R.matmul(x, x)", "R.matmul(x, x)", None),
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
