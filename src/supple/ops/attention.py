"""Attention, losses, and quantisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import cast, const, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion, RelaxText
from supple.ir.types import TensorType
from supple.ops.declare import Place, fail, operator, sample
from supple.ops.index import require_in_bounds, require_integers
from supple.ops.normalize import wide_dtype
from supple.ops.reduce import reduce_tensor
from supple.ops.requirements import require_equal, require_floats, require_shape, require_spread
from supple.ops.shapes import alike, broadcast_index, require_known_rank, same_dtype
from supple.sym.relate import tensor, tensor_dims

# ----------------------------------------------------------------------------------------------------------- attention

_MASKS = (None, "TopLeft", "BottomRight")


def visible(i: Expr, j: Expr, rows: Expr, columns: Expr, causal_mask: str | None, window_size: int | None) -> Any:
    """Whether query ``i`` may see key ``j``; None when it always may."""
    offset: Expr = int64(0) if causal_mask == "TopLeft" else E.Sub(columns, rows)
    checks: list[Expr] = []
    if causal_mask is not None:
        checks.append(E.LE(j, E.Add(i, offset)))
    if window_size is not None:
        checks.append(E.GT(j, E.Sub(E.Add(i, offset), int64(window_size))))
    seen: Expr | None = None
    for check in checks:
        seen = check if seen is None else E.And(seen, check)
    return seen


def attention_dots(query: te.TensorValue, key: te.TensorValue) -> te.TensorValue:
    """``query key^T`` for each batch and head, in float32 at least."""
    batch, rows, heads, width = query.shape
    wide = wide_dtype(query.dtype)
    k = te.reduce_axis((0, width), "k")
    return te.compute(
        (batch, heads, rows, key.shape[1]),
        lambda b, h, i, j: te.sum(E.Mul(cast(wide, query[b, i, h, k]), cast(wide, key[b, j, h, k])), axis=k),
        "attention_dots",
    )


def scaled(score: Expr, width: Expr, scale: float | None) -> Expr:
    """A score times ``scale``, or divided by the root of the width."""
    wide = E.scalar_dtype(score)
    if scale is None:
        return E.Div(score, intrinsic("sqrt", cast(wide, width)))
    return E.Mul(score, cast(wide, const(scale, wide)))


def attention_lower(
    query: te.TensorValue,
    key: te.TensorValue,
    value: te.TensorValue,
    bias: te.TensorValue | None = None,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> te.TensorValue:
    rows, columns = query.shape[1], key.shape[1]
    dots = attention_dots(query, key)
    wide = dots.dtype

    def scored(b: Any, h: Any, i: Any, j: Any) -> Expr:
        score = scaled(dots[b, h, i, j], query.shape[3], scale)
        if bias is not None:
            score = E.Add(score, cast(wide, bias[broadcast_index(bias.shape, (b, h, i, j))]))
        seen = visible(i, j, rows, columns, causal_mask, window_size)
        return score if seen is None else E.Select(seen, score, te.limit(wide, low=True))

    return attend(te.compute(dots.shape, scored, "attention_scores"), value, query.dtype)


def attend(scores: te.TensorValue, value: te.TensorValue, dtype: str) -> te.TensorValue:
    """``softmax(scores) value``: scores (batch, head, query, key), value (batch, key, head, width)."""
    batch, heads, rows, columns = scores.shape
    wide = scores.dtype
    top = reduce_tensor(scores, "max", [3], True, "attention_max")
    powers = te.compute(
        scores.shape,
        lambda b, h, i, j: intrinsic("exp", E.Sub(scores[b, h, i, j], top[b, h, i, 0])),
        "attention_exp",
    )
    total = reduce_tensor(powers, "sum", [3], True, "attention_sum")
    j = te.reduce_axis((0, columns), "j")
    mixed = te.compute(
        (batch, rows, heads, value.shape[3]),
        lambda b, i, h, d: te.sum(E.Mul(powers[b, h, i, j], cast(wide, value[b, j, h, d])), axis=j),
        "attention_mix",
    )
    return te.compute(
        mixed.shape, lambda b, i, h, d: cast(dtype, E.Div(mixed[b, i, h, d], total[b, h, i, 0])), "attention"
    )


def attention_ref(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
    seen: Any = None,
) -> Any:
    """By numpy; ``seen`` says which queries see which keys beside what the mask says."""
    q, k, v = (np.transpose(x, (0, 2, 1, 3)).astype(np.result_type(x.dtype, "float32")) for x in (query, key, value))
    score = q @ np.swapaxes(k, -1, -2)
    kind = score.dtype.type
    score = score / np.sqrt(kind(query.shape[-1])) if scale is None else score * kind(scale)
    if bias is not None:
        score = score + bias
    rows, columns = score.shape[-2:]
    offset = 0 if causal_mask == "TopLeft" else columns - rows
    i, j = np.arange(rows)[:, None], np.arange(columns)[None, :]
    visible = np.ones((rows, columns), bool) if seen is None else seen
    if causal_mask is not None:
        visible &= j <= i + offset
    if window_size is not None:
        visible &= j > i + offset - window_size
    score = np.where(visible, score, -np.inf).astype(score.dtype)
    powers = np.exp(score - score.max(axis=-1, keepdims=True, initial=-np.inf))
    return np.transpose(powers @ v / powers.sum(axis=-1, keepdims=True), (0, 2, 1, 3)).astype(query.dtype)


def attention_samples() -> list[Any]:
    q, kv = (2, 3, 2, 4), (2, 5, 2, 4)
    return [
        sample(q, kv, kv),
        sample(q, kv, (2, 5, 2, 6), (2, 2, 3, 5)),
        sample(q, kv, kv, (1, 1, 1, 5), scale=0.3),
        sample(q, kv, kv, causal_mask="BottomRight"),
        sample(q, q, q, causal_mask="TopLeft"),
        sample(q, q, q, causal_mask="TopLeft", window_size=2),
    ]


def attention_type(
    name: str, query: TensorType, key: TensorType, value: TensorType, bias: TensorType | None, causal_mask: str | None
) -> TensorType:
    if causal_mask not in _MASKS:
        fail(f"{name}: unknown causal_mask", "None, TopLeft or BottomRight", causal_mask)
    dtype = query.dtype
    require_floats(name, query)
    for x in (key, value):
        alike(name, query, x)
    for what, given in (("query", query), ("key", key), ("value", value), ("bias", bias)):
        if given is not None:
            require_known_rank(name, what, given)
        if given is not None and given.ndim != 4:
            fail(f"{name}: {what} must have 4 dimensions (batch, position, head, width)", "4", str(given.ndim))
    a, b, c = tensor_dims(query), tensor_dims(key), tensor_dims(value)
    if a is None or b is None or c is None:
        return TensorType(None, dtype, 4)
    for what, one, other in (
        ("batch", a[0], b[0]),
        ("heads", a[2], b[2]),
        ("width", a[3], b[3]),
        ("batch", a[0], c[0]),
        ("keys and values", b[1], c[1]),
        ("heads", a[2], c[2]),
    ):
        require_equal(f"{name}: the tensors' {what} differ", one, other)
    added = None if bias is None else tensor_dims(bias)
    if added is not None:
        require_spread(f"{name}: the bias does not fit the scores", (a[0], a[2], a[1], b[1]), added)
    return tensor((a[0], a[1], a[2], c[3]), dtype)


@operator(
    "nn.attention",
    fusion=Fusion.OPAQUE,
    lower=lambda q, k, v, **attrs: attention_lower(q, k, v, None, **attrs),
    ref=lambda q, k, v, **attrs: attention_ref(q, k, v, None, **attrs),
    samples=lambda: [s for s in attention_samples() if len(s.args) == 3],
    relax_text=RelaxText(floats=("scale",)),
)
def attention(
    query: TensorType,
    key: TensorType,
    value: TensorType,
    scale: float | None = None,
    causal_mask: str | None = None,
    window_size: int | None = None,
) -> Type:
    """``softmax(query key^T * scale) value`` for each batch and head (Vaswani et al., 2017), on tensors of shape
    (batch, position, head, width). ``scale`` is ``1 / sqrt(width)`` unless given; a fourth argument is the bias of
    `nn.attention_bias`. ``causal_mask``: ``"TopLeft"`` lets query i see keys up to i, ``"BottomRight"`` aligns the last
    query with the last key; ``window_size`` limits how far back it sees."""
    return attention_type("nn.attention", query, key, value, None, causal_mask)


# -------------------------------------------------------------------------------------------------------------- losses


@operator(
    "nn.cross_entropy_with_logits",
    device=Place.ANY,
    fusion=Fusion.REDUCTION,
    lower=lambda predictions, labels: _cross_entropy_lower(predictions, labels),
    ref=lambda p, t: np.asarray(-np.sum(p * t) / (p.shape[0] if p.ndim > 1 else 1)).astype(p.dtype),
    samples=lambda: [sample((3, 5), (3, 5)), sample((4,), (4,))],
)
def cross_entropy_with_logits(predictions: TensorType, labels: TensorType) -> Type:
    """``-sum(predictions * labels)``, divided by the batch size (the first dimension) when there is one. The
    predictions are log-probabilities."""
    dtype = same_dtype("nn.cross_entropy_with_logits", predictions, labels)
    if predictions.ndim != -1 and labels.ndim != -1 and predictions.ndim != labels.ndim:
        fail("nn.cross_entropy_with_logits: the ranks differ", str(predictions.ndim), str(labels.ndim))
    a, b = tensor_dims(predictions), tensor_dims(labels)
    if a is not None and b is not None:
        require_shape("nn.cross_entropy_with_logits: labels and predictions must have one shape", a, b)
    return tensor((), dtype)


def _cross_entropy_lower(predictions: te.TensorValue, labels: te.TensorValue) -> te.TensorValue:
    terms = te.compute(predictions.shape, lambda *i: E.Mul(predictions[i], labels[i]), "cross_terms")
    total = reduce_tensor(terms, "sum", range(terms.ndim), False, "cross_sum")
    count = cast(terms.dtype, predictions.shape[0] if predictions.ndim > 1 else int64(1))
    return te.compute((), lambda: E.Div(E.Sub(const(0, terms.dtype), total[()]), count), "cross_entropy")


def class_axis(ndim: int) -> int:
    """The dimension of predictions that counts the classes."""
    return 1 if ndim > 1 else 0


def require_classes(name: str, predictions: TensorType, targets: TensorType, weights: TensorType | None) -> None:
    """One target for each place of the predictions, one weight for each class."""
    if predictions.ndim != -1 and targets.ndim not in (-1, max(predictions.ndim - 1, 0)):
        fail(f"{name}: the targets have the wrong rank", str(predictions.ndim - 1), str(targets.ndim))
    if weights is not None and weights.ndim not in (-1, 1):
        fail(f"{name}: the weights have the wrong rank", "1", str(weights.ndim))
    dims, places = tensor_dims(predictions), tensor_dims(targets)
    given = None if weights is None else tensor_dims(weights)
    if predictions.ndim == 0:
        fail(f"{name}: the predictions have no classes", "at least 1 dimension", "0 dimensions")
    if dims is None:
        return
    place = class_axis(len(dims))
    if places is not None:
        require_shape(f"{name}: one target for each prediction", (*dims[:place], *dims[place + 1 :]), places)
    if given is not None:
        require_shape(f"{name}: one weight for each class", (dims[place],), given)


def class_weight(label: Expr, weights: te.TensorValue | None, ignore_index: int, wide: str) -> Expr:
    """What a target counts: its class's weight, 0 for ``ignore_index``."""
    given = const(1, wide) if weights is None else cast(wide, weights[label])
    return intrinsic("if_then_else", E.NE(label, int64(ignore_index)), given, const(0, wide))


