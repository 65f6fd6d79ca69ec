"""Attention with a bias that must be there, and over sequences of different lengths laid one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.base.errors import ExecutionError
from supple.build import te
from supple.build.loops import do, loop, require, store
from supple.ir import expr as E
from supple.ir.expr import Call, cast, int64
from supple.ir.node import Expr, Stmt, Type
from supple.ir.op import Fusion, RelaxText
from supple.ir.types import TensorType
from supple.ops.attention import (
    attend,
    attention,
    attention_dots,
    attention_lower,
    attention_ref,
    attention_samples,
    attention_type,
    scaled,
    visible,
)
from supple.ops.declare import fail, operator, sample
from supple.ops.index import require_integers
from supple.ops.requirements import require_shape
from supple.sym.relate import tensor_dims


@operator(
    "nn.attention_bias",
    fusion=Fusion.OPAQUE,
    lower=attention_lower,
    ref=attention_ref,
    samples=lambda: [s for s in attention_samples() if len(s.args) == 4],
    relax_text=RelaxText(floats=("scale",)),
)
def attention_bias(
    query: TensorType,
    key: TensorType,
    value: TensorType,
    bias: TensorType,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> Type:
    """``softmax(query key^T * scale + bias) value``: `nn.attention` with a bias, which broadcasts to (batch, head,
    query, key)."""
    return attention_type("nn.attention_bias", query, key, value, bias, causal_mask)


def attention_call(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    scale: Any = None,
    causal_mask: Any = None,
    window_size: Any = None,
) -> Call:
    """``R.nn.attention(q, k, v)``: the call of ``nn.attention``, or of ``nn.attention_bias`` where there is a bias."""
    options = {"scale": scale, "causal_mask": causal_mask, "window_size": window_size}
    if bias is None:
        return attention(query, key, value, **options)
    return attention_bias(query, key, value, bias, **options)


# ------------------------------------------------------------------------------------------------ sequences in a row


_ORDER = "the starts of the sequences must ascend from 0 to the number of positions"


def _checked(starts: te.TensorValue, total: Expr, name: str) -> te.TensorValue:
    """The starts as int64; fails where they are not in order."""
    count = starts.shape[0]

    def body(out: te.TensorValue) -> Stmt:
        def at(i: Any) -> Expr:
            return cast("int64", starts[i])

        def one(i: Any) -> Stmt:
            before = E.Select(E.GT(i, int64(0)), at(E.Max(E.Sub(i, int64(1)), int64(0))), int64(0))
            return do(require(E.And(E.GE(at(i), before), E.LE(at(i), total)), _ORDER), store(out, at(i), i))

        ends = E.And(E.EQ(at(int64(0)), int64(0)), E.EQ(at(E.Sub(count, int64(1))), total))
        return do(require(E.GE(count, int64(1)), _ORDER), require(ends, _ORDER), loop(count, one))

    return te.extern([((count,), "int64")], [starts], body, name)[0]


def _check_starts(starts: Any, total: int) -> None:
    known = starts.astype("int64")
    if not known.size or known[0] != 0 or known[-1] != total or (np.diff(known) < 0).any():
        raise ExecutionError(_ORDER, expected=f"0 <= ... <= {total}", actual=str(known.tolist()))


def _sequence_of(starts: te.TensorValue, total: Expr, name: str) -> te.TensorValue:
    """The number of the sequence that each position belongs to: how many sequences have ended at or before it."""
    n = te.reduce_axis((1, starts.shape[0]), "n")
    return te.compute((total,), lambda i: te.sum(E.Select(E.LE(starts[n], i), int64(1), int64(0)), n), name)


def _bounds(starts: te.TensorValue, sequence: te.TensorValue, last: bool, name: str) -> te.TensorValue:
    """Where each position's sequence begins or ends."""
    top = E.Max(E.Sub(starts.shape[0], int64(2)), int64(0))
    end = int64(1 if last else 0)
    return te.compute(sequence.shape, lambda i: starts[E.Add(E.Min(sequence[i], top), end)], name)


