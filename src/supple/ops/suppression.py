"""Boxes that overlap a better one left out: non_max_suppression, all_class_non_max_suppression."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.build.loops import Cell, do, loop, nest, store, when, while_, with_cells
from supple.ir import expr as E
from supple.ir.expr import cast, const, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Stmt, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType, TupleType
from supple.ops.declare import Sample, fail, operator, sample
from supple.ops.index import require_integers
from supple.ops.normalize import wide_dtype
from supple.ops.requirements import require_floats, require_related
from supple.ops.shapes import alike, require_known_rank, require_rank
from supple.ops.sort import sorted_indices
from supple.ops.vision import BOXES, require_columns, require_extent
from supple.sym.relate import tensor, tensor_dims
from supple.sym.simplify import SHAPES, product

IDS = np.array([[5, 6, 7, 8, 9, 10]], "int32")

# -------------------------------------------------------------------------------------------------------------- overlap


class _Box:
    """Two opposite corners of a box in scalar variables."""

    def __init__(self, wide: str, name: str) -> None:
        self.sides = [(Cell(wide, f"{name}{d}"), Cell(wide, f"{name}{d + 2}")) for d in (0, 1)]
        self.cells = [cell for pair in self.sides for cell in pair]
        self.wide = wide

    def load(self, corner: Callable[[int], Expr]) -> Stmt:
        """Take the box of two opposite corners: four coordinates."""
        steps = []
        for d, (low, high) in enumerate(self.sides):
            steps += [low.set(cast(self.wide, corner(d))), high.set(cast(self.wide, corner(d + 2)))]
        return do(*steps)

    def extent(self, d: int) -> Expr:
        return E.Sub(self.high(d), self.low(d))

    def low(self, d: int) -> Expr:
        return E.Min(self.sides[d][0].value, self.sides[d][1].value)

    def high(self, d: int) -> Expr:
        return E.Max(self.sides[d][0].value, self.sides[d][1].value)


def _overlap(a: _Box, b: _Box) -> Expr:
    """Intersection over union; 0 for an empty union."""
    zero, one = const(0, a.wide), const(1, a.wide)
    shared = [E.Max(E.Sub(E.Min(a.high(d), b.high(d)), E.Max(a.low(d), b.low(d))), zero) for d in (0, 1)]
    common = E.Mul(shared[0], shared[1])
    union = E.Sub(E.Add(E.Mul(a.extent(0), a.extent(1)), E.Mul(b.extent(0), b.extent(1))), common)
    return E.Select(E.GT(union, zero), E.Div(common, E.Select(E.GT(union, zero), union, one)), zero)


def _overlap_ref(a: Any, b: Any) -> Any:
    low_a, high_a = np.minimum(a[:2], a[2:]), np.maximum(a[:2], a[2:])
    low_b, high_b = np.minimum(b[:2], b[2:]), np.maximum(b[:2], b[2:])
    common = np.maximum(np.minimum(high_a, high_b) - np.maximum(low_a, low_b), 0).prod()
    union = (high_a - low_a).prod() + (high_b - low_b).prod() - common
    return common / union if union > 0 else a.dtype.type(0)


# -------------------------------------------------------------------------------------------------- non_max_suppression


class _Suppression:
    """The attributes of non_max_suppression."""

    def __init__(self, attrs: dict[str, Any]) -> None:
        self.limit, self.threshold = attrs["max_output_size"], attrs["iou_threshold"]
        self.top, self.start = attrs["top_k"], attrs["coord_start"]
        self.score, self.id = attrs["score_index"], attrs["id_index"]
        self.any_class = attrs["force_suppress"] or self.id < 0
        self.indices, self.compact = attrs["return_indices"], attrs["invalid_to_bottom"]
        self.sigma, self.least = attrs["soft_nms_sigma"], attrs["score_threshold"]

    @property
    def soft(self) -> bool:
        return bool(self.sigma > 0)


def _nms_lower(
    data: te.TensorValue, valid_count: te.TensorValue, indices: te.TensorValue, **attrs: Any
) -> list[te.TensorValue]:
    plan = _Suppression(attrs)
    wide = wide_dtype(data.dtype)
    batch, boxes, _ = data.shape
    zero, one = int64(0), int64(1)

    def valid(b: Any) -> Expr:
        return E.Min(E.Max(cast("int64", valid_count[b]), zero), boxes)

    scores = te.compute(
        (batch, boxes),
        lambda b, k: E.Select(E.LT(k, valid(b)), cast(wide, data[b, k, int64(plan.score)]), const(-math.inf, wide)),
        "nms_scores",
    )
    order = sorted_indices(scores, 1, True)

    def corner(b: Any, k: Expr) -> Callable[[int], Expr]:
        return lambda d: data[b, k, int64(plan.start + d)]

    def body(*made: te.TensorValue) -> Stmt:
        picked, scored, kept, counts, left, alive = made
        count, best, going, common = (
            Cell("int64", "count"),
            Cell("int64", "best"),
            Cell("bool", "going"),
            Cell(wide, "common"),
        )
        chosen, other = Cell("int64", "chosen"), Cell("int64", "other")
        one_box, other_box = _Box(wide, "one"), _Box(wide, "two")

        def pick(b: Any, j: Any) -> Stmt:
            """Box ``j`` of the order is kept, and those that overlap it go, or count less."""

            def later(k: Any) -> Stmt:
                concerned: Expr = const(True)
                if not plan.any_class:
                    ids = (data[b, cell.value, int64(plan.id)] for cell in (chosen, other))
                    concerned = E.EQ(*ids)
                less: Stmt | None = None
                if plan.soft:
                    square = E.Mul(common.value, common.value)
                    falling = E.Div(E.Mul(const(-0.5, wide), square), const(plan.sigma, wide))
                    less = store(left, E.Mul(left[k], intrinsic("exp", falling)), k)
                over = E.GE(common.value, const(plan.threshold, wide))
                compared = do(
                    other_box.load(corner(b, other.value)),
                    common.set(_overlap(one_box, other_box)),
                    when(over, store(alive, False, k), less),
                )
                return when(alive[k], do(other.set(order[b, k]), when(concerned, compared)))

            return do(
                store(alive, False, j),
                chosen.set(order[b, j]),
                one_box.load(corner(b, chosen.value)),
                store(picked, j, b, count.value),
                store(scored, left[j], b, count.value),
                store(kept, True, b, j),
                count.set(E.Add(count.value, one)),
                loop(boxes, later, "k"),
            )

        def image(b: Any) -> Stmt:
            candidates = E.Min(valid(b), int64(plan.top)) if plan.top > 0 else valid(b)
            room: Expr = E.LT(count.value, int64(plan.limit)) if plan.limit > 0 else const(True)

            def start(j: Any) -> Stmt:
                return do(
                    store(alive, E.LT(j, candidates), j),
                    store(left, scores[b, order[b, j]], j),
                    store(picked, zero, b, j),
                    store(scored, const(0, wide), b, j),
                    store(kept, False, b, j),
                )

            def better(j: Any) -> Stmt:
                first = E.LT(best.value, zero)
                more = E.Or(first, E.GT(left[j], left[E.Max(best.value, zero)]))
                return when(E.And(alive[j], more), best.set(j))

            if plan.soft:
                found = E.And(E.GE(best.value, zero), E.GT(left[E.Max(best.value, zero)], const(plan.least, wide)))
                step = when(E.And(found, room), pick(b, best.value), going.set(False))
                search = while_(going.value, best.set(-1), loop(boxes, better, "j"), step)
                select: Stmt = do(going.set(E.GT(boxes, zero)), search)
            else:
                select = loop(boxes, lambda j: when(E.And(alive[j], room), pick(b, j)), "j")
            return do(count.set(0), loop(boxes, start, "s"), select, store(counts, count.value, b))

        return with_cells(
            [count, best, going, common, chosen, other, *one_box.cells, *other_box.cells], loop(batch, image, "b")
        )

    rows = (batch, boxes)
    outputs = [(rows, "int64"), (rows, wide), (rows, "bool"), ((batch,), "int64")]
    scratch = [((boxes,), wide), ((boxes,), "bool")]
    picked, scored, kept, counts = te.extern(outputs, [data, valid_count, scores, order], body, "nms", scratch)

    def row(b: Any, n: Any, e: Any) -> Expr:
        if plan.soft or plan.compact:
            value = data[b, order[b, picked[b, n]], e]
            value = E.Select(E.EQ(e, int64(plan.score)), cast(data.dtype, scored[b, n]), value)
            return intrinsic("if_then_else", E.LT(n, counts[b]), value, const(-1, data.dtype))
        return intrinsic("if_then_else", kept[b, n], data[b, order[b, n], e], const(-1, data.dtype))

    def place(b: Any, n: Any) -> Expr:
        given = cast("int32", indices[b, order[b, picked[b, n]]])
        return intrinsic("if_then_else", E.LT(n, counts[b]), given, const(-1, "int32"))

    boxes_out = te.compute(data.shape, row, "nms_boxes")
    if not plan.indices:
        return [boxes_out]
    found = [
        te.compute(rows, place, "nms_indices"),
        te.compute((batch, one), lambda b, _: cast("int32", counts[b]), "nms_count"),
    ]
    return [boxes_out, *found] if plan.soft else found


def _descending(scores: Any) -> Any:
    """The places of the scores, the greatest first, equal ones in order; NaN is above every number."""
    return np.lexsort((-scores, ~np.isnan(scores)))


def _nms_ref(data: Any, valid_count: Any, indices: Any, **attrs: Any) -> Any:
    plan = _Suppression(attrs)
    wide = dtypes.widened(data)
    rows = np.full_like(data, -1)
    places = np.full(data.shape[:2], -1, "int32")
    counts = np.zeros((data.shape[0], 1), "int32")
    for b in range(data.shape[0]):
        valid = min(max(int(valid_count[b]), 0), data.shape[1])
        order = _descending(wide[b, :valid, plan.score])
        order = order[: plan.top] if plan.top > 0 else order
        left = {j: wide[b, k, plan.score] for j, k in enumerate(order)}
        picked: list[tuple[int, Any]] = []
        while left and not 0 < plan.limit <= len(picked):
            j = max(left, key=lambda j: (left[j], -j)) if plan.soft else min(left)
            score = left.pop(j)
            if plan.soft and not score > plan.least:
                break
            picked.append((j, score))
            box = wide[b, order[j]]
            for k in list(left):
                other = wide[b, order[k]]
                if not plan.any_class and box[plan.id] != other[plan.id]:
                    continue
                common = _overlap_ref(box[plan.start : plan.start + 4], other[plan.start : plan.start + 4])
                if common >= wide.dtype.type(plan.threshold):
                    del left[k]
                elif plan.soft:
                    left[k] = left[k] * np.exp(wide.dtype.type(-0.5) * (common * common) / wide.dtype.type(plan.sigma))
        for n, (j, score) in enumerate(picked):
            at = n if plan.soft or plan.compact else j
            rows[b, at] = data[b, order[j]]
            rows[b, at, plan.score] = score
            places[b, n] = indices[b, order[j]]
        counts[b] = len(picked)
    if not plan.indices:
        return rows
    return (rows, places, counts) if plan.soft else (places, counts)


def _nms_samples() -> list[Sample]:
    count = np.array([5], "int32")
    return [
        sample(BOXES, count, IDS),
        sample(BOXES, count, IDS, force_suppress=True, return_indices=False),
        sample(BOXES, count, IDS, max_output_size=2, return_indices=False, invalid_to_bottom=True, id_index=-1),
        sample(BOXES, count, IDS, top_k=2, iou_threshold=0.9),
        sample(BOXES, count, IDS, soft_nms_sigma=0.5, score_threshold=0.4, iou_threshold=0.9),
    ]


@operator("vision.non_max_suppression", fusion=Fusion.OPAQUE, lower=_nms_lower, ref=_nms_ref, samples=_nms_samples)
def non_max_suppression(
    data: TensorType,
    valid_count: TensorType,
    indices: TensorType,
    max_output_size: int = -1,
    iou_threshold: float = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
    soft_nms_sigma: float = 0.0,
    score_threshold: float = 0.0,
) -> Type:
    """Boxes ``(batch, boxes, elements)`` without those that overlap a better one of their class (of any class with
    ``force_suppress`` or a negative ``id_index``) by ``iou_threshold`` or more.

    The first ``valid_count`` boxes are looked at, best score first, at most ``top_k`` of them, and at most
    ``max_output_size`` are kept (limits below 1: all). The result is ``(indices, count)``: the given indices of the
    kept boxes, then -1; or without ``return_indices`` the boxes by score, those that went as rows of -1 (last with
    ``invalid_to_bottom``). With ``soft_nms_sigma`` above 0 an overlap below the threshold multiplies the score by
    ``exp(-iou ** 2 / (2 sigma))``, boxes are kept while their score is above ``score_threshold``, and the result
    begins with the kept boxes and their new scores."""
    name = "vision.non_max_suppression"
    require_floats(name, data)
    for what, t in (("valid_count", valid_count), ("indices", indices)):
        if t.dtype not in (None, "int32"):
            fail(f"{name}: {what} must be int32", "int32", t.dtype, hint=f'{what}.astype("int32")')
    require_rank(name, "data", data, 3)
    require_rank(name, "valid_count", valid_count, 1)
    require_rank(name, "indices", indices, 2)
    if coord_start < 0 or score_index < 0:
        fail(f"{name}: a place in the rows is negative", "elements from 0", str(min(coord_start, score_index)))
    dims, given, counts = tensor_dims(data), tensor_dims(indices), tensor_dims(valid_count)
    require_columns(name, dims, score_index, id_index, coord_start + 3)
    if dims is not None and given is not None:
        require_related(f"{name}: the indices do not fit", dims[:2], given)
    if dims is not None and counts is not None:
        require_related(f"{name}: the counts do not fit", dims[:1], counts)
    boxes = TensorType(data.shape, data.dtype, 3)
    if not return_indices:
        return boxes
    if dims is None:
        found = [TensorType(None, "int32", 2), TensorType(None, "int32", 2)]
    else:
        found = [tensor(dims[:2], "int32"), tensor((dims[0], int64(1)), "int32")]
    return TupleType((boxes, *found) if soft_nms_sigma > 0 else tuple(found))


# ------------------------------------------------------------------------------------------------- one class at a time

_FORMATS = ("onnx", "tensorflow")


def _one(t: te.TensorValue) -> Expr:
    return t[tuple(int64(0) for _ in range(t.ndim))]


def _all_class_lower(
    boxes: te.TensorValue,
    scores: te.TensorValue,
    max_output_boxes_per_class: te.TensorValue,
    iou_threshold: te.TensorValue,
    score_threshold: te.TensorValue,
    output_format: str,
) -> list[te.TensorValue]:
    batch, classes, count = scores.shape
    wide = wide_dtype(scores.dtype)
    onnx = output_format == "onnx"
    order = sorted_indices(scores, 2, True)
    room = SHAPES.simplify(E.Mul(classes, count))
    total = SHAPES.simplify(E.Mul(batch, room))

    def body(*made: te.TensorValue) -> Stmt:
        *results, numbers, picked = made
        here, row, good = Cell("int64", "here"), Cell("int64", "row"), Cell("bool", "good")
        at_cell, value_cell = Cell("int64", "at"), Cell(scores.dtype, "value")
        one_box, other_box = _Box(wide, "one"), _Box(wide, "two")
        at, value = at_cell.value, value_cell.value
        cells = [here, row, good, at_cell, value_cell, *one_box.cells, *other_box.cells]

        def a_class(b: Any, c: Any) -> Stmt:
            def corner(k: Expr) -> Callable[[int], Expr]:
                return lambda d: boxes[b, k, int64(d)]

            def box(j: Any) -> Stmt:
                limit = cast("int64", _one(max_output_boxes_per_class))
                enough = E.And(E.GT(cast(wide, value), cast(wide, _one(score_threshold))), E.LT(here.value, limit))

                def against(n: Any) -> Stmt:
                    over = E.GT(_overlap(one_box, other_box), cast(wide, _one(iou_threshold)))
                    return when(good.value, do(other_box.load(corner(picked[n])), when(over, good.set(False))))

                if onnx:
                    write = [store(results[0], v, row.value, n) for n, v in enumerate((b, c, at))]
                else:
                    write = [store(results[0], v, b, row.value, n) for n, v in enumerate((c, at))]
                    write.append(store(results[1], value, b, row.value))
                advance = [here.set(E.Add(here.value, int64(1))), row.set(E.Add(row.value, int64(1)))]
                keep = do(*write, store(picked, at, here.value), *advance)
                check = do(good.set(True), one_box.load(corner(at)), loop(here.value, against, "n"))
                read = [at_cell.set(order[b, c, j]), value_cell.set(scores[b, c, at])]
                return do(*read, when(enough, do(check, when(good.value, keep))))

            return do(here.set(0), loop(count, box, "j"))

        if onnx:
            cleared = nest((total, 3), lambda r, e: store(results[0], int64(-1), r, e), ["r", "e"])
            every = nest((batch, classes), a_class, ["b", "c"])
            return with_cells(cells, cleared, row.set(0), every, store(numbers, row.value, 0))

        def image(b: Any) -> Stmt:
            def clear(r: Any) -> Stmt:
                return do(*(store(results[0], int64(0), b, r, n) for n in range(2)), store(results[1], 0, b, r))

            every = loop(classes, lambda c: a_class(b, c), "c")
            return do(loop(room, clear, "r"), row.set(0), every, store(numbers, row.value, b))

        return with_cells(cells, loop(batch, image, "b"))

    outputs: list[tuple[Sequence[Any], str]] = (
        [((total, int64(3)), "int64"), ((int64(1),), "int64")]
        if onnx
        else [((batch, room, int64(2)), "int64"), ((batch, room), scores.dtype), ((batch,), "int64")]
    )
    given = [boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold, order]
    return te.extern(outputs, given, body, "all_class_nms", [((count,), "int64")])


def _all_class_ref(
    boxes: Any,
    scores: Any,
    max_output_boxes_per_class: Any,
    iou_threshold: Any,
    score_threshold: Any,
    output_format: str,
) -> Any:
    limit, least, overlap = (np.ravel(v)[0] for v in (max_output_boxes_per_class, score_threshold, iou_threshold))
    batch, classes, count = scores.shape
    wide = dtypes.widened(scores)
    corners = dtypes.widened(boxes).astype(wide.dtype)
    found: list[list[tuple[int, int]]] = []
    for b in range(batch):
        found.append([])
        for c in range(classes):
            kept: list[int] = []
            for k in _descending(wide[b, c]):
                if not wide[b, c, k] > least or len(kept) >= limit:
                    continue
                if all(not _overlap_ref(corners[b, n], corners[b, k]) > overlap for n in kept):
                    kept.append(int(k))
            found[b] += [(c, k) for k in kept]
    if output_format == "onnx":
        rows = np.full((batch * classes * count, 3), -1, "int64")
        flat = [(b, c, k) for b in range(batch) for c, k in found[b]]
        rows[: len(flat)] = np.array(flat, "int64").reshape(-1, 3)
        return rows, np.array([len(flat)], "int64")
    places, values = np.zeros((batch, classes * count, 2), "int64"), np.zeros((batch, classes * count), scores.dtype)
    for b in range(batch):
        for n, (c, k) in enumerate(found[b]):
            places[b, n], values[b, n] = (c, k), scores[b, c, k]
    return places, values, np.array([len(f) for f in found], "int64")


def _all_class_samples() -> list[Sample]:
    boxes = np.array(
        [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [1, 11.1, 0, 10.1]]], "float32"
    )
    scores = np.array([[[0.9, 0.75, 0.6, 0.95, 0.5], [0.1, 0.2, 0.3, 0.4, 0.5]]], "float32")
    most, overlap, least = np.array(3, "int64"), np.array([0.5], "float32"), np.array(0.15, "float32")
    return [
        sample(boxes, scores, most, overlap, least),
        sample(boxes, scores, np.array([1], "int64"), overlap, least, output_format="tensorflow"),
    ]


@operator(
    "vision.all_class_non_max_suppression",
    fusion=Fusion.OPAQUE,
    lower=_all_class_lower,
    ref=_all_class_ref,
    samples=_all_class_samples,
)
def all_class_non_max_suppression(
    boxes: TensorType,
    scores: TensorType,
    max_output_boxes_per_class: TensorType,
    iou_threshold: TensorType,
    score_threshold: TensorType,
    output_format: str = "onnx",
) -> Type:
    """Non-maximum suppression of ``boxes`` ``(batch, boxes, 4)`` for every class of ``scores`` ``(batch, classes,
    boxes)``, as ONNX NonMaxSuppression: boxes above the score threshold, best first, that overlap no kept box by more
    than ``iou_threshold``; limits are tensors of one element.

    ``"onnx"``: rows ``(batch, class, box)``, -1 after the last, and their number; ``"tensorflow"``: for each image rows
    ``(class, box)``, their scores, 0 after the last, and their number."""
    name = "vision.all_class_non_max_suppression"
    require_floats(name, boxes)
    require_known_rank(name, "boxes", boxes)
    require_known_rank(name, "scores", scores)
    alike(name, boxes, scores)
    require_integers(name, "max_output_boxes_per_class", max_output_boxes_per_class)
    require_rank(name, "boxes", boxes, 3)
    require_rank(name, "scores", scores, 3)
    if output_format not in _FORMATS:
        fail(f"{name}: unknown format", " or ".join(_FORMATS), output_format)
    for what, t in (("max_output_boxes_per_class", max_output_boxes_per_class), ("iou_threshold", iou_threshold)):
        if t.ndim not in (-1, 0, 1):
            fail(f"{name}: {what} is one number", "a tensor of one element", f"{t.ndim} dimensions")
    dims, corners = tensor_dims(scores), tensor_dims(boxes)
    if corners is not None:
        require_extent(name, "the boxes' corners", corners[2], int64(4))
    if dims is not None and corners is not None:
        require_extent(name, "the boxes", corners[1], dims[2])
        require_extent(name, "the batches", corners[0], dims[0])
    onnx = output_format == "onnx"
    if dims is None or corners is None:
        if onnx:
            return TupleType((TensorType(None, "int64", 2), tensor((int64(1),), "int64")))
        found = (TensorType(None, "int64", 3), TensorType(None, scores.dtype, 2), TensorType(None, "int64", 1))
        return TupleType(found)
    if onnx:
        return TupleType(
            (tensor((product([corners[0], dims[1], corners[1]]), int64(3)), "int64"), tensor((int64(1),), "int64"))
        )
    room = SHAPES.simplify(E.Mul(dims[1], corners[1]))
    places, values = tensor((dims[0], room, int64(2)), "int64"), tensor((dims[0], room), scores.dtype)
    return TupleType((places, values, tensor(dims[:1], "int64")))
