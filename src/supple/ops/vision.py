"""Boxes of detectors: get_valid_counts, multibox_transform_loc."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.build.loops import Cell, do, loop, store, when, with_cells
from supple.ir import expr as E
from supple.ir.expr import cast, const, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Stmt, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType, TupleType
from supple.ops.declare import Floats, fail, operator, sample
from supple.ops.normalize import softmax, wide_dtype
from supple.ops.requirements import require_at_least, require_equal, require_floats
from supple.ops.shapes import require_rank, same_dtype
from supple.sym.relate import tensor, tensor_dims
from supple.sym.simplify import SHAPES


def require_extent(name: str, what: str, dim: Expr, wanted: Expr) -> None:
    """One extent of an operand, by the rest of them."""
    require_equal(f"{name}: {what} do not fit", wanted, dim)


def require_columns(name: str, dims: tuple[Expr, ...] | None, *columns: int) -> None:
    """The last extent of an operand holds elements at these places."""
    if dims is not None:
        require_at_least(f"{name}: a row has no element {max(columns)}", max(columns) + 1, dims[-1])


# ----------------------------------------------------------------------------------------------------- get_valid_counts


def _counts_lower(
    data: te.TensorValue, score_threshold: float, id_index: int, score_index: int
) -> list[te.TensorValue]:
    batch, boxes, size = data.shape
    limit = const(score_threshold, data.dtype)

    def body(counts: te.TensorValue, rows: te.TensorValue, places: te.TensorValue) -> Stmt:
        count = Cell("int64", "count")

        def image(b: Any) -> Stmt:
            def take(k: Any) -> Stmt:
                valid: Expr = E.GT(data[b, k, int64(score_index)], limit)
                if id_index >= 0:
                    valid = E.And(valid, E.GE(data[b, k, int64(id_index)], const(0, data.dtype)))
                copy = loop(size, lambda e: store(rows, data[b, k, e], b, count.value, e), "e")
                keep = do(
                    copy, store(places, cast("int32", k), b, count.value), count.set(E.Add(count.value, int64(1)))
                )
                return when(valid, keep)

            cleared = loop(
                boxes,
                lambda k: do(
                    store(places, const(-1, "int32"), b, k),
                    loop(size, lambda e: store(rows, const(-1, data.dtype), b, k, e), "e"),
                ),
                "z",
            )
            return do(cleared, count.set(0), loop(boxes, take, "k"), store(counts, cast("int32", count.value), b))

        return with_cells([count], loop(batch, image, "b"))

    outputs = [((batch,), "int32"), (data.shape, data.dtype), ((batch, boxes), "int32")]
    return te.extern(outputs, [data], body, "valid_counts")


def _counts_ref(data: Any, score_threshold: float, id_index: int, score_index: int) -> Any:
    counts = np.zeros(data.shape[0], "int32")
    rows, places = np.full_like(data, -1), np.full(data.shape[:2], -1, "int32")
    limit = np.asarray(score_threshold).astype(data.dtype)
    for b, image in enumerate(data):
        valid = image[:, score_index] > limit
        if id_index >= 0:
            valid &= image[:, id_index] >= 0
        (kept,) = np.nonzero(valid)
        counts[b] = len(kept)
        rows[b, : len(kept)], places[b, : len(kept)] = image[kept], kept
    return counts, rows, places


BOXES = np.array(
    [
        [
            [0, 0.9, 0, 0, 10, 10],
            [0, 0.8, 11, 11, 1, 1],
            [1, 0.7, 0, 0, 10, 10],
            [0, 0.75, 20, 20, 30, 30],
            [-1, 0.5, 0, 0, 1, 1],
            [0, 0.1, 21, 20, 30, 31],
        ]
    ],
    "float32",
)


@operator(
    "vision.get_valid_counts",
    fusion=Fusion.OPAQUE,
    lower=_counts_lower,
    ref=_counts_ref,
    samples=lambda: [sample(BOXES, score_threshold=0.2), sample((2, 3, 6), id_index=-1)],
)
def get_valid_counts(data: TensorType, score_threshold: float = 0, id_index: int = 0, score_index: int = 1) -> Type:
    """The boxes ``(batch, boxes, elements)`` whose score is above the threshold and whose class (``id_index``, unless
    it is negative) is not: how many, their rows moved to the front, and their places; the rest is -1."""
    name = "vision.get_valid_counts"
    require_floats(name, data)
    require_rank(name, "data", data, 3)
    if score_index < 0:
        fail(f"{name}: the score's place is negative", "an element of a row", str(score_index))
    if id_index < -1:
        fail(f"{name}: the class' place is negative", "an element of a row, or -1", str(id_index))
    dims = tensor_dims(data)
    require_columns(name, dims, score_index, id_index)
    if dims is None:
        return TupleType((TensorType(None, "int32", 1), TensorType(None, data.dtype, 3), TensorType(None, "int32", 2)))
    return TupleType((tensor(dims[:1], "int32"), tensor(dims, data.dtype), tensor(dims[:2], "int32")))


# ----------------------------------------------------------------------------------------------- multibox_transform_loc


def _multibox_lower(
    cls_pred: te.TensorValue,
    loc_pred: te.TensorValue,
    anchor: te.TensorValue,
    clip: bool,
    threshold: float,
    variances: Sequence[float],
    keep_background: bool,
    apply_softmax: bool,
) -> list[te.TensorValue]:
    wide = wide_dtype(cls_pred.dtype)
    batch, _, count = cls_pred.shape
    assert softmax.lower is not None
    likely = softmax.lower(cls_pred, 1) if apply_softmax else cls_pred
    half = const(0.5, wide)

    def corner(b: Any, n: Any, e: Any) -> Expr:
        """Corners in the order top, left, bottom, right of an anchor left, top, right, bottom."""
        across = E.EQ(E.FloorMod(e, int64(2)), int64(1))

        def of(d: int) -> Expr:
            low, high = (cast(wide, anchor[int64(0), n, int64(k)]) for k in (d, d + 2))
            shift, grow = (cast(wide, loc_pred[b, E.Add(E.Mul(n, int64(4)), int64(k))]) for k in (d, d + 2))
            extent = E.Sub(high, low)
            moved = E.Mul(E.Mul(shift, const(variances[d], wide)), extent)
            middle = E.Add(moved, E.Mul(E.Add(low, high), half))
            reach = E.Mul(E.Mul(intrinsic("exp", E.Mul(grow, const(variances[d + 2], wide))), extent), half)
            return E.Select(E.LT(e, int64(2)), E.Sub(middle, reach), E.Add(middle, reach))

        found: Expr = E.Select(across, of(0), of(1))
        if clip:
            found = E.Max(E.Min(found, const(1, wide)), const(0, wide))
        return cast(loc_pred.dtype, found)

    def score(b: Any, c: Any, n: Any) -> Expr:
        value = likely[b, c, n]
        kept: Expr = E.GE(cast(wide, value), const(threshold, wide))
        if not keep_background:
            kept = E.And(kept, E.GT(c, int64(0)))
        return E.Select(kept, value, const(0, cls_pred.dtype))

    return [
        te.compute((batch, count, int64(4)), corner, "multibox_boxes"),
        te.compute(cls_pred.shape, score, "multibox_scores"),
    ]


def _multibox_ref(
    cls_pred: Any,
    loc_pred: Any,
    anchor: Any,
    clip: bool,
    threshold: float,
    variances: Sequence[float],
    keep_background: bool,
    apply_softmax: bool,
) -> Any:
    wide = dtypes.widened(cls_pred)
    kind = wide.dtype.type
    scores = wide
    if apply_softmax and wide.size:
        scores = np.exp(wide - wide.max(axis=1, keepdims=True))
        scores = (scores / scores.sum(axis=1, keepdims=True)).astype(cls_pred.dtype).astype(wide.dtype)
    scores = np.where(scores >= kind(threshold), scores, 0)
    if not keep_background:
        scores[:, :1] = 0
    loc = dtypes.widened(loc_pred).reshape(cls_pred.shape[0], cls_pred.shape[2], 4)
    corners = dtypes.widened(anchor)
    extent = corners[..., 2:] - corners[..., :2]
    middle = loc[..., :2] * np.array(variances[:2], wide.dtype) * extent + (corners[..., :2] + corners[..., 2:]) / 2
    reach = np.exp(loc[..., 2:] * np.array(variances[2:], wide.dtype)) * extent / 2
    boxes = np.concatenate([(middle - reach)[..., ::-1], (middle + reach)[..., ::-1]], -1)
    return (np.clip(boxes, 0, 1) if clip else boxes).astype(loc_pred.dtype), scores.astype(cls_pred.dtype)


_ANCHORS = np.array([[[0.1, 0.1, 0.3, 0.4], [0, 0, 0.5, 0.5], [0.5, 0.5, 1, 1]]], "float32")


@operator(
    "vision.multibox_transform_loc",
    fusion=Fusion.OPAQUE,
    lower=_multibox_lower,
    ref=_multibox_ref,
    samples=lambda: [
        sample((2, 4, 3), np.linspace(-1, 1, 24, dtype="float32").reshape(2, 12), _ANCHORS),
        sample(
            (2, 4, 3),
            np.linspace(-1, 1, 24, dtype="float32").reshape(2, 12),
            _ANCHORS,
            clip=True,
            threshold=0.3,
            variances=(0.1, 0.1, 0.2, 0.2),
            keep_background=False,
            apply_softmax=False,
        ),
    ],
)
def multibox_transform_loc(
    cls_pred: TensorType,
    loc_pred: TensorType,
    anchor: TensorType,
    clip: bool = False,
    threshold: float = 0.0,
    variances: Floats = (1.0, 1.0, 1.0, 1.0),
    keep_background: bool = True,
    apply_softmax: bool = True,
) -> Type:
    """Boxes and scores of a single-shot detector: ``loc_pred`` ``(batch, anchors * 4)`` holds shifts and growths (x, y,
    width, height) of ``anchor`` ``(1, anchors, 4)`` (left, top, right, bottom), scaled by ``variances``.

    The result is the boxes ``(batch, anchors, 4)`` as top, left, bottom, right (limited to [0, 1] with ``clip``), and
    the scores ``(batch, classes, anchors)``, after a softmax over classes: those below ``threshold``, and class 0
    without ``keep_background``, are 0."""
    name = "vision.multibox_transform_loc"
    require_floats(name, cls_pred)
    same_dtype(name, cls_pred, loc_pred)
    same_dtype(name, cls_pred, anchor)
    require_rank(name, "cls_pred", cls_pred, 3)
    require_rank(name, "loc_pred", loc_pred, 2)
    require_rank(name, "anchor", anchor, 3)
    if variances is None or len(variances) != 4:
        fail(f"{name}: four variances", "4 numbers", str(variances))
    dims, moves, anchors = (tensor_dims(t) for t in (cls_pred, loc_pred, anchor))
    if dims is not None and moves is not None:
        require_extent(name, "the shifts", moves[1], SHAPES.simplify(E.Mul(dims[2], int64(4))))
        require_extent(name, "the batches", moves[0], dims[0])
    if anchors is not None:
        require_extent(name, "the batch of anchors", anchors[0], int64(1))
        require_extent(name, "the anchors' corners", anchors[2], int64(4))
        if dims is not None:
            require_extent(name, "the anchors", anchors[1], dims[2])
    scores = TensorType(cls_pred.shape, cls_pred.dtype, 3)
    if dims is None:
        return TupleType((TensorType(None, cls_pred.dtype, 3), scores))
    return TupleType((tensor((dims[0], dims[2], int64(4)), cls_pred.dtype), scores))