def _var_len_lower(
    queries: te.TensorValue,
    keys: te.TensorValue,
    values: te.TensorValue,
    seqstart_q: te.TensorValue,
    max_seqlen_q: te.TensorValue,
    seqstart_k: te.TensorValue | None = None,
    max_seqlen_k: te.TensorValue | None = None,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> te.TensorValue:
    starts_k = _checked(seqstart_q if seqstart_k is None else seqstart_k, keys.shape[1], "starts_of_keys")
    seqstart_q = _checked(seqstart_q, queries.shape[1], "starts_of_queries")
    of_query = _sequence_of(seqstart_q, queries.shape[1], "sequence_of_query")
    of_key = _sequence_of(starts_k, keys.shape[1], "sequence_of_key")
    first_q, end_q = (_bounds(seqstart_q, of_query, last, f"query_bound{int(last)}") for last in (False, True))
    first_k, end_k = (_bounds(starts_k, of_key, last, f"key_bound{int(last)}") for last in (False, True))
    dots = attention_dots(queries, keys)

    def scored(b: Any, h: Any, i: Any, j: Any) -> Expr:
        score = scaled(dots[b, h, i, j], queries.shape[3], scale)
        seen: Expr = E.EQ(of_query[i], of_key[j])
        rows, columns = E.Sub(end_q[i], first_q[i]), E.Sub(end_k[j], first_k[j])
        more = visible(E.Sub(i, first_q[i]), E.Sub(j, first_k[j]), rows, columns, causal_mask, window_size)
        return E.Select(seen if more is None else E.And(seen, more), score, te.limit(dots.dtype, low=True))

    return attend(te.compute(dots.shape, scored, "attention_scores"), values, queries.dtype)


def _var_len_ref(
    queries: Any,
    keys: Any,
    values: Any,
    seqstart_q: Any,
    max_seqlen_q: Any,
    seqstart_k: Any = None,
    max_seqlen_k: Any = None,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> Any:
    starts_k = seqstart_q if seqstart_k is None else seqstart_k
    _check_starts(seqstart_q, queries.shape[1])
    _check_starts(starts_k, keys.shape[1])
    rows, columns = (np.arange(x.shape[1]) for x in (queries, keys))
    of_query, of_key = (np.searchsorted(s[1:], i, "right") for s, i in ((seqstart_q, rows), (starts_k, columns)))
    if not rows.size or not columns.size:
        seen = np.zeros((rows.size, columns.size), bool)
    else:
        seen = of_query[:, None] == of_key[None, :]
        (first_q, end_q), (first_k, end_k) = (
            (s[n].astype("int64"), s[n + 1].astype("int64")) for s, n in ((seqstart_q, of_query), (starts_k, of_key))
        )
        i, j = (rows - first_q)[:, None], (columns - first_k)[None, :]
        offset = 0 if causal_mask == "TopLeft" else (end_k - first_k)[None, :] - (end_q - first_q)[:, None]
        if causal_mask is not None:
            seen &= j <= i + offset
        if window_size is not None:
            seen &= j > i + offset - window_size
    return attention_ref(queries, keys, values, None, scale, None, None, seen)


def _var_len_samples() -> list[Any]:
    starts, longer, most = np.array([0, 2, 7, 10], "int32"), np.array([0, 3, 8, 12], "int32"), np.array(5, "int32")
    q, k, v = (1, 10, 2, 4), (1, 12, 2, 4), (1, 12, 2, 3)
    return [
        sample(q, q, q, starts, most),
        sample(q, k, v, starts, most, longer, most, scale=0.3),
        sample(q, q, q, starts, most, causal_mask="TopLeft"),
        sample(q, k, v, starts, most, longer, most, causal_mask="BottomRight"),
        sample(q, q, q, starts, most, causal_mask="TopLeft", window_size=2),
    ]


@operator(
    "nn.attention_var_len",
    fusion=Fusion.OPAQUE,
    lower=_var_len_lower,
    ref=_var_len_ref,
    samples=_var_len_samples,
    relax_text=RelaxText(floats=("scale",)),
)
def attention_var_len(
    queries: TensorType,
    keys: TensorType,
    values: TensorType,
    seqstart_q: TensorType,
    max_seqlen_q: TensorType,
    seqstart_k: TensorType | None = None,
    max_seqlen_k: TensorType | None = None,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> Type:
    """``nn.attention`` of each of several sequences, which stand one after the other along axis 1 of tensors of shape
    (1, positions, head, width). Sequence n is at ``seqstart_q[n]`` to ``seqstart_q[n + 1]`` (int32, ascending from 0 to
    the number of positions, which is checked); its keys and values at ``seqstart_k``, the same unless given. The
    lengths are hints. Other sequences' values count 0 times, so NaN and infinities among them spread."""
    name = "nn.attention_var_len"
    for starts in (seqstart_q, seqstart_k):
        if starts is not None:
            require_integers(name, "the starts of the sequences", starts)
            if starts.ndim not in (-1, 1):
                fail(f"{name}: the starts of the sequences must have 1 dimension", "1", str(starts.ndim))
    for length in (max_seqlen_q, max_seqlen_k):
        if length is not None:
            require_integers(name, "the longest length", length)
    result = attention_type(name, queries, keys, values, None, causal_mask)
    of_queries, of_keys = (None if s is None else tensor_dims(s) for s in (seqstart_q, seqstart_k))
    if of_queries is not None and of_keys is not None:
        require_shape(f"{name}: queries and keys are as many sequences", of_queries, of_keys)
    dims = tensor_dims(queries)
    if dims is not None and isinstance(dims[0], E.IntImm) and dims[0].value != 1:
        fail(f"{name}: the sequences stand in one row", "batch 1", f"batch {dims[0].value}")
    return result
