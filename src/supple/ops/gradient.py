"""Marks and backward operators for automatic differentiation: grad.*."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.build.infer import infer
from supple.build.loops import Cell, do, filled, nest, require, store, when, with_cells
from supple.ir import expr as E
from supple.ir.expr import cast, const, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Stmt, Type
from supple.ir.op import Fusion, Op
from supple.ir.types import TensorType
from supple.ops.attention import class_axis, class_weight, require_classes
from supple.ops.declare import Axes, Axis, Sample, fail, operator, sample
from supple.ops.index import require_in_bounds, require_integers, wrapped_index
from supple.ops.layouts import settle_window
from supple.ops.normalize import wide_dtype
from supple.ops.pool import POOL_SIZES, POOL_TEXT, PoolPlan, by_meaning, count_inside, ref_taps, window_spots
from supple.ops.reduce import reduce_tensor
from supple.ops.requirements import require_floats, require_shape
from supple.ops.shapes import alike, normalize_axis
from supple.sym.relate import tensor, tensor_dims

# ---------------------------------------------------------------------------------------------------------------- marks


def _mark(name: str, doc: str) -> Op:
    def rule(input: Expr) -> Type:
        return infer(input)

    rule.__doc__ = doc
    return operator(f"grad.{name}", ref=lambda input: input, value="argument")(rule)


no_grad = _mark("no_grad", "The same value, through which no gradient flows.")
start_checkpoint = _mark(
    "start_checkpoint", "The same value, where a part begins that the backward pass computes anew."
)
end_checkpoint = _mark("end_checkpoint", "The same value, where a part ends that the backward pass computes anew.")


def _fits(name: str, given: TensorType, expected: TensorType, what: str) -> None:
    a, b = tensor_dims(given), tensor_dims(expected)
    if a is not None and b is not None:
        require_shape(f"{name}: the gradient does not have the shape of {what}", b, a)


# ------------------------------------------------------------------------------------------------------------- nll_loss


def _nll_lower(
    output_grad: te.TensorValue,
    predictions: te.TensorValue,
    targets: te.TensorValue,
    weights: te.TensorValue | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> te.TensorValue:
    wide = wide_dtype(predictions.dtype)
    place = class_axis(predictions.ndim)

    def weight(*i: Any) -> Expr:
        return class_weight(cast("int64", targets[i]), weights, ignore_index, wide)

    def checked(out: te.TensorValue) -> Stmt:
        def one(*i: Any) -> Stmt:
            label = cast("int64", targets[i])
            inside = E.And(E.LE(int64(0), label), E.LT(label, predictions.shape[place]))
            known = require(E.Or(E.EQ(label, int64(ignore_index)), inside), "a target is out of bounds for the classes")
            return do(known, store(out, weight(*i), *i))

        return nest(targets.shape, one)

    inputs = [predictions, targets] if weights is None else [predictions, targets, weights]
    (chosen,) = te.extern([(targets.shape, wide)], inputs, checked, "nll_weight")
    count = reduce_tensor(chosen, "sum", range(chosen.ndim), False, "nll_count") if reduction == "mean" else None

    def body(*i: Any) -> Expr:
        at = (*i[:place], *i[place + 1 :])
        flow = cast(wide, output_grad[at] if reduction == "none" else output_grad[()])
        value: Expr = E.Mul(E.Sub(const(0, wide), chosen[at]), flow)
        value = value if count is None else E.Div(value, count[()])
        return cast(predictions.dtype, E.Select(E.EQ(cast("int64", targets[at]), i[place]), value, const(0, wide)))

    return te.compute(predictions.shape, body, "nll_loss_backward")


def _nll_ref(
    output_grad: Any,
    predictions: Any,
    targets: Any,
    weights: Any = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Any:
    targets = np.asarray(targets)
    kept = targets != ignore_index
    place = class_axis(predictions.ndim)
    require_in_bounds(np.where(kept, targets, 0), place, "predictions", predictions.shape[place], from_end=False)
    wide = dtypes.widened(predictions).dtype
    given = np.ones(kept.shape, wide) if weights is None else weights[np.where(kept, targets, 0)].astype(wide)
    weight = np.where(kept, given, 0)
    flow = -weight * np.asarray(output_grad).astype(wide)
    if reduction == "mean":
        flow = flow / weight.sum()
    classes = np.arange(predictions.shape[place]).reshape([-1 if d == place else 1 for d in range(predictions.ndim)])
    hit = np.expand_dims(targets, place) == classes
    return np.where(hit, np.expand_dims(flow, place), 0).astype(predictions.dtype)


@operator(
    "grad.nll_loss_backward",
    device=(1,),
    fusion=Fusion.OPAQUE,
    lower=_nll_lower,
    ref=_nll_ref,
    samples=lambda: [
        sample((), (3, 5), np.array([0, 4, 2], "int64")),
        sample((3,), (3, 5), np.array([0, -100, 2], "int64"), (5,), reduction="none"),
        sample((), (2, 3, 4), np.array([[0, 1, 2, 0], [2, 2, 1, 1]], "int64"), reduction="sum", ignore_index=2),
        sample((), (5,), np.array(3, "int64")),
    ],
    kernel=lambda call: "nll_loss_backward" if len(call.args) > 3 else "te_nll_loss_backward_no_weight",
)
def nll_loss_backward(
    output_grad: TensorType,
    predictions: TensorType,
    targets: TensorType,
    weights: TensorType | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
) -> Type:
    """The gradient of `nn.nll_loss` with respect to its predictions."""
    name = "grad.nll_loss_backward"
    require_floats(name, predictions)
    require_integers(name, "targets", targets)
    alike(name, output_grad, predictions)
    if reduction not in ("mean", "sum", "none"):
        fail(f"{name}: unknown reduction", "mean, sum or none", reduction)
    require_classes(name, predictions, targets, weights)
    if reduction == "none":
        _fits(name, output_grad, targets, "the targets")
    elif output_grad.ndim not in (-1, 0):
        fail(f"{name}: the gradient of one number is one number", "0 dimensions", f"{output_grad.ndim} dimensions")
    return predictions


# ---------------------------------------------------------------------------------------------------------------- pools


def _inside(plan: PoolPlan, data: te.TensorValue, spots: list[Expr]) -> Expr:
    check: Expr = const(True)
    for d, spot in enumerate(spots):
        check = E.And(check, E.And(E.GE(spot, int64(0)), E.LT(spot, data.shape[plan.data.spatial[d]])))
    return check


def _max_lower(plan: PoolPlan, output_grad: te.TensorValue, data: te.TensorValue) -> te.TensorValue:
    """Each window's gradient is added at its greatest element (the first of equal ones; NaN is greatest)."""
    wide = wide_dtype(data.dtype)

    def body(out: te.TensorValue) -> Stmt:
        best, found = Cell(data.dtype, "best"), Cell("bool", "found")
        at = [Cell("int64", f"at{d}") for d in range(plan.spatial)]

        def window(*i: Any) -> Stmt:
            n, c, place = by_meaning(plan.out, i)

            def tap(*taps: Any) -> Stmt:
                spots = window_spots(plan, place, list(taps))
                value = data[plan.data.arrange(n, c, spots)]
                better: Expr = E.Or(E.Not(found.value), E.GT(value, best.value))
                if dtypes.is_float(data.dtype):
                    fresh = E.And(intrinsic("isnan", value), E.Not(intrinsic("isnan", best.value)))
                    better = E.Or(better, fresh)
                taken = [best.set(value), found.set(True), *(cell.set(s) for cell, s in zip(at, spots, strict=True))]
                return when(_inside(plan, data, spots), when(better, do(*taken)))

            target = plan.data.arrange(n, c, [cell.value for cell in at])
            add = store(out, E.Add(out[target], cast(wide, output_grad[i])), *target)
            search = nest(plan.window, tap, [f"t{d}" for d in range(plan.spatial)])
            start = [found.set(False), best.set(const(0, data.dtype)), *(cell.set(0) for cell in at)]
            return do(*start, search, when(found.value, add))

        cleared = filled(out, data.shape, lambda *_: const(0, wide), "z")
        return with_cells([best, found, *at], cleared, nest(output_grad.shape, window))

    (total,) = te.extern([(data.shape, wide)], [output_grad, data], body, "max_pool2d_backward")
    return _narrowed(total, data.dtype)


