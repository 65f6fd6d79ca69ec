"""``topi.vision``: boxes and regions of images."""

from __future__ import annotations

from typing import Any

from supple.build.te import TensorValue
from supple.ir.graph import constant
from supple.script import relax as relax_op
from supple.topi.apply import apply, apply_many, public


def roi_align_nchw(
    data: TensorValue,
    rois: TensorValue,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any,
    sample_ratio: int = -1,
    aligned: bool = False,
) -> TensorValue:
    """Regions of an image, sampled to one size; ``mode`` is ``"avg"`` (or 0) or ``"max"`` (or 1)."""
    return _roi_align(data, rois, pooled_size, spatial_scale, mode, sample_ratio, aligned, "NCHW")


def roi_align_nhwc(
    data: TensorValue,
    rois: TensorValue,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any,
    sample_ratio: int = -1,
    aligned: bool = False,
) -> TensorValue:
    """`roi_align_nchw` of images whose channels are last."""
    return _roi_align(data, rois, pooled_size, spatial_scale, mode, sample_ratio, aligned, "NHWC")


def _roi_align(
    data: TensorValue,
    rois: TensorValue,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any,
    sample_ratio: int,
    aligned: bool,
    layout: str,
) -> TensorValue:
    name = mode if isinstance(mode, str) else ("avg", "max")[mode]
    return apply(
        relax_op.vision.roi_align, data, rois, pooled_size=pooled_size, spatial_scale=spatial_scale,
        sample_ratio=sample_ratio, aligned=aligned, layout=layout, mode=name,
    )  # fmt: skip


def roi_pool_nchw(data: TensorValue, rois: TensorValue, pooled_size: Any, spatial_scale: float) -> TensorValue:
    """The maxima of the parts of regions."""
    return apply(relax_op.vision.roi_pool, data, rois, pooled_size=pooled_size, spatial_scale=spatial_scale)


def roi_align(
    data: TensorValue,
    rois: TensorValue,
    pooled_size: Any,
    spatial_scale: float,
    mode: Any = "avg",
    sample_ratio: int = -1,
    aligned: bool = False,
    layout: str = "NCHW",
) -> TensorValue:
    """Regions of an image in either layout, sampled to one size."""
    return _roi_align(data, rois, pooled_size, spatial_scale, mode, sample_ratio, aligned, layout)


def roi_pool(
    data: TensorValue, rois: TensorValue, pooled_size: Any, spatial_scale: float, layout: str = "NCHW"
) -> TensorValue:
    """`roi_pool_nchw` in either layout."""
    return apply(
        relax_op.vision.roi_pool, data, rois, pooled_size=pooled_size, spatial_scale=spatial_scale, layout=layout
    )


def all_class_non_max_suppression(
    boxes: TensorValue,
    scores: TensorValue,
    max_output_boxes_per_class: Any,
    iou_threshold: Any,
    score_threshold: Any,
    output_format: str = "onnx",
    output_shape: None = None,
) -> list[TensorValue]:
    """The best boxes of each class that overlap no better one, and their number."""
    if output_shape is not None:
        raise TypeError("topi.vision.all_class_non_max_suppression: output_shape is not supported")
    limits = [
        value if isinstance(value, TensorValue) else constant(value, dtype)
        for value, dtype in (
            (max_output_boxes_per_class, "int64"),
            (iou_threshold, "float32"),
            (score_threshold, "float32"),
        )
    ]
    return apply_many(
        relax_op.vision.all_class_non_max_suppression, boxes, scores, *limits, output_format=output_format
    )


def get_valid_counts(
    data: TensorValue, score_threshold: float = 0, id_index: int = 0, score_index: int = 1
) -> list[TensorValue]:
    """How many boxes have a score above the threshold; these boxes first, and where they were."""
    return apply_many(
        relax_op.vision.get_valid_counts, data, score_threshold=score_threshold, id_index=id_index,
        score_index=score_index,
    )  # fmt: skip


def non_max_suppression(
    data: TensorValue,
    valid_count: TensorValue,
    indices: TensorValue,
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
) -> Any:
    """Boxes without those that overlap better ones: the boxes, or their indices and how many there are."""
    made = apply_many(
        relax_op.vision.non_max_suppression, data, valid_count, indices, max_output_size=max_output_size,
        iou_threshold=iou_threshold, force_suppress=force_suppress, top_k=top_k, coord_start=coord_start,
        score_index=score_index, id_index=id_index, return_indices=return_indices,
        invalid_to_bottom=invalid_to_bottom, soft_nms_sigma=soft_nms_sigma, score_threshold=score_threshold,
    )  # fmt: skip
    return made if len(made) > 1 else made[0]


def multibox_transform_loc(
    cls_pred: TensorValue,
    loc_pred: TensorValue,
    anchor: TensorValue,
    variances: Any,
    clip: bool = False,
    threshold: float = 0.0,
    keep_background: bool = True,
    apply_softmax: bool = True,
) -> list[TensorValue]:
    """Boxes and scores of a detector's predictions."""
    return apply_many(
        relax_op.vision.multibox_transform_loc, cls_pred, loc_pred, anchor, clip=clip, threshold=threshold,
        variances=tuple(variances), keep_background=keep_background, apply_softmax=apply_softmax,
    )  # fmt: skip


public(globals())
