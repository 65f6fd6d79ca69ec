"""``topi.nn``: contractions, convolutions, pools, normalisation, activations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from supple.build import te
from supple.build.te import TensorValue
from supple.ir.expr import And, IntImm, Select, const
from supple.ir.node import Expr
from supple.script import relax as relax_op
from supple.sym.simplify import SHAPES
from supple.topi.apply import apply, apply_many, inlined, named, public
from supple.topi.convolutions import (
    conv1d as conv1d,
)
from supple.topi.convolutions import (
    conv1d_ncw as conv1d_ncw,
)
from supple.topi.convolutions import (
    conv1d_nwc as conv1d_nwc,
)
from supple.topi.convolutions import (
    conv1d_transpose_ncw as conv1d_transpose_ncw,
)
from supple.topi.convolutions import (
    conv2d as conv2d,
)
from supple.topi.convolutions import (
    conv2d_hwcn as conv2d_hwcn,
)
from supple.topi.convolutions import (
    conv2d_nchw as conv2d_nchw,
)
from supple.topi.convolutions import (
    conv2d_nhwc as conv2d_nhwc,
)
from supple.topi.convolutions import (
    conv2d_transpose_nchw as conv2d_transpose_nchw,
)
from supple.topi.convolutions import (
    conv3d_ncdhw as conv3d_ncdhw,
)
from supple.topi.convolutions import (
    conv3d_ndhwc as conv3d_ndhwc,
)
from supple.topi.convolutions import (
    conv3d_transpose_ncdhw as conv3d_transpose_ncdhw,
)
from supple.topi.convolutions import (
    depthwise_conv2d_nchw as depthwise_conv2d_nchw,
)
from supple.topi.convolutions import (
    depthwise_conv2d_nhwc as depthwise_conv2d_nhwc,
)
from supple.topi.convolutions import (
    group_conv1d_ncw as group_conv1d_ncw,
)
from supple.topi.convolutions import (
    group_conv1d_nwc as group_conv1d_nwc,
)
from supple.topi.convolutions import (
    group_conv1d_transpose_ncw as group_conv1d_transpose_ncw,
)
from supple.topi.convolutions import (
    group_conv2d_nchw as group_conv2d_nchw,
)
from supple.topi.convolutions import (
    group_conv2d_nhwc as group_conv2d_nhwc,
)
from supple.topi.convolutions import (
    group_conv2d_transpose_nchw as group_conv2d_transpose_nchw,
)
from supple.topi.convolutions import (
    group_conv3d_transpose_ncdhw as group_conv3d_transpose_ncdhw,
)
from supple.topi.pads import (
    batch_to_space_nd as batch_to_space_nd,
)
from supple.topi.pads import (
    circular_pad as circular_pad,
)
from supple.topi.pads import (
    mirror_pad as mirror_pad,
)
from supple.topi.pads import (
    reflect_pad as reflect_pad,
)
from supple.topi.pads import (
    replicate_pad as replicate_pad,
)
from supple.topi.pads import (
    space_to_batch_nd as space_to_batch_nd,
)


def add(lhs: TensorValue, rhs: TensorValue) -> TensorValue:
    """The sum of tensors that broadcast together."""
    return apply(relax_op.add, lhs, rhs)


def concatenate(a_tuple: Sequence[TensorValue], axis: int = 0) -> TensorValue:
    """Tensors one after another along an axis."""
    return apply(relax_op.concat, list(a_tuple), axis=axis)


def relu(x: TensorValue) -> TensorValue:
    """``max(x, 0)``; NaN stays."""
    return apply(relax_op.nn.relu, x)


def leaky_relu(x: TensorValue, alpha: float) -> TensorValue:
    """``x`` above zero, ``alpha * x`` below."""
    return apply(relax_op.nn.leakyrelu, x, alpha=alpha)


def prelu(x: TensorValue, slope: TensorValue, axis: int = 1) -> TensorValue:
    """``x`` above zero, ``slope * x`` below, with a slope for each channel."""
    return apply(relax_op.nn.prelu, x, slope, axis=axis)


def softplus(x: TensorValue, beta: float = 1.0, threshold: float = 20.0) -> TensorValue:
    """``log(1 + exp(beta x)) / beta``, ``x`` above the threshold."""
    return apply(relax_op.nn.softplus, x, beta=beta, threshold=threshold)


def softmax(x: TensorValue, axis: int = -1) -> TensorValue:
    """Exponentials, normalised along an axis."""
    return apply(relax_op.nn.softmax, x, axis=axis)


def log_softmax(x: TensorValue, axis: int = -1) -> TensorValue:
    """The logarithm of `softmax`."""
    return apply(relax_op.nn.log_softmax, x, axis=axis)


def flatten(data: TensorValue) -> TensorValue:
    """All axes but the first as one."""
    return apply(relax_op.nn.batch_flatten, data)


# -------------------------------------------------------------------------------------------------------- contractions


def matmul(
    tensor_a: TensorValue,
    tensor_b: TensorValue,
    bias: TensorValue | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
) -> TensorValue:
    """The product of matrices (batched like numpy's), plus a bias. The layout of the right one may be chosen."""
    product = matrices(tensor_a, tensor_b, out_dtype, transpose_a, transpose_b)
    sides = "".join("T" if transposed else "N" for transposed in (transpose_a, transpose_b))
    batch = "batch_" if tensor_a.ndim > 2 else ""
    result = named(product, f"T_{batch}matmul_{sides}", {"layout_free_placeholders": [tensor_b]})
    return result if bias is None else apply(relax_op.add, result, bias)


def matrices(
    tensor_a: TensorValue, tensor_b: TensorValue, out_dtype: str | None, transpose_a: bool, transpose_b: bool
) -> TensorValue:
    """The product of matrices, which may lie transposed."""
    a = _swapped(tensor_a) if transpose_a else tensor_a
    b = _swapped(tensor_b) if transpose_b else tensor_b
    turned = [t for t, transposed in ((a, transpose_a), (b, transpose_b)) if transposed]
    return inlined(apply(relax_op.matmul, a, b, out_dtype=out_dtype), *turned)


def dense(
    data: TensorValue, weight: TensorValue, bias: TensorValue | None = None, out_dtype: str | None = None
) -> TensorValue:
    """``data @ weight.T + bias``."""
    return matmul(data, weight, bias, out_dtype, transpose_b=True)


def batch_matmul(
    tensor_a: TensorValue,
    tensor_b: TensorValue,
    oshape: None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
) -> TensorValue:
    """Products of the matrices of two batches; the right ones are transposed unless said otherwise."""
    return matmul(tensor_a, tensor_b, None, out_dtype, transpose_a, transpose_b)


def _swapped(x: TensorValue) -> TensorValue:
    axes = [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2]
    return apply(relax_op.permute_dims, x, axes=axes)


# --------------------------------------------------------------------------------------------------------------- pools


def _pool(rank: int, standard: str) -> Callable[..., TensorValue]:
    """Pools over windows of a number of spatial axes, with that layout unless another is given."""

    def pool(
        data: TensorValue,
        kernel: Any,
        stride: Any,
        dilation: Any,
        padding: Any,
        pool_type: str,
        ceil_mode: bool = False,
        layout: str = standard,
        count_include_pad: bool = True,
    ) -> TensorValue:
        if pool_type not in ("max", "avg"):
            raise ValueError(f"topi.nn: pool_type is 'max' or 'avg', got {pool_type!r}")
        op = getattr(relax_op.nn, f"{pool_type}_pool{rank}d")
        return apply(
            op, data, pool_size=kernel, strides=stride, padding=padding, dilation=dilation,
            ceil_mode=ceil_mode, count_include_pad=count_include_pad, layout=layout,
        )  # fmt: skip

    pool.__name__ = pool.__qualname__ = f"pool{rank}d"
    pool.__doc__ = f"Maxima or means of windows along {rank} axes (``pool_type`` is ``'max'`` or ``'avg'``)."
    return pool


pool1d, pool2d, pool3d = _pool(1, "NCW"), _pool(2, "NCHW"), _pool(3, "NCDHW")


def global_pool(data: TensorValue, pool_type: str, layout: str = "NCHW") -> TensorValue:
    """The maximum or mean of each channel, with spatial axes of extent 1."""
    axes = [n for n, letter in enumerate(layout) if letter not in "NC"]
    return apply(relax_op.max if pool_type == "max" else relax_op.mean, data, axis=axes, keepdims=True)


def adaptive_pool(data: TensorValue, output_size: Sequence[int], pool_type: str, layout: str = "NCHW") -> TensorValue:
    """Means of windows that divide the image into ``output_size``."""
    if pool_type != "avg":
        raise ValueError("topi.nn.adaptive_pool: pool_type is 'avg'")
    return apply(relax_op.nn.adaptive_avg_pool2d, data, output_size=output_size, layout=layout)


# ------------------------------------------------------------------------------------------------------- normalisation


def layer_norm(
    data: TensorValue, gamma: TensorValue, beta: TensorValue, axis: Any, epsilon: float = 1e-5
) -> TensorValue:
    """Normalised over some axes, scaled and shifted."""
    return apply(relax_op.nn.layer_norm, data, gamma, beta, axes=axis, epsilon=epsilon)


def rms_norm(data: TensorValue, weight: TensorValue, axis: Any, epsilon: float = 1e-5) -> TensorValue:
    """Divided by the root of the mean square over some axes, scaled."""
    return apply(relax_op.nn.rms_norm, data, weight, axes=axis, epsilon=epsilon)


def group_norm(
    data: TensorValue,
    gamma: TensorValue,
    beta: TensorValue,
    num_groups: int,
    channel_axis: int,
    axes: Any,
    epsilon: float = 1e-5,
) -> TensorValue:
    """Normalised over groups of channels, scaled and shifted."""
    return apply(
        relax_op.nn.group_norm, data, gamma, beta, num_groups=num_groups, channel_axis=channel_axis, axes=axes,
        epsilon=epsilon,
    )  # fmt: skip


def instance_norm(
    data: TensorValue, gamma: TensorValue, beta: TensorValue, channel_axis: int, axis: Any, epsilon: float = 1e-5
) -> TensorValue:
    """Normalised over each channel of each instance, scaled and shifted."""
    return apply(relax_op.nn.instance_norm, data, gamma, beta, channel_axis=channel_axis, axes=axis, epsilon=epsilon)


def pad(
    data: TensorValue, pad_before: Sequence[Any], pad_after: Sequence[Any] | None = None, pad_value: float = 0.0
) -> TensorValue:
    """A constant border."""
    after = pad_before if pad_after is None else pad_after
    if any(isinstance(p, Expr) and not isinstance(p, IntImm) for p in (*pad_before, *after)):
        raise TypeError("topi.nn.pad: the widths must be numbers")
    width = [int(p) for pair in zip(pad_before, after, strict=True) for p in pair]
    return apply(relax_op.nn.pad, data, pad_width=width, pad_mode="constant", pad_value=pad_value)


def dilate(data: TensorValue, strides: Sequence[int], dilation_value: float = 0.0) -> TensorValue:
    """Elements ``strides`` apart, a constant between them."""
    if len(strides) != data.ndim:
        raise ValueError(f"topi.nn.dilate: expected {data.ndim} strides, got {len(strides)}")
    extents: list[Any] = list(data.shape)
    shape = [SHAPES.simplify((extent - 1) * step + 1) for extent, step in zip(extents, strides, strict=True)]

    def element(*index: Any) -> Expr:
        inside: Any = True
        for i, step in zip(index, strides, strict=True):
            if step != 1:
                inside = (i % step == 0) if inside is True else And(inside, i % step == 0)
        source = data[tuple(i // step for i, step in zip(index, strides, strict=True))]
        fill = const(dilation_value, data.dtype)
        return source if inside is True else Select(inside, source, fill)

    return te.compute(shape, element, "DilatedInput")


# --------------------------------------------------------------------------------------------------- more on channels


def lrn(
    data: TensorValue, size: int, axis: int = 1, alpha: float = 0.0001, beta: float = 0.75, bias: float = 2
) -> TensorValue:
    """``x / (bias + alpha / size * s) ** beta``, where ``s`` sums the squares of ``size`` neighbours along ``axis``."""
    along, reach = axis % data.ndim, size // 2
    before = [reach if n == along else 0 for n in range(data.ndim)]
    padded = pad(apply(relax_op.multiply, data, data), before)
    k = te.reduce_axis((0, size), "k")
    sums = te.compute(
        data.shape, lambda *i: te.sum(padded[(*i[:along], i[along] + k.var, *i[along + 1 :])], k), "lrn_sums"
    )
    scaled = apply(relax_op.add, apply(relax_op.multiply, sums, alpha / size), float(bias))
    return named(apply(relax_op.divide, data, apply(relax_op.power, scaled, float(beta))), "T_lrn")


def space_to_depth(data: TensorValue, block_size: int, layout: str = "NCHW") -> TensorValue:
    """Blocks of pixels as channels (a block's place counts before the channel)."""
    image = _channels_second(data, layout)
    sizes: Any = image.shape
    n, c, h, w = sizes
    size = block_size

    def element(i: Any, k: Any, y: Any, x: Any) -> Expr:
        block, channel = k // c, k % c
        made: Expr = image[i, channel, y * size + block // size, x * size + block % size]
        return made

    rows, columns = (SHAPES.simplify(e // size) for e in (h, w))
    made = te.compute([n, SHAPES.simplify(c * (size * size)), rows, columns], element, "space_to_depth")
    return _as_layout(made, layout)


def depth_to_space(data: TensorValue, block_size: int, layout: str = "NCHW", mode: str = "DCR") -> TensorValue:
    """Channels as blocks of pixels; in ``"DCR"`` a block's place counts before the channel, in ``"CDR"`` behind."""
    if mode not in ("DCR", "CDR"):
        raise ValueError("topi.nn.depth_to_space: mode is 'DCR' or 'CDR'")
    image = _channels_second(data, layout)
    sizes: Any = image.shape
    n, c, h, w = sizes
    size = block_size
    depth = SHAPES.simplify(c // (size * size))

    def element(i: Any, k: Any, y: Any, x: Any) -> Expr:
        block = y % size * size + x % size
        channel = block * depth + k if mode == "DCR" else k * (size * size) + block
        made: Expr = image[i, channel, y // size, x // size]
        return made

    made = te.compute([n, depth, SHAPES.simplify(h * size), SHAPES.simplify(w * size)], element, "depth_to_space")
    return _as_layout(made, layout)


def _channels_second(data: TensorValue, layout: str) -> TensorValue:
    if layout not in ("NCHW", "NHWC"):
        raise ValueError(f"topi.nn: the layout is NCHW or NHWC, got {layout!r}")
    return data if layout == "NCHW" else apply(relax_op.permute_dims, data, axes=[0, 3, 1, 2])


def _as_layout(data: TensorValue, layout: str) -> TensorValue:
    return data if layout == "NCHW" else apply(relax_op.permute_dims, data, axes=[0, 2, 3, 1])


def scale_shift_nchw(Input: TensorValue, Scale: TensorValue, Shift: TensorValue) -> TensorValue:
    """``x * scale + shift`` with a number of each for every channel."""
    return te.compute(Input.shape, lambda b, c, i, j: _scaled(Input[b, c, i, j], Scale[c], Shift[c]), "ScaleShift")


def _scaled(x: Any, scale: Any, shift: Any) -> Any:
    return x * scale + shift


def scale_shift_nhwc(Input: TensorValue, Scale: TensorValue, Shift: TensorValue) -> TensorValue:
    """`scale_shift_nchw` of images whose channels are last."""
    return te.compute(Input.shape, lambda b, i, j, c: _scaled(Input[b, i, j, c], Scale[c], Shift[c]), "ScaleShift")


def fast_softmax(x: TensorValue, axis: int = -1) -> TensorValue:
    """`softmax`: there is no faster one of less precision here."""
    return softmax(x, axis)


def nll_loss(
    predictions: TensorValue, targets: TensorValue, weights: TensorValue, reduction: str, ignore_index: int
) -> TensorValue:
    """Minus the predictions at the targets, weighted."""
    return apply(
        relax_op.nn.nll_loss, predictions, targets, weights, reduction=reduction, ignore_index=ignore_index
    )  # fmt: skip


def adaptive_pool1d(data: TensorValue, output_size: Any, pool_type: str, layout: str = "NCW") -> TensorValue:
    """Means of windows that divide a sequence into ``output_size``."""
    if pool_type != "avg":
        raise ValueError("topi.nn.adaptive_pool1d: pool_type is 'avg'")
    return apply(relax_op.nn.adaptive_avg_pool1d, data, output_size=output_size, layout=layout)


def adaptive_pool3d(data: TensorValue, output_size: Any, pool_type: str, layout: str = "NCDHW") -> TensorValue:
    """Means of windows that divide a volume into ``output_size``."""
    if pool_type != "avg":
        raise ValueError("topi.nn.adaptive_pool3d: pool_type is 'avg'")
    return apply(relax_op.nn.adaptive_avg_pool3d, data, output_size=output_size, layout=layout)


def batch_norm(
    data: TensorValue,
    gamma: TensorValue,
    beta: TensorValue,
    moving_mean: TensorValue,
    moving_var: TensorValue,
    axis: int | None = None,
    epsilon: float | None = None,
    center: bool | None = None,
    scale: bool | None = None,
    training: bool | None = None,
    momentum: float | None = None,
) -> list[TensorValue]:
    """The normalised tensor, and the moving mean and variance: blended with the batch's in ``training``."""
    return apply_many(
        relax_op.nn.batch_norm, data, gamma, beta, moving_mean, moving_var, axis=1 if axis is None else axis,
        epsilon=1e-5 if epsilon is None else epsilon, center=center is not False, scale=scale is not False,
        momentum=0.1 if momentum is None else momentum, training=bool(training),
    )  # fmt: skip


public(globals())