def _avg_lower(plan: PoolPlan, output_grad: te.TensorValue, data: te.TensorValue) -> te.TensorValue:
    """Each window's gradient is shared by the elements that it averaged."""
    wide = wide_dtype(data.dtype)

    def body(out: te.TensorValue) -> Stmt:
        share = Cell(wide, "share")

        def window(*i: Any) -> Stmt:
            n, c, place = by_meaning(plan.out, i)
            count = count_inside(plan, place, data.shape)

            def tap(*taps: Any) -> Stmt:
                spots = window_spots(plan, place, list(taps))
                target = plan.data.arrange(n, c, spots)
                return when(_inside(plan, data, spots), store(out, E.Add(out[target], share.value), *target))

            given = E.Div(cast(wide, output_grad[i]), cast(wide, E.Max(count, int64(1))))
            return do(share.set(given), nest(plan.window, tap, [f"t{d}" for d in range(plan.spatial)]))

        cleared = filled(out, data.shape, lambda *_: const(0, wide), "z")
        return with_cells([share], cleared, nest(output_grad.shape, window))

    (total,) = te.extern([(data.shape, wide)], [output_grad, data], body, "avg_pool2d_backward")
    return _narrowed(total, data.dtype)


def _narrowed(total: te.TensorValue, dtype: str) -> te.TensorValue:
    return total if total.dtype == dtype else te.compute(total.shape, lambda *i: cast(dtype, total[i]), "gradient_cast")


