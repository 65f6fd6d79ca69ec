"""Normalisations and what goes with them (``relax.nn``): softmax family, layer, rms, batch, group and instance norm,
dropout. Values follow PyTorch; floats narrower than float32 are computed in float32."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import cast, const, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType, TupleType
from supple.ops.activation import floating, reference_in_float32
from supple.ops.declare import Axes, fail, operator, sample
from supple.ops.reduce import mean_ref, reduce_tensor
from supple.ops.requirements import require_equal, require_floats
from supple.ops.shapes import normalize_axes, normalize_axis, require_known_rank, same_dtype
from supple.sym.relate import tensor_dims
from supple.sym.simplify import SHAPES, product


def wide_dtype(dtype: str) -> str:
    """What a dtype is accumulated in."""
    return dtypes.accumulator(dtype)


# ------------------------------------------------------------------------------------------------------------- softmax


def _row(place: int, i: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(0 if d == place else index for d, index in enumerate(i))


def _softmax_parts(x: te.TensorValue, axis: int) -> tuple[int, te.TensorValue, te.TensorValue, te.TensorValue]:
    """The axis, the maximum, the shifted exponentials and their sum."""
    place = normalize_axis("softmax", axis, x.ndim)
    wide = wide_dtype(x.dtype)
    top = reduce_tensor(x, "max", [place], True, "softmax_max", wide)

    def shifted(*i: Any) -> Expr:
        return intrinsic("exp", E.Sub(cast(wide, x[i]), top[_row(place, i)]))

    powers = te.compute(x.shape, shifted, "softmax_exp")
    return place, top, powers, reduce_tensor(powers, "sum", [place], True, "softmax_sum")


def _softmax_lower(x: te.TensorValue, axis: int) -> te.TensorValue:
    place, _, powers, total = _softmax_parts(x, axis)
    # a quotient takes several times as long as a product; sums are from 1 to the length, so no inverse is denormal
    inverse = te.compute(total.shape, lambda *i: E.Div(E.const(1.0, total.dtype), total[i]), "softmax_inverse")
    return te.compute(x.shape, lambda *i: cast(x.dtype, E.Mul(powers[i], inverse[_row(place, i)])), "softmax")


def _log_softmax_lower(x: te.TensorValue, axis: int) -> te.TensorValue:
    place, top, _, total = _softmax_parts(x, axis)

    def body(*i: Any) -> Expr:
        row = _row(place, i)
        shifted = E.Sub(cast(total.dtype, x[i]), top[row])
        return cast(x.dtype, E.Sub(shifted, intrinsic("log", total[row])))

    return te.compute(x.shape, body, "log_softmax")


def _softmax_ref(x: Any, axis: int) -> Any:
    if x.size == 0:
        return x.copy()
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def _log_softmax_ref(x: Any, axis: int) -> Any:
    if x.size == 0:
        return x.copy()
    shifted = x - np.max(x, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _softmax_type(name: str, x: TensorType, axis: int) -> TensorType:
    floating(name, x)
    if x.ndim != -1:
        normalize_axis(name, axis, x.ndim)
    return x


@operator(
    "nn.softmax",
    fusion=Fusion.OUT_FUSABLE,
    lower=_softmax_lower,
    ref=reference_in_float32(_softmax_ref),
    samples=lambda: [sample((3, 10)), sample((2, 3, 4), axis=1), sample((0, 4)), sample((4, 1), axis=0)],
)
def softmax(data: TensorType, axis: int = -1) -> Type:
    """``exp(x - max) / sum(exp(x - max))`` along ``axis``; floats narrower than float32 are computed in float32."""
    return _softmax_type("nn.softmax", data, axis)


@operator(
    "nn.log_softmax",
    fusion=Fusion.OUT_FUSABLE,
    lower=_log_softmax_lower,
    ref=reference_in_float32(_log_softmax_ref),
    samples=lambda: [sample((3, 10)), sample((2, 3, 4), axis=1), sample((0, 4))],
)
def log_softmax(data: TensorType, axis: int = -1) -> Type:
    """``x - max - log(sum(exp(x - max)))`` along ``axis``; floats narrower than float32 are computed in float32."""
    return _softmax_type("nn.log_softmax", data, axis)


# ------------------------------------------------------------------------------------------------ norms over the input


def _normalised(
    x: te.TensorValue, axes: Sequence[int], epsilon: float, name: str, centred: bool = True
) -> tuple[te.TensorValue | None, te.TensorValue]:
    """The mean (None unless ``centred``) and ``1 / sqrt(variance + epsilon)`` over axes, kept with extent 1."""
    wide = wide_dtype(x.dtype)
    count = cast(wide, product([x.shape[a] for a in axes]))
    mean: te.TensorValue | None = None
    if centred:
        total = reduce_tensor(x, "sum", axes, True, f"{name}_sum", wide)
        mean = te.compute(total.shape, lambda *i: E.Div(total[i], count), f"{name}_mean")
    kept = set(axes)

    def squared(*i: Any) -> Expr:
        value = cast(wide, x[i])
        if mean is not None:
            value = E.Sub(value, mean[tuple(0 if d in kept else index for d, index in enumerate(i))])
        return E.Mul(value, value)

    squares = te.compute(x.shape, squared, f"{name}_square")
    spread = reduce_tensor(squares, "sum", axes, True, f"{name}_var", wide)

    def inverse(*i: Any) -> Expr:
        variance = E.Div(spread[i], count)
        return E.Div(const(1.0, wide), intrinsic("sqrt", E.Add(variance, const(epsilon, wide))))

    return mean, te.compute(spread.shape, inverse, f"{name}_inverse")


def _scaled(
    x: te.TensorValue,
    axes: Sequence[int],
    mean: te.TensorValue | None,
    inverse: te.TensorValue,
    gamma: Any,
    beta: Any,
    name: str,
) -> te.TensorValue:
    """``(x - mean) * inverse * gamma(i) + beta(i)``."""
    wide = inverse.dtype
    reduced = set(axes)

    def body(*i: Any) -> Expr:
        row = tuple(0 if d in reduced else index for d, index in enumerate(i))
        value = cast(wide, x[i])
        if mean is not None:
            value = E.Sub(value, mean[row])
        value = E.Mul(value, inverse[row])
        if gamma is not None:
            value = E.Mul(value, cast(wide, gamma(i)))
        if beta is not None:
            value = E.Add(value, cast(wide, beta(i)))
        return cast(x.dtype, value)

    return te.compute(x.shape, body, name)


def _layer_norm_lower(
    data: te.TensorValue,
    gamma: te.TensorValue,
    beta: te.TensorValue,
    axes: Axes,
    epsilon: float,
    center: bool,
    scale: bool,
) -> te.TensorValue:
    places = normalize_axes("nn.layer_norm", axes, data.ndim)
    mean, inverse = _normalised(data, places, epsilon, "layer_norm")

    def at(t: te.TensorValue) -> Any:
        return lambda i: t[tuple(i[a] for a in places)]

    return _scaled(
        data, places, mean, inverse, at(gamma) if scale else None, at(beta) if center else None, "layer_norm"
    )


def _along(values: Any, axes: Sequence[int], ndim: int) -> Any:
    """An array over some axes, broadcastable against all."""
    values = np.asarray(values)
    order = sorted(range(len(axes)), key=lambda n: axes[n])
    shape = [1] * ndim
    for n in order:
        shape[axes[n]] = values.shape[n]
    return values.transpose(order).reshape(shape)


def _norm_ref(x: Any, axes: Sequence[int], epsilon: float) -> Any:
    wide = dtypes.widened(x)
    mean = mean_ref(wide, tuple(axes), True)
    variance = mean_ref(np.square(wide - mean), tuple(axes), True)
    return (wide - mean) / np.sqrt(variance + wide.dtype.type(epsilon))


def _weighted_ref(value: Any, gamma: Any, beta: Any, axes: Sequence[int]) -> Any:
    """The normalised value scaled by ``gamma`` and shifted by ``beta`` (None: not), which lie along ``axes``."""
    if gamma is not None:
        value = value * _along(gamma, axes, value.ndim)
    return value if beta is None else value + _along(beta, axes, value.ndim)


def _layer_norm_ref(data: Any, gamma: Any, beta: Any, axes: Axes, epsilon: float, center: bool, scale: bool) -> Any:
    places = [a % data.ndim for a in axes or ()]
    weights = (gamma if scale else None, beta if center else None)
    return _weighted_ref(_norm_ref(data, places, epsilon), *weights, places).astype(data.dtype)


def _check_weights(name: str, data: TensorType, weights: Sequence[TensorType], axes: Sequence[int]) -> bool:
    """Refuse weights that do not fit; whether all that is known of their sizes is proved to."""
    dims = tensor_dims(data)
    proved = True
    for weight in weights:
        if (data.dtype is None) is not (weight.dtype is None):
            fail(f"{name}: the operands have different dtypes", str(data.dtype), str(weight.dtype))
        same_dtype(name, data, weight)
        given = tensor_dims(weight)
        require_known_rank(name, "a weight", weight)
        if weight.ndim != len(axes):
            fail(f"{name}: a weight has the wrong rank", f"{len(axes)} dimensions", f"{weight.ndim} dimensions")
        for a, dim in zip(axes, given or (), strict=False):
            if dims is not None:
                proved &= require_equal(f"{name}: a weight does not fit axis {a}", dims[a], dim)
    return proved


def _check_reduced(name: str, channel: int, axes: Sequence[int]) -> None:
    if channel in axes:
        fail(f"{name}: the axis of the channels is not one of the axes", f"axes without {channel}", str(tuple(axes)))


def _of_rank(data: TensorType, proved: bool) -> TensorType:
    """The type, or its rank alone where sizes are not proved to fit."""
    return data if proved else TensorType(None, data.dtype, data.ndim, data.vdevice)


@operator(
    "nn.layer_norm",
    fusion=Fusion.OUT_FUSABLE,
    lower=_layer_norm_lower,
    ref=_layer_norm_ref,
    samples=lambda: [
        sample((3, 8), (8,), (8,), axes=[-1]),
        sample((2, 3, 4), (3, 4), (3, 4), axes=[1, 2]),
        sample((2, 6), (6,), (6,), axes=-1, center=False, scale=False, epsilon=1e-3),
        sample((0, 4), (4,), (4,), axes=[-1]),
    ],
)
def layer_norm(
    data: TensorType,
    gamma: TensorType,
    beta: TensorType,
    axes: Axes,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Type:
    """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` over ``axes`` (Ba et al., 2016). ``gamma`` and ``beta``
    have the extents of ``axes``; ``scale`` and ``center`` say whether they are applied."""
    floating("nn.layer_norm", data)
    if data.ndim == -1:
        _check_weights("nn.layer_norm", data, (gamma, beta), axes or ())
        return data
    axes = normalize_axes("nn.layer_norm", axes, data.ndim)
    return _of_rank(data, _check_weights("nn.layer_norm", data, (gamma, beta), axes))


def _rms_norm_lower(data: te.TensorValue, weight: te.TensorValue, axes: Axes, epsilon: float) -> te.TensorValue:
    places = normalize_axes("nn.rms_norm", axes, data.ndim)
    _, inverse = _normalised(data, places, epsilon, "rms_norm", centred=False)
    return _scaled(data, places, None, inverse, lambda i: weight[tuple(i[a] for a in places)], None, "rms_norm")


def _rms_norm_ref(data: Any, weight: Any, axes: Axes, epsilon: float) -> Any:
    places = [a % data.ndim for a in axes or ()]
    wide = dtypes.widened(data)
    mean = mean_ref(np.square(wide), tuple(places), True)
    value = wide / np.sqrt(mean + wide.dtype.type(epsilon)) * _along(weight, places, data.ndim)
    return value.astype(data.dtype)


@operator(
    "nn.rms_norm",
    fusion=Fusion.OUT_FUSABLE,
    lower=_rms_norm_lower,
    ref=_rms_norm_ref,
    samples=lambda: [sample((3, 8), (8,)), sample((2, 3, 4), (3, 4), axes=[1, 2], epsilon=1e-3)],
)
def rms_norm(data: TensorType, weight: TensorType, axes: Axes = (-1,), epsilon: float = 1e-5) -> Type:
    """``x / sqrt(mean(x * x) + epsilon) * weight`` over ``axes`` (Zhang and Sennrich, 2019)."""
    floating("nn.rms_norm", data)
    if data.ndim == -1:
        _check_weights("nn.rms_norm", data, (weight,), axes or ())
        return data
    axes = normalize_axes("nn.rms_norm", axes, data.ndim)
    return _of_rank(data, _check_weights("nn.rms_norm", data, (weight,), axes))


# ------------------------------------------------------------------------------------- norms with one weight a channel


def _batch_norm_lower(
    data: te.TensorValue,
    gamma: te.TensorValue,
    beta: te.TensorValue,
    moving_mean: te.TensorValue,
    moving_var: te.TensorValue,
    axis: int,
    epsilon: float,
    center: bool,
    scale: bool,
    momentum: float,
    training: bool,
) -> list[te.TensorValue]:
    place = normalize_axis("nn.batch_norm", axis, data.ndim)
    wide = wide_dtype(data.dtype)
    mean, var = moving_mean, moving_var
    if training:
        axes = [d for d in range(data.ndim) if d != place]
        count = cast(wide, product([data.shape[a] for a in axes]))
        total = reduce_tensor(data, "sum", axes, False, "batch_sum", wide)
        mean = te.compute(total.shape, lambda c: E.Div(total[c], count), "batch_mean")

        def squared(*i: Any) -> Expr:
            gap = E.Sub(cast(wide, data[i]), mean[i[place]])
            return E.Mul(gap, gap)

        squares = te.compute(data.shape, squared, "batch_square")
        spread = reduce_tensor(squares, "sum", axes, False, "batch_spread", wide)
        var = te.compute(spread.shape, lambda c: E.Div(spread[c], count), "batch_var")

    def body(*i: Any) -> Expr:
        c = i[place]
        root = intrinsic("sqrt", E.Add(cast(wide, var[c]), const(epsilon, wide)))
        value: Expr = E.Div(E.Sub(cast(wide, data[i]), cast(wide, mean[c])), root)
        if scale:
            value = E.Mul(value, cast(wide, gamma[c]))
        if center:
            value = E.Add(value, cast(wide, beta[c]))
        return cast(data.dtype, value)

    def blend(old: te.TensorValue, new: te.TensorValue, name: str) -> te.TensorValue:
        def step(c: Any) -> Expr:
            if not training:
                return old[c]
            kept = E.Mul(cast(wide, old[c]), const(1.0 - momentum, wide))
            return cast(old.dtype, E.Add(kept, E.Mul(new[c], const(momentum, wide))))

        return te.compute(old.shape, step, name)

    return [
        te.compute(data.shape, body, "batch_norm"),
        blend(moving_mean, mean, "new_mean"),
        blend(moving_var, var, "new_var"),
    ]


def _batch_norm_ref(
    data: Any,
    gamma: Any,
    beta: Any,
    moving_mean: Any,
    moving_var: Any,
    axis: int,
    epsilon: float,
    center: bool,
    scale: bool,
    momentum: float,
    training: bool,
) -> Any:
    place = axis % data.ndim
    wide = dtypes.widened(data)
    axes = tuple(d for d in range(data.ndim) if d != place)
    mean, var = moving_mean, moving_var
    if training:
        mean = mean_ref(wide, axes, False)
        var = mean_ref(np.square(wide - _along(mean, [place], data.ndim)), axes, False)

    def channel(v: Any) -> Any:
        return _along(v.astype(wide.dtype), [place], data.ndim)

    value = (wide - channel(mean)) / np.sqrt(channel(var) + wide.dtype.type(epsilon))
    if scale:
        value = value * channel(gamma)
    if center:
        value = value + channel(beta)
    if training:
        moving_mean = ((1.0 - momentum) * moving_mean + momentum * mean).astype(moving_mean.dtype)
        moving_var = ((1.0 - momentum) * moving_var + momentum * var).astype(moving_var.dtype)
    return value.astype(data.dtype), moving_mean, moving_var


def _positive(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(7).uniform(0.5, 2, shape).astype("float32")


@operator(
    "nn.batch_norm",
    device=(0, 3, 4),
    fusion=Fusion.OPAQUE,
    lower=_batch_norm_lower,
    ref=_batch_norm_ref,
    samples=lambda: [
        sample((2, 3, 4), (3,), (3,), (3,), _positive((3,)), axis=1, training=False),
        sample((2, 3, 4), (3,), (3,), (3,), _positive((3,)), axis=1),
        sample((5, 2), (2,), (2,), (2,), _positive((2,)), axis=-1, center=False, scale=False, epsilon=1e-3),
    ],
)
def batch_norm(
    data: TensorType,
    gamma: TensorType,
    beta: TensorType,
    moving_mean: TensorType,
    moving_var: TensorType,
    axis: int,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    momentum: float = 0.1,
    training: bool = True,
) -> Type:
    """``(x - mean) / sqrt(variance + epsilon) * gamma + beta`` for each index of ``axis`` (Ioffe and Szegedy, 2015).

    In training the batch's own mean and (biased) variance are used, and the moving ones are blended with weight
    ``momentum``; otherwise the moving ones are used and returned. The result is the tuple (output, mean, variance).
    """
    floating("nn.batch_norm", data)
    place = axis if data.ndim == -1 else normalize_axis("nn.batch_norm", axis, data.ndim)
    fits = _check_weights("nn.batch_norm", data, (gamma, beta, moving_mean, moving_var), [place])
    return TupleType(tuple(_of_rank(t, fits) for t in (data, moving_mean, moving_var)))


def _grouped(
    data: te.TensorValue, num_groups: int, channel: int, axes: Sequence[int], epsilon: float
) -> tuple[te.TensorValue, te.TensorValue, Expr]:
    """Mean and inverse deviation of each group of channels, indexed ``[batch dims..., group]``; channels in a group."""
    wide = wide_dtype(data.dtype)
    per_group = SHAPES.simplify(E.FloorDiv(data.shape[channel], int64(num_groups)))
    reduced = [a for a in axes if a != channel]
    kept = [d for d in range(data.ndim) if d not in reduced and d != channel]
    count = cast(wide, product([per_group, *(data.shape[a] for a in reduced)]))
    dims = [*(data.shape[d] for d in kept), int64(num_groups)]

    def total(name: str, term: Any) -> te.TensorValue:
        inner = te.reduce_axis((0, per_group), "c")
        ranges = {a: te.reduce_axis((0, data.shape[a]), f"k{n}") for n, a in enumerate(reduced)}

        def body(*i: Any) -> Expr:
            index: list[Any] = [None] * data.ndim
            for position, d in enumerate(kept):
                index[d] = i[position]
            for a, axis in ranges.items():
                index[a] = axis.var
            index[channel] = E.Add(E.Mul(i[-1], per_group), inner.var)
            return te.sum(term(tuple(index), i), axis=[inner, *ranges.values()])

        return te.compute(dims, body, name)

    sums = total("group_sum", lambda index, i: cast(wide, data[index]))
    mean = te.compute(dims, lambda *i: E.Div(sums[i], count), "group_mean")

    def squared(index: Any, i: Any) -> Expr:
        gap = E.Sub(cast(wide, data[index]), mean[i])
        return E.Mul(gap, gap)

    spread = total("group_var", squared)

    def inverse(*i: Any) -> Expr:
        root = intrinsic("sqrt", E.Add(E.Div(spread[i], count), const(epsilon, wide)))
        return E.Div(const(1.0, wide), root)

    return mean, te.compute(dims, inverse, "group_inverse"), per_group


def _group_norm_lower(
    data: te.TensorValue,
    gamma: te.TensorValue,
    beta: te.TensorValue,
    num_groups: int,
    channel_axis: int,
    axes: Axes,
    epsilon: float,
    center: bool,
    scale: bool,
) -> te.TensorValue:
    channel = normalize_axis("nn.group_norm", channel_axis, data.ndim)
    reduced = normalize_axes("nn.group_norm", axes, data.ndim)
    mean, inverse, per_group = _grouped(data, num_groups, channel, reduced, epsilon)
    kept = [d for d in range(data.ndim) if d not in reduced and d != channel]
    wide = mean.dtype

    def body(*i: Any) -> Expr:
        c = i[channel]
        row = (*(i[d] for d in kept), E.FloorDiv(c, per_group))
        value: Expr = E.Mul(E.Sub(cast(wide, data[i]), mean[row]), inverse[row])
        if scale:
            value = E.Mul(value, cast(wide, gamma[c]))
        if center:
            value = E.Add(value, cast(wide, beta[c]))
        return cast(data.dtype, value)

    return te.compute(data.shape, body, "group_norm")


def _group_norm_ref(
    data: Any,
    gamma: Any,
    beta: Any,
    num_groups: int,
    channel_axis: int,
    axes: Axes,
    epsilon: float,
    center: bool,
    scale: bool,
) -> Any:
    channel = channel_axis % data.ndim
    reduced = [a % data.ndim for a in axes or ()]
    wide = dtypes.widened(data)
    split = (*data.shape[:channel], num_groups, data.shape[channel] // num_groups, *data.shape[channel + 1 :])
    places = [channel + 1, *(a + (a > channel) for a in reduced if a != channel)]
    value = _norm_ref(wide.reshape(split), places, epsilon).reshape(data.shape)
    weights = (gamma if scale else None, beta if center else None)
    return _weighted_ref(value, *weights, [channel]).astype(data.dtype)


@operator(
    "nn.group_norm",
    fusion=Fusion.OUT_FUSABLE,
    lower=_group_norm_lower,
    ref=_group_norm_ref,
    samples=lambda: [
        sample((2, 4, 3, 5), (4,), (4,), num_groups=2, channel_axis=1, axes=[2, 3]),
        sample((2, 3, 6), (6,), (6,), num_groups=3, channel_axis=-1, axes=[1], scale=False),
    ],
)
def group_norm(
    data: TensorType,
    gamma: TensorType,
    beta: TensorType,
    num_groups: int,
    channel_axis: int,
    axes: Axes,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Type:
    """Normalised over ``axes`` and over the channels of each of ``num_groups`` groups (Wu and He, 2018), then scaled
    and shifted for each channel. The number of channels must be a multiple of the number of groups."""
    floating("nn.group_norm", data)
    if num_groups < 1:
        fail("nn.group_norm: needs a group", "at least 1", str(num_groups))
    dims = tensor_dims(data)
    if data.ndim == -1:
        _check_weights("nn.group_norm", data, (gamma, beta), [channel_axis])
    else:
        channel = normalize_axis("nn.group_norm", channel_axis, data.ndim)
        _check_reduced("nn.group_norm", channel, normalize_axes("nn.group_norm", axes, data.ndim))
        _check_weights("nn.group_norm", data, (gamma, beta), [channel])
        if dims is not None:
            rest = E.FloorMod(dims[channel], int64(num_groups))
            text = "nn.group_norm: the channels are not a multiple of the groups"
            require_equal(text, int64(0), rest, f"a multiple of {num_groups}")
    return data


def _instance_norm_lower(
    data: te.TensorValue,
    gamma: te.TensorValue,
    beta: te.TensorValue,
    channel_axis: int,
    axes: Axes,
    epsilon: float,
    center: bool,
    scale: bool,
) -> te.TensorValue:
    channel = normalize_axis("nn.instance_norm", channel_axis, data.ndim)
    places = normalize_axes("nn.instance_norm", axes, data.ndim)
    mean, inverse = _normalised(data, places, epsilon, "instance_norm")
    weights = [(lambda i, t=t: t[i[channel]]) if used else None for t, used in ((gamma, scale), (beta, center))]
    return _scaled(data, places, mean, inverse, weights[0], weights[1], "instance_norm")


def _instance_norm_ref(
    data: Any, gamma: Any, beta: Any, channel_axis: int, axes: Axes, epsilon: float, center: bool, scale: bool
) -> Any:
    channel = channel_axis % data.ndim
    value = _norm_ref(data, [a % data.ndim for a in axes or ()], epsilon)
    weights = (gamma if scale else None, beta if center else None)
    return _weighted_ref(value, *weights, [channel]).astype(data.dtype)


@operator(
    "nn.instance_norm",
    fusion=Fusion.OUT_FUSABLE,
    lower=_instance_norm_lower,
    ref=_instance_norm_ref,
    samples=lambda: [sample((2, 3, 4, 5), (3,), (3,), channel_axis=1, axes=[2, 3])],
)
def instance_norm(
    data: TensorType,
    gamma: TensorType,
    beta: TensorType,
    channel_axis: int,
    axes: Axes,
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
) -> Type:
    """Normalised over ``axes`` for each sample and channel, then scaled and shifted for each channel."""
    require_floats("nn.instance_norm", data)
    if data.ndim == -1:
        _check_weights("nn.instance_norm", data, (gamma, beta), [channel_axis])
    else:
        channel = normalize_axis("nn.instance_norm", channel_axis, data.ndim)
        _check_reduced("nn.instance_norm", channel, normalize_axes("nn.instance_norm", axes, data.ndim))
        _check_weights("nn.instance_norm", data, (gamma, beta), [channel])
    return data


def _dropout_lower(data: te.TensorValue, rate: float) -> list[te.TensorValue]:
    mask = te.compute(data.shape, lambda *i: const(1, data.dtype), "mask")
    return [te.compute(data.shape, lambda *i: data[i], "dropout"), mask]


@operator(
    "nn.dropout",
    fusion=Fusion.OPAQUE,
    lower=_dropout_lower,
    ref=lambda x, rate: (np.array(x), np.ones_like(x)),
    samples=lambda: [sample((3, 4)), sample((2,), rate=0.1)],
)
def dropout(data: TensorType, rate: float = 0.5) -> Type:
    """The input and a mask of ones: programs are compiled for inference, where nothing is dropped."""
    if not 0 <= rate < 1:
        fail("nn.dropout: the rate must be in [0, 1)", "0 <= rate < 1", str(rate))
    return TupleType((data, data))