def _nll_lower(
    predictions: te.TensorValue,
    targets: te.TensorValue,
    weights: te.TensorValue | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> te.TensorValue:
    wide = wide_dtype(predictions.dtype)
    place = class_axis(predictions.ndim)

    def weight(i: Any) -> Expr:
        return class_weight(cast("int64", targets[i]), weights, ignore_index, wide)

    def loss(*i: Any) -> Expr:
        label = cast("int64", targets[i])
        rest = list(i)
        index = (*rest[:place], label, *rest[place:]) if predictions.ndim > 1 else (label,)
        kept = E.NE(label, int64(ignore_index))
        picked = intrinsic("if_then_else", kept, cast(wide, predictions[tuple(index)]), const(0, wide))
        return E.Mul(E.Sub(const(0, wide), picked), weight(i))

    losses = te.compute(targets.shape, loss, "nll_losses")
    if reduction == "none":
        return te.compute(losses.shape, lambda *i: cast(predictions.dtype, losses[i]), "nll_loss")
    total = reduce_tensor(losses, "sum", range(losses.ndim), False, "nll_sum")
    if reduction == "sum":
        return te.compute((), lambda: cast(predictions.dtype, total[()]), "nll_loss")
    chosen = te.compute(targets.shape, lambda *i: weight(i), "nll_weights")
    count = reduce_tensor(chosen, "sum", range(chosen.ndim), False, "nll_count")
    return te.compute((), lambda: cast(predictions.dtype, E.Div(total[()], count[()])), "nll_loss")


def _nll_ref(
    predictions: Any, targets: Any, weights: Any = None, reduction: str = "mean", ignore_index: int = -100
) -> Any:
    targets = np.asarray(targets)
    kept = targets != ignore_index
    labels = np.where(kept, targets, 0)
    place = class_axis(predictions.ndim)
    require_in_bounds(labels, place, "predictions", predictions.shape[place], from_end=False)
    expanded = labels.reshape((1,)) if predictions.ndim == 1 else np.expand_dims(labels, place)
    picked = np.take_along_axis(predictions, expanded, place).reshape(targets.shape)
    weight = np.where(kept, 1.0 if weights is None else weights[labels], 0.0).astype(predictions.dtype)
    losses = np.where(kept, -picked, 0) * weight
    if reduction == "none":
        return losses.astype(predictions.dtype)
    total = losses.sum()
    return np.asarray(total if reduction == "sum" else total / weight.sum()).astype(predictions.dtype)


@operator(
    "nn.nll_loss",
    fusion=Fusion.OPAQUE,
    lower=_nll_lower,
    ref=_nll_ref,
    samples=lambda: [
        sample((3, 5), np.array([0, 4, 2], "int64")),
        sample((3, 5), np.array([0, -100, 2], "int64"), (5,), reduction="sum"),
        sample((2, 3, 4), np.array([[0, 1, 2, 0], [2, 2, 1, 1]], "int64"), reduction="none"),
        sample(
            (2, 3, 4), np.array([[0, 1, 2, 0], [2, 2, 1, 1]], "int64"), np.array([0.5, 1, 2], "float32"), ignore_index=2
        ),
        sample((5,), np.array(3, "int64")),
    ],
    kernel=lambda call: "nll_loss" if len(call.args) > 2 else "nll_loss_without_weight",
)
def nll_loss(
    predictions: TensorType,
    targets: TensorType,
    weights: TensorType | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Type:
    """The negative log-likelihood of target classes under log-probabilities ``(N, C, ...)``, as PyTorch defines it:
    weighted by class, targets equal to ``ignore_index`` left out; ``reduction``: ``"mean"``, ``"sum"``, ``"none"``."""
    require_integers("nn.nll_loss", "targets", targets)
    require_floats("nn.nll_loss", predictions)
    if reduction not in ("mean", "sum", "none"):
        fail("nn.nll_loss: unknown reduction", "mean, sum or none", reduction)
    require_classes("nn.nll_loss", predictions, targets, weights)
    if weights is not None:
        same_dtype("nn.nll_loss", predictions, weights)
    dtype = predictions.dtype if weights is None or weights.dtype is not None else None
    if reduction == "none":
        dims = tensor_dims(predictions)
        if dims is None:
            return TensorType(None, dtype, max(predictions.ndim - 1, -1))
        place = class_axis(len(dims))
        return tensor((*dims[:place], *dims[place + 1 :]), dtype)
    return tensor((), dtype)