def _pool_ref(plan: PoolPlan, output_grad: Any, data: Any, average: bool) -> Any:
    output_grad, data = plan.out.joined_array(output_grad), plan.data.joined_array(data)
    wide = dtypes.widened(data).dtype
    x = np.transpose(data, (plan.data.outer, plan.data.channel, *plan.data.spatial))
    g = np.transpose(output_grad, (plan.out.outer, plan.out.channel, *plan.out.spatial)).astype(wide)
    out = np.zeros(x.shape, wide)
    for n, c, *place in np.ndindex(g.shape):
        taps, padded = ref_taps(plan, place, x.shape[2:])
        where = list(itertools.product(*taps))
        if average:
            count = padded if plan.count_include_pad else len(where)
            for spot in where:
                out[(n, c, *spot)] += g[(n, c, *place)] / wide.type(max(count, 1))
        elif where:
            values = np.array([x[(n, c, *spot)] for spot in where])
            out[(n, c, *where[int(np.argmax(values))])] += g[(n, c, *place)]
    order = np.argsort([plan.data.outer, plan.data.channel, *plan.data.spatial])
    return plan.data.split_array(np.transpose(out, order).astype(data.dtype))


def _pool_samples() -> list[Sample]:
    ties = np.array([[[[1, 1, 0, 2], [1, np.nan, 2, 2], [0, 0, 0, 0]]]], "float32")
    return [
        sample((1, 2, 2, 2), (1, 2, 4, 4), pool_size=[2, 2], strides=[2, 2]),
        sample((1, 1, 2, 3), ties, pool_size=[2, 2]),
        sample((1, 1, 3, 3), (1, 1, 5, 5), pool_size=[3, 3], strides=[2, 2], padding=[1, 1], count_include_pad=True),
        sample((1, 3, 3, 1), (1, 5, 5, 1), pool_size=2, strides=2, ceil_mode=True, layout="NHWC"),
        sample((1, 2, 2, 2, 2), (1, 2, 4, 4, 2), pool_size=2, strides=2, layout="NCHW2c"),
        sample((1, 1, 3, 3), (1, 1, 5, 5), pool_size=2, dilation=2),
    ]


def _pool_backward(average: bool) -> Op:
    name = f"grad.{'avg' if average else 'max'}_pool2d_backward"

    def rule(
        output_grad: TensorType,
        data: TensorType,
        pool_size: Axes = 1,  # type: ignore[assignment]
        strides: Axes = 1,  # type: ignore[assignment]
        padding: Axes = 0,  # type: ignore[assignment]
        dilation: Axes = 1,  # type: ignore[assignment]
        ceil_mode: bool = False,
        count_include_pad: bool = False,
        layout: str = "NCHW",
        out_layout: str | None = None,
    ) -> Type:
        attrs = {k: v for k, v in locals().items() if k not in ("data", "output_grad", "name")}
        require_floats(name, data)
        alike(name, output_grad, data)
        plan = PoolPlan(name, 2, attrs)
        plan.out.require_rank("output_grad", output_grad)
        pooled = plan.result_type(data)
        if pooled.shape is not None:
            _fits(name, output_grad, pooled, "the pool's result")
        dims = tensor_dims(data)
        if dims is None or not plan.data.is_split:
            return data
        sizes = [int64(block) if block else dim for (_, block), dim in zip(plan.data.axes, dims, strict=True)]
        return tensor(tuple(sizes), data.dtype)  # a symbol where the layout has blocks is their size

    plainly: Callable[..., Any] = _avg_lower if average else _max_lower

    def lower(plan: PoolPlan, output_grad: te.TensorValue, data: te.TensorValue) -> te.TensorValue:
        return plan.data.split(plainly(plan, plan.out.joined(output_grad), plan.data.joined(data)))

    rule.__doc__ = f"The gradient of `nn.{'avg' if average else 'max'}_pool2d` with respect to its data" + (
        "." if average else ", which goes to the first greatest element of each window."
    )
    return operator(
        name,
        device=(1,),
        fusion=Fusion.OPAQUE,
        lower=lambda output_grad, data, **attrs: lower(PoolPlan(name, 2, attrs), output_grad, data),
        ref=lambda output_grad, data, **attrs: _pool_ref(
            PoolPlan(name, 2, attrs), np.asarray(output_grad), np.asarray(data), average
        ),
        samples=_pool_samples,
        relax_text=POOL_TEXT,
        settle_attrs=settle_window(2, "layout", POOL_SIZES),
    )(rule)


