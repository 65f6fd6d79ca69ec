"""Printed text: what it looks like, that it runs as a file, that every operator's calls read back."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import supple.ops  # noqa: F401 - declares the operators
from supple.base import dtypes
from supple.build.block_builder import BlockBuilder
from supple.ir import print_names, printer
from supple.ir.expr import IntImm, StringImm, Var, as_expr, const
from supple.ir.graph import DataTypeImm, ShapeExpr, Tuple, constant
from supple.ir.loop import Evaluate, For, ForKind, IfThenElse, SeqStmt
from supple.ir.op import OPS
from supple.ir.structural import assert_structural_equal
from supple.ir.types import AnyType, FuncType, ShapeType, StringType, TensorType, TupleType, prim_type
from supple.ops.declare import ShapeOf
from supple.script import from_source
from supple.script import relax as R
from supple.script import tirx as T

CASES = [(op, sample) for _, op in OPS.items() if op.samples is not None for sample in op.samples()]


def argument(value: Any, params: list[Var]) -> Any:
    if isinstance(value, list):
        return [argument(v, params) for v in value]
    if isinstance(value, ShapeOf):
        return list(value.values)
    if isinstance(value, (int, float)):
        return as_expr(value)
    shape = value if isinstance(value, tuple) else np.asarray(value).shape
    dtype = "float32" if isinstance(value, tuple) else dtypes.from_numpy(np.asarray(value).dtype)
    params.append(Var("x", TensorType(ShapeExpr(tuple(as_expr(e) for e in shape)), dtype)))
    return params[-1]


@pytest.mark.parametrize("op, sample", CASES, ids=lambda case: getattr(case, "short_name", "sample"))
def test_calls_of_every_operator_read_back(op, sample):
    params: list[Var] = []
    call = op(*(argument(a, params) for a in sample.args), **sample.attrs)
    builder = BlockBuilder()
    builder.begin_function("main", params, {"global_symbol": "main"}, is_pure=op.pure)
    func = builder.end_function(builder.emit(call))
    again = from_source(func.script())
    assert_structural_equal(func, again)
    assert again.script() == func.script()


def test_fragments():
    n = Var("n", prim_type("int64"))
    x = Var("x", R.Tensor((n, 4), "float32"))
    texts = {
        str(n + 1 - (n - 2)): "n + 1 - (n - 2)",
        str(IntImm(3, "int64")): "T.int64(3)",
        str(const(0.1)): "T.float32(0.1)",
        str(x.ty): 'R.Tensor((n, 4), dtype="float32")',
        str(TupleType((x.ty, AnyType()))): 'R.Tuple(R.Tensor((n, 4), dtype="float32"), R.Any)',
        str(ShapeType((n, as_expr(4)))): "R.Shape([n, 4])",
        str(ShapeType()): "R.Shape()",
        str(FuncType.opaque_func()): "R.Callable()",
        str(FuncType((x.ty,), StringType(), False)):
            'R.Callable((R.Tensor((n, 4), dtype="float32"),), R.String, purity=False)',
        str(TensorType(dtype=None)): "R.Tensor",
        str(constant([[1, 2], [3, 4]], "int8")): 'R.const([[1, 2], [3, 4]], "int8")',
        str(Tuple((x, StringImm("a"), DataTypeImm("int8"), as_expr(3)))):
            '(x, R.str("a"), R.dtype("int8"), R.prim_value(T.int64(3)))',
        str(R.exp(x)): "R.exp(x)",
        str(OPS.get("relax.nn.relu")): "R.nn.relu",
    }  # fmt: skip
    for got, wanted in texts.items():
        assert got == wanted


def test_statements_as_fragments():
    i = Var("i", prim_type("int32"))
    loop = For(i, const(0), const(4), ForKind.SERIAL, Evaluate(i + 1))
    assert str(loop) == "for i in range(4):\n    T.evaluate(i + 1)"
    assert str(SeqStmt((loop, loop))).count("for i in range(4):") == 2
    assert str(IfThenElse(i < 2, Evaluate(i))) == "if i < 2:\n    T.evaluate(i)"


def test_floats_are_as_short_as_they_can_be():
    assert print_names.float_text(0.1, "float32") == "0.1"
    assert print_names.float_text(float(np.float32(0.1)), "float32") == "0.1"
    assert print_names.float_text(1e300, "float32") == '"inf"'
    assert print_names.float_text(1.0, "float16") == "1.0"
    assert print_names.float_text(1e-45, "float32") == "1e-45"
    assert print_names.float_text(-0.0, "float64") == "-0.0"


def test_text_runs_as_a_file(tmp_path):
    @T.prim_func
    def func(A: T.Buffer(("n", "n + 1"), "float32"), m: T.int64):
        n = T.int64()
        for i in range(n):
            A[i, 0] = T.Cast("float32", m)

    @R.function
    def graph(x: R.Tensor(("n", 4), "float32"), s: R.Shape(["n"]), f: R.Callable((R.Tensor(("n",)),), R.Any)):
        return R.exp(x)

    for name, program in (("func", func), ("graph", graph)):
        path = tmp_path / f"{name}_file.py"
        path.write_text(program.script() + f"\nprint({name}.script(), end='')\n", encoding="utf-8")
        result = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
        assert result.stderr == "" and result.stdout == program.script()


def test_show(capsys, monkeypatch):
    x = Var("x", prim_type("int32"))
    (x + 1).show()
    assert capsys.readouterr().out == "x + 1\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(printer, "config", type("C", (), {"color": True}))
    (x + 1).show()
    assert "\x1b[" in capsys.readouterr().out


def test_long_signatures_are_broken():
    @R.function
    def func(
        first: R.Tensor((100, 200, 300), "float32"),
        second: R.Tensor((100, 200, 300), "float32"),
        third: R.Tensor((100, 200, 300), "float32"),
    ):
        return first

    assert max(len(line) for line in func.script().split("\n")) <= 110


def test_deep_nesting_is_cut():
    x = Var("x", prim_type("int32"))
    e = x
    for _ in range(1000):
        e = 1 - e
    builder = T.prim_func
    assert builder is not None
    from supple.ir.loop import Buffer, BufferStore, PrimFunc

    out = Buffer("out", (const(1),), "int32")
    func = PrimFunc((x, out), BufferStore(out, e, (const(0),)), None, {"global_symbol": "f"})
    assert "T.meta_var" in func.script()
    assert_structural_equal(func, from_source(func.script()))


def test_metadata():
    data = np.arange(100, dtype="int16").reshape(4, 25)

    @R.function
    def func(x: R.Tensor((4, 25), "int16")):
        return R.add(x, R.const(data))

    assert 'metadata["supple.Constant"][0]' in func.script()
    assert "show_meta=True" in func.script()
    again = from_source(func.script(show_meta=True))
    assert_structural_equal(func, again)
    for broken in ("{}", "[]", '{"supple.Constant": [{"dtype": "int16", "shape": [9], "data": "AAA="}]}', "nope"):
        with pytest.raises(ValueError):
            from_source(f"metadata = I.metadata({broken!r})\n" + func.script())


def test_modules_print_in_order():
    text = from_source(
        "@I.ir_module\nclass M:\n    @R.function\n    def b(x: R.Tensor):\n        return x\n\n"
        "    @T.prim_func\n    def a(A: T.Buffer((1,), 'float32')):\n        A[0] = 1\n"
    ).script()
    assert text.index("def b(") < text.index("def a(")
    assert text.startswith("from supple.script import ir as I, relax as R, tirx as T\n")
    assert from_source("@I.ir_module\nclass M:\n    pass\n").script().endswith("class Module:\n    pass\n")
