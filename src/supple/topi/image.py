"""``topi.image``: images in other sizes and places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from supple.build.te import TensorValue
from supple.script import relax as relax_op
from supple.topi.apply import apply, public


def _resize(op: Any, data: TensorValue, roi: Any, size: Any, output_shape: Any, **attrs: Any) -> TensorValue:
    """The operator, whose attributes are named as topi's but for these."""
    if output_shape is not None:
        raise TypeError("topi.image.resize: output_shape is not supported; give size")
    attrs["rounding_method"] = attrs["rounding_method"] or "round"
    attrs["cubic_alpha"], attrs["cubic_exclude"] = attrs.pop("bicubic_alpha"), attrs.pop("bicubic_exclude")
    return apply(op, data, list(size), roi=None if roi is None else list(roi), **attrs)


def resize1d(
    data: TensorValue,
    roi: Any,
    size: Sequence[Any],
    layout: str = "NCW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.75,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
    output_shape: None = None,
) -> TensorValue:
    """A line in another size: an image of one row."""
    if layout not in ("NCW", "NWC"):
        raise ValueError(f"topi.image.resize1d: the layout is NCW or NWC, got {layout!r}")
    row = layout.index("W")
    image = apply(relax_op.expand_dims, data, axis=[row])
    ends = [0.0, *roi[:1], 1.0, *roi[1:]] if roi else None
    larger = resize2d(
        image, ends, [1, *size], layout.replace("W", "HW"), method, coordinate_transformation_mode, rounding_method,
        bicubic_alpha, bicubic_exclude, extrapolation_value, out_dtype, output_shape,
    )  # fmt: skip
    return apply(relax_op.squeeze, larger, axis=[row])


def resize2d(
    data: TensorValue,
    roi: Any,
    size: Sequence[Any],
    layout: str = "NCHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.75,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
    output_shape: None = None,
) -> TensorValue:
    """An image in another size."""
    return _resize(relax_op.image.resize2d, **locals())


def resize3d(
    data: TensorValue,
    roi: Any,
    size: Sequence[Any],
    layout: str = "NCDHW",
    method: str = "linear",
    coordinate_transformation_mode: str = "half_pixel",
    rounding_method: str = "",
    bicubic_alpha: float = -0.75,
    bicubic_exclude: int = 0,
    extrapolation_value: float = 0.0,
    out_dtype: str | None = None,
    output_shape: None = None,
) -> TensorValue:
    """A volume in another size."""
    return _resize(relax_op.image.resize3d, **locals())


def affine_grid(data: TensorValue, target_shape: Sequence[Any], align_corners: bool = True) -> TensorValue:
    """Where an affine map takes the points of a grid."""
    return apply(relax_op.image.affine_grid, data, list(target_shape), align_corners=align_corners)


def grid_sample(
    data: TensorValue,
    grid: TensorValue,
    method: str = "bilinear",
    layout: str = "NCHW",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> TensorValue:
    """An image read at the points of a grid."""
    return apply(
        relax_op.image.grid_sample, data, grid, method=method, layout=layout, padding_mode=padding_mode,
        align_corners=align_corners,
    )  # fmt: skip


public(globals())