max_pool2d_backward, avg_pool2d_backward = _pool_backward(False), _pool_backward(True)


# ----------------------------------------------------------------------------------------------------------------- take


def _take_lower(
    output_grad: te.TensorValue, x: te.TensorValue, indices: te.TensorValue, axis: Axis, mode: str
) -> te.TensorValue:
    place = 0 if axis is None else normalize_axis("grad.take_backward", axis, x.ndim)
    wide = wide_dtype(x.dtype)

    def body(out: te.TensorValue) -> Stmt:
        def add(*i: Any) -> Stmt:
            at = wrapped_index(indices[i[place : place + indices.ndim]], x.shape[place], mode)
            target = (*i[:place], at, *i[place + indices.ndim :])
            return store(out, E.Add(out[target], cast(wide, output_grad[i])), *target)

        cleared = filled(out, x.shape, lambda *_: const(0, wide), "z")
        return do(cleared, nest(output_grad.shape, add))

    (total,) = te.extern([(x.shape, wide)], [output_grad, x, indices], body, x.name)  # named as errors say it
    return _narrowed(total, x.dtype)


def _take_ref(output_grad: Any, x: Any, indices: Any, axis: Axis, mode: str) -> Any:
    place = 0 if axis is None else axis % x.ndim
    indices, extent = np.asarray(indices), x.shape[place]
    if mode == "wrap":
        indices = np.mod(indices, max(extent, 1))
    elif mode == "clip":
        indices = np.clip(indices, 0, extent - 1)
    out = np.zeros(x.shape, dtypes.widened(x).dtype)
    for i in np.ndindex(output_grad.shape):
        at = int(indices[i[place : place + indices.ndim]])
        out[(*i[:place], at, *i[place + indices.ndim :])] += output_grad[i].astype(out.dtype)
    return out.astype(x.dtype)


@operator(
    "grad.take_backward",
    device=(1,),
    fusion=Fusion.OPAQUE,
    lower=_take_lower,
    ref=_take_ref,
    samples=lambda: [
        sample((3, 4), (5, 4), np.array([1, 1, -1], "int64"), axis=0),
        sample((2, 2, 3), (2, 4), np.array([[0, 3, 0], [1, 2, 3]], "int32"), axis=-1),
        sample((3,), (4,), np.array([3, 0, 3], "int64")),
        sample((3,), (4,), np.array([7, -9, 3], "int64"), mode="wrap"),
        sample((3,), (4,), np.array([7, -9, 3], "int64"), mode="clip"),
    ],
)
def take_backward(
    output_grad: TensorType, x: TensorType, indices: TensorType, axis: Axis = None, mode: str = ""
) -> Type:
    """The gradient of `take` with respect to its tensor: what was taken several times gets the sum.
    ``mode`` is that of `take` (nothing is ``"fast"``)."""
    name = "grad.take_backward"
    if mode not in ("", "fast", "clip", "wrap"):
        fail(f"{name}: unknown mode", "fast or clip or wrap", mode)
    require_integers(name, "indices", indices)
    alike(name, output_grad, x)
    if axis is None and x.ndim not in (-1, 1):
        fail(f"{name}: an axis is needed", "1 dimension, or an axis", f"{x.ndim} dimensions")
    dims, at = tensor_dims(x), tensor_dims(indices)
    if dims is not None and at is not None:
        place = 0 if axis is None else normalize_axis(name, axis, len(dims))
        taken = (*dims[:place], *at, *dims[place + 1 :])
        _fits(name, output_grad, tensor(taken, x.dtype), "what was taken")
    return x
