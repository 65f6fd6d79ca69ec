"""Convolutions of ``topi.nn``: plain, in groups, one for each channel, transposed, in the usual layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supple.build.te import TensorValue
from supple.ir.expr import IntImm
from supple.script import relax as relax_op
from supple.sym.simplify import SHAPES
from supple.topi.apply import apply, named


def _kernel_layout(data_layout: str, kernel_layout: str) -> str:
    spatial = data_layout.replace("N", "").replace("C", "")
    return kernel_layout or (f"OI{spatial}" if data_layout.startswith("NC") else f"{spatial}IO")


def _extents(kernel: TensorValue, data_layout: str, kernel_layout: str) -> list[int]:
    """The kernel's extents along the spatial axes; symbolic ones are refused where they must be numbers."""
    found = []
    for letter in data_layout.replace("N", "").replace("C", ""):
        extent = kernel.shape[kernel_layout.index(letter)]
        if not isinstance(extent, IntImm):
            raise TypeError("topi.nn: padding='SAME' needs a kernel of known size")
        found.append(extent.value)
    return found


def _padding(padding: Any, extents: Callable[[], list[int]], dilation: Any) -> Any:
    """``"VALID"`` and ``"SAME"`` (for stride 1, more behind than before) as numbers."""
    if not isinstance(padding, str):
        return padding
    sizes = extents()
    if padding == "VALID":
        return [0] * (2 * len(sizes))
    if padding != "SAME":
        raise ValueError(f"topi.nn: padding is 'VALID', 'SAME' or numbers, got {padding!r}")
    steps = list(dilation) if isinstance(dilation, (list, tuple)) else [dilation] * len(sizes)
    total = [(size - 1) * step for size, step in zip(sizes, steps, strict=True)]
    return [t // 2 for t in total] + [t - t // 2 for t in total]


def _conv(
    rank: int,
    data: TensorValue,
    kernel: TensorValue,
    strides: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_dtype: str | None,
) -> TensorValue:
    layout = _kernel_layout(data_layout, kernel_layout)
    given = _padding(padding, lambda: _extents(kernel, data_layout, layout), dilation)
    result = apply(
        getattr(relax_op.nn, f"conv{rank}d"), data, kernel, strides=strides, padding=given, dilation=dilation,
        groups=groups, data_layout=data_layout, kernel_layout=layout, out_dtype=out_dtype,
    )  # fmt: skip
    return named(result, f"conv{rank}d_{data_layout.lower()}")


def conv1d(
    data: TensorValue,
    kernel: TensorValue,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> TensorValue:
    """Convolution along one axis."""
    return _conv(1, data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype)


def conv2d(
    input: TensorValue,
    filter: TensorValue,
    strides: Any,
    padding: Any,
    dilation: Any,
    data_layout: str = "NCHW",
    kernel_layout: str = "",
    out_dtype: str | None = None,
) -> TensorValue:
    """Convolution of images."""
    return _conv(2, input, filter, strides, padding, dilation, 1, data_layout, kernel_layout, out_dtype)


def conv2d_nchw(
    Input: TensorValue, Filter: TensorValue, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None
) -> TensorValue:
    """Convolution of images with channels first."""
    return _conv(2, Input, Filter, stride, padding, dilation, 1, "NCHW", "OIHW", out_dtype)


def conv2d_nhwc(
    Input: TensorValue, Filter: TensorValue, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = "float32"
) -> TensorValue:
    """Convolution of images with channels last (kernels HWIO)."""
    return _conv(2, Input, Filter, stride, padding, dilation, 1, "NHWC", "HWIO", out_dtype)


def group_conv2d_nchw(
    Input: TensorValue,
    Filter: TensorValue,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str | None = None,
) -> TensorValue:
    """Convolution in groups of channels."""
    return _conv(2, Input, Filter, stride, padding, dilation, groups, "NCHW", "OIHW", out_dtype)


def conv3d_ncdhw(
    Input: TensorValue,
    Filter: TensorValue,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int = 1,
    out_dtype: str | None = None,
) -> TensorValue:
    """Convolution of volumes with channels first."""
    return _conv(3, Input, Filter, stride, padding, dilation, groups, "NCDHW", "OIDHW", out_dtype)


def conv2d_transpose_nchw(
    Input: TensorValue, Filter: TensorValue, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any
) -> TensorValue:
    """The transposed convolution of images with channels first (kernels IOHW)."""
    return _transposed(2, Input, Filter, strides, padding, output_padding, 1, out_dtype)


def conv1d_ncw(
    data: TensorValue,
    kernel: TensorValue,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> TensorValue:
    """Convolution along one axis with channels first."""
    return _conv(1, data, kernel, strides, padding, dilation, 1, "NCW", "OIW", out_dtype)


def conv1d_nwc(
    data: TensorValue,
    kernel: TensorValue,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    out_dtype: str | None = None,
) -> TensorValue:
    """Convolution along one axis with channels last (kernels WIO)."""
    return _conv(1, data, kernel, strides, padding, dilation, 1, "NWC", "WIO", out_dtype)


def group_conv1d_ncw(
    data: TensorValue,
    kernel: TensorValue,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> TensorValue:
    """`conv1d_ncw` in groups of channels."""
    return _conv(1, data, kernel, strides, padding, dilation, groups, "NCW", "OIW", out_dtype)


def group_conv1d_nwc(
    data: TensorValue,
    kernel: TensorValue,
    strides: Any = 1,
    padding: Any = "VALID",
    dilation: Any = 1,
    groups: int = 1,
    out_dtype: str | None = None,
) -> TensorValue:
    """`conv1d_nwc` in groups of channels."""
    return _conv(1, data, kernel, strides, padding, dilation, groups, "NWC", "WIO", out_dtype)


def conv2d_hwcn(
    Input: TensorValue, Filter: TensorValue, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None
) -> TensorValue:
    """Convolution of images ``(height, width, channel, batch)`` (kernels HWIO)."""
    data = apply(relax_op.permute_dims, Input, axes=[3, 0, 1, 2])
    made = _conv(2, data, Filter, stride, padding, dilation, 1, "NHWC", "HWIO", out_dtype)
    return apply(relax_op.permute_dims, made, axes=[1, 2, 3, 0])


def group_conv2d_nhwc(
    Input: TensorValue,
    Filter: TensorValue,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str | None = None,
) -> TensorValue:
    """`conv2d_nhwc` in groups of channels."""
    return _conv(2, Input, Filter, stride, padding, dilation, groups, "NHWC", "HWIO", out_dtype)


def depthwise_conv2d_nchw(
    Input: TensorValue, Filter: TensorValue, stride: Any, padding: Any, dilation: Any, out_dtype: str | None = None
) -> TensorValue:
    """Each channel of an image with kernels of its own, ``(channel, kernel, height, width)``: result channel
    ``c * kernels + k``."""
    extents: Any
    channels: Any
    channels, kernels, *extents = Filter.shape
    weight = apply(relax_op.reshape, Filter, [SHAPES.simplify(channels * kernels), 1, *extents])
    return _conv(2, Input, weight, stride, padding, dilation, _number(channels), "NCHW", "OIHW", out_dtype)


def depthwise_conv2d_nhwc(
    Input: TensorValue,
    Filter: TensorValue,
    stride: Any,
    padding: Any,
    dilation: Any,
    kernel_layout: str = "HWOI",
    out_dtype: str | None = None,
) -> TensorValue:
    """`depthwise_conv2d_nchw` with channels last and kernels ``(height, width, channel, kernel)``."""
    if kernel_layout != "HWOI":
        raise ValueError(f"topi.nn.depthwise_conv2d_nhwc: kernels are HWOI, got {kernel_layout!r}")
    extents: Any
    channels: Any
    *extents, channels, kernels = Filter.shape
    weight = apply(relax_op.reshape, Filter, [*extents, 1, SHAPES.simplify(channels * kernels)])
    return _conv(2, Input, weight, stride, padding, dilation, _number(channels), "NHWC", "HWIO", out_dtype)


def _number(channels: Any) -> int:
    if not isinstance(channels, IntImm):
        raise TypeError("topi.nn: a convolution of each channel needs a known number of channels")
    return channels.value


def conv3d_ndhwc(
    Input: TensorValue,
    Filter: TensorValue,
    stride: Any,
    padding: Any,
    dilation: Any,
    groups: int,
    out_dtype: str | None = "float32",
) -> TensorValue:
    """Convolution of volumes with channels last (kernels DHWIO)."""
    return _conv(3, Input, Filter, stride, padding, dilation, groups, "NDHWC", "DHWIO", out_dtype)


def _transposed(
    rank: int,
    data: TensorValue,
    kernel: TensorValue,
    strides: Any,
    padding: Any,
    output_padding: Any,
    groups: int,
    out_dtype: str | None,
) -> TensorValue:
    letters = "DHW"[3 - rank :]
    given = _padding(padding, lambda: _extents(kernel, f"NC{letters}", f"IO{letters}"), 1)
    return apply(
        getattr(relax_op.nn, f"conv{rank}d_transpose"), data, kernel, strides=strides, padding=given,
        output_padding=output_padding, groups=groups, data_layout=f"NC{letters}", kernel_layout=f"IO{letters}",
        out_dtype=out_dtype,
    )  # fmt: skip


def conv1d_transpose_ncw(
    data: TensorValue, kernel: TensorValue, stride: Any, padding: Any, out_dtype: str | None, output_padding: Any
) -> TensorValue:
    """The transposed convolution along one axis with channels first (kernels IOW)."""
    return _transposed(1, data, kernel, stride, padding, output_padding, 1, out_dtype)


def conv3d_transpose_ncdhw(
    Input: TensorValue, Filter: TensorValue, strides: Any, padding: Any, out_dtype: str | None, output_padding: Any
) -> TensorValue:
    """The transposed convolution of volumes with channels first (kernels IODHW)."""
    return _transposed(3, Input, Filter, strides, padding, output_padding, 1, out_dtype)


def group_conv1d_transpose_ncw(
    data: TensorValue,
    kernel: TensorValue,
    stride: Any,
    padding: Any,
    out_dtype: str | None,
    output_padding: Any,
    groups: int,
) -> TensorValue:
    """`conv1d_transpose_ncw` in groups of channels."""
    return _transposed(1, data, kernel, stride, padding, output_padding, groups, out_dtype)


def group_conv2d_transpose_nchw(
    data: TensorValue,
    kernel: TensorValue,
    stride: Any,
    padding: Any,
    out_dtype: str | None,
    output_padding: Any,
    groups: int,
) -> TensorValue:
    """`conv2d_transpose_nchw` in groups of channels."""
    return _transposed(2, data, kernel, stride, padding, output_padding, groups, out_dtype)


def group_conv3d_transpose_ncdhw(
    data: TensorValue,
    kernel: TensorValue,
    strides: Any,
    padding: Any,
    out_dtype: str | None,
    output_padding: Any,
    groups: int,
) -> TensorValue:
    """`conv3d_transpose_ncdhw` in groups of channels."""
    return _transposed(3, data, kernel, strides, padding, output_padding, groups, out_dtype)
