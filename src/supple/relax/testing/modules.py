"""Modules of one pattern each: matrix products with an epilogue, attention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from supple.build.block_builder import BlockBuilder
from supple.ir.expr import Var
from supple.ir.graph import ShapeExpr
from supple.ir.module import IRModule
from supple.ir.node import Expr
from supple.ir.types import TensorType
from supple.relax import op


def _input(name: str, shape: Sequence[Any], dtype: str) -> Var:
    return Var(name, TensorType(ShapeExpr(tuple(shape)), dtype))


def _module(params: list[Var], body: Callable[[BlockBuilder], Expr]) -> IRModule:
    builder = BlockBuilder()
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(body(builder))
        builder.emit_func_output(result)
    return builder.get()


def get_relax_matmul_module(
    x_shape: Sequence[Any],
    y_shape: Sequence[Any],
    in_dtype: str,
    out_dtype: str | None = None,
    transposed_y: bool = False,
    bias_shape: Sequence[Any] | None = None,
    activation: Callable[[Expr], Expr] | None = None,
    residual_bin_op: Callable[[Expr, Expr], Expr] | None = None,
    residual_activation: Callable[[Expr], Expr] | None = None,
) -> IRModule:
    """``activation(x @ y + bias)``, then a residual with ``x``; each part but the product is optional."""
    out = in_dtype if out_dtype is None else out_dtype
    x, y = _input("x", x_shape, in_dtype), _input("y", y_shape, in_dtype)
    bias = None if bias_shape is None else _input("bias", bias_shape, out)

    def body(builder: BlockBuilder) -> Expr:
        right: Expr = y
        if transposed_y:
            axes = [*range(len(y_shape) - 2), -1, -2]
            right = builder.emit(op.permute_dims(y, axes=axes))
        result: Expr = builder.emit(op.matmul(x, right, out_dtype=out))
        if bias is not None:
            result = builder.emit(op.add(result, bias))
        if activation is not None:
            result = builder.emit(activation(result))
        if residual_bin_op is not None:
            result = builder.emit(residual_bin_op(result, x))
            if residual_activation is not None:
                result = builder.emit(residual_activation(result))
        return result

    return _module([x, y] if bias is None else [x, y, bias], body)


def get_relax_attention_module(
    q_shape: Sequence[Any],
    k_shape: Sequence[Any],
    v_shape: Sequence[Any],
    *,
    dtype: str,
    bias_shape: Sequence[Any] | None = None,
    qk_scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> IRModule:
    """One attention of ``q, k, v`` (batch, sequence, heads, width), with an optional bias."""
    q, k, v = (_input(n, s, dtype) for n, s in (("q", q_shape), ("k", k_shape), ("v", v_shape)))
    bias = None if bias_shape is None else _input("bias", bias_shape, dtype)

    def body(builder: BlockBuilder) -> Expr:
        return builder.emit(op.nn.attention(q, k, v, bias, qk_scale, causal_mask, window_size))

    return _module([q, k, v] if bias is None else [q, k, v, bias], body)


def get_relax_stacked_attention_module(
    qkv: Any,
    b: int,
    s: int,
    n: int,
    h: int,
    h_v: int,
    op: str,
    bias: Any = None,
    qk_scale: float | None = None,
    single_shape: bool = False,
    layout: str = "BS3NH",
) -> IRModule:
    """Attention of one tensor that holds queries, keys and values side by side: ``(b, s, n * (2 * h + h_v))``.

    ``op`` says how it is taken apart: ``"split"`` or ``"strided_slice"``. Layout ``"SBN3H"`` has the sequence first and
    the three parts of each head together. ``qkv`` and ``bias`` are arrays whose shapes and dtypes are taken.
    """
    return _module(*_stacked(qkv, (b, s, n, h, h_v), op, bias, qk_scale, single_shape, layout))


def _stacked(
    qkv: Any,
    sizes: tuple[int, int, int, int, int],
    way: str,
    bias: Any,
    qk_scale: float | None,
    single_shape: bool,
    layout: str,
) -> tuple[list[Var], Callable[[BlockBuilder], Expr]]:
    b, s, n, h, h_v = sizes
    if layout not in ("BS3NH", "SBN3H"):
        raise ValueError(f"the layout is 'BS3NH' or 'SBN3H', got {layout!r}")
    if way not in ("split", "strided_slice"):
        raise ValueError(f"op is 'split' or 'strided_slice', got {way!r}")
    whole = _input("qkv", qkv.shape, str(qkv.dtype))
    extra = None if bias is None else _input("bias", bias.shape, str(bias.dtype))
    interleaved = layout == "SBN3H"
    axis, unit = (3, 1) if interleaved else (2, n)
    ends = [unit * h, 2 * unit * h, unit * (2 * h + h_v)]

    def parts(builder: BlockBuilder) -> list[Expr]:
        source: Expr = whole
        if interleaved:
            source = builder.emit(op.reshape(whole, (s, b, n, 2 * h + h_v)))
        if way == "split":
            pieces = builder.emit(op.split(source, ends[:2], axis=axis))
            return [builder.emit(pieces[i]) for i in range(3)]
        starts = [0, *ends[:2]]
        return [
            builder.emit(op.strided_slice(source, [axis], [start], [end], [1]))
            for start, end in zip(starts, ends, strict=True)
        ]

    def body(builder: BlockBuilder) -> Expr:
        made = []
        for part, width in zip(parts(builder), (h, h, h_v), strict=True):
            if interleaved:
                made.append(builder.emit(op.permute_dims(part, axes=[1, 0, 2, 3])))
            else:
                shape = (b, s, n, h) if single_shape else (b, s, n, width)
                made.append(builder.emit(op.reshape(part, shape)))
        return builder.emit(op.nn.attention(made[0], made[1], made[2], extra, qk_scale))

    return ([whole] if extra is None else [whole, extra]), body
