"""``relax.testing``: modules for tests and examples, the view of the tree, saved functions."""

from __future__ import annotations

import numpy as np
import pytest

import supple
from supple import relax, tirx
from supple.base.errors import DiagnosticError
from supple.relax import testing
from supple.relax.testing import dump_ast, nn
from supple.script import relax as R


def test_layers_emit_into_the_function_that_is_built() -> None:
    builder = relax.BlockBuilder()
    assert relax.BlockBuilder.current() is None
    with builder.function("main"):
        assert relax.BlockBuilder.current() is builder
        model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 3, bias=False), nn.LogSoftmax())
        data = nn.Placeholder((5, 8), name="x")
        out = model(data)
        assert len(model.parameters()) == 3
        builder.emit_func_output(out, [data, *model.parameters()])
    assert relax.BlockBuilder.current() is None
    mod = builder.get()
    x, w, b, v = (p.numpy() for p in testing.init_params(mod))
    hidden = np.maximum(x @ w + b, 0) @ v
    expected = hidden - np.log(np.exp(hidden).sum(-1, keepdims=True))
    np.testing.assert_allclose(supple.compile(mod)["main"](x, w, b, v), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(DiagnosticError, match="no function is being built"):
        nn.ReLU()(data)
    with pytest.raises(TypeError, match="list or tuple"):
        nn.Parameter(3)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="forward"):
        nn.Module()()


def test_matrix_products() -> None:
    mod = testing.get_relax_matmul_module(
        (4, 8), (8, 8), "float32", transposed_y=True, bias_shape=(8,), activation=R.nn.relu,
        residual_bin_op=R.add, residual_activation=R.exp,
    )  # fmt: skip
    x, y, bias = (np.random.default_rng(n).uniform(-1, 1, s).astype("f4") for n, s in enumerate([(4, 8), (8, 8), (8,)]))
    expected = np.exp(np.maximum(x @ y.T + bias, 0) + x)
    np.testing.assert_allclose(supple.compile(mod)["main"](x, y, bias), expected, rtol=1e-5)
    plain = testing.get_relax_matmul_module((4, 8), (8, 2), "float16", out_dtype="float32")
    assert str(plain["main"].ret_ty) == 'R.Tensor((4, 2), dtype="float32")'


def test_attention_together_and_apart() -> None:
    b, s, n, h = 2, 4, 2, 8
    q, k, v = (np.random.default_rng(i).uniform(-1, 1, (b, s, n, h)).astype("f4") for i in range(3))
    whole = testing.get_relax_attention_module(q.shape, k.shape, v.shape, dtype="float32", qk_scale=0.5)
    expected = supple.compile(whole)["main"](q, k, v)
    stacked = np.concatenate([a.reshape(b, s, n * h) for a in (q, k, v)], 2)
    for way in ("split", "strided_slice"):
        mod = testing.get_relax_stacked_attention_module(stacked, b, s, n, h, h, way, qk_scale=0.5)
        np.testing.assert_allclose(supple.compile(mod)["main"](stacked), expected, rtol=1e-5, atol=1e-6)
    heads = np.concatenate([q, k, v], 3).transpose(1, 0, 2, 3).reshape(s, b, n * 3 * h)
    mod = testing.get_relax_stacked_attention_module(heads, b, s, n, h, h, "split", qk_scale=0.5, layout="SBN3H")
    np.testing.assert_allclose(supple.compile(mod)["main"](heads), expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="layout"):
        testing.get_relax_stacked_attention_module(heads, b, s, n, h, h, "split", layout="NHWC")
    with pytest.raises(ValueError, match="strided_slice"):
        testing.get_relax_stacked_attention_module(heads, b, s, n, h, h, "slice")


def test_saved_functions() -> None:
    mod = testing.get_relax_matmul_module((2, 3), (3, 2), "float32")
    vm = relax.VirtualMachine(supple.compile(mod), supple.cpu())
    x, y = np.ones((2, 3), "f4"), np.ones((3, 2), "f4")
    np.testing.assert_array_equal(testing.vm.check_saved_func(vm, "main", x, y), x @ y)


def test_the_tree_as_text() -> None:
    x = relax.Var("x", relax.TensorType((2,), "float32"))
    assert dump_ast(x, include_ty_annotations=False) == 'Var(name="x")'
    assert dump_ast(x, indent_str="  ") == (
        'Var(\n  name="x",\n  ty=TensorType(\n    dtype=float32,'
        "\n    shape=ShapeExpr(\n      values=[Expr(value=`T.int64(2)`)],"
        "\n      ty=ShapeType(\n        ndim=1,\n        values=[Expr(value=`T.int64(2)`)]\n      )\n    )\n  )\n)"
    )
    call = relax.op.add(x, x)
    assert dump_ast(call, include_ty_annotations=False) == (
        'Call(\n    op=Op(name="relax.add"),\n    args=[\n        Var(name="x"),\n        Var(name="x")\n    ]\n)'
    )

    @R.function
    def f(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool"), g: R.Callable):
        with R.dataflow():
            y = R.sum(x, axis=0)
            z = R.call_dps_packed("foo", (y, R.const([1.0])), R.Tensor((2,), "float32"))
            R.output(z)
        w = R.match_cast(z, R.Tensor((2,), "float32"))
        if c:
            r = R.add(w, w)
        else:
            r = (w, R.shape([1]))[0]
        return r

    text = dump_ast(f)
    for part in ("Function(", "BindingBlock(", "MatchCast(", "If(", "ExternFunc(", '"axis": (0,)', "DataflowVar("):
        assert part in text, part
    assert '"axis"' not in dump_ast(f, include_call_attrs=False)
    assert dump_ast(tirx.Var("n", "int64") + 1) == "Expr(value=`n + 1`)"
