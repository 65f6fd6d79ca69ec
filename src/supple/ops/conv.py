"""Convolutions and transposed convolutions over one, two and three dimensions, in any layout, grouped and dilated."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import IntImm, cast, const, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion, Op
from supple.ir.types import TensorType
from supple.ops.declare import Axes, DType, Place, Sample, fail, operator, sample
from supple.ops.layouts import Layout, padding_pairs, parse_layout, per_dimension, settle_window
from supple.ops.normalize import wide_dtype
from supple.ops.requirements import require_equal
from supple.ops.shapes import operands_dtype
from supple.sym.relate import dim_text, tensor, tensor_dims
from supple.sym.simplify import SHAPES

_DEFAULT = {1: "W", 2: "HW", 3: "DHW"}


class _Plan:
    """A convolution's attributes, resolved for its number of spatial dimensions."""

    def __init__(self, name: str, spatial: int, attrs: dict[str, Any], transposed: bool) -> None:
        self.name = name
        self.spatial = spatial
        self.transposed = transposed
        self.strides = per_dimension(name, "strides", attrs["strides"], spatial)
        self.dilation = per_dimension(name, "dilation", attrs["dilation"], spatial)
        self.padding = padding_pairs(name, attrs["padding"], spatial)
        self.extra = per_dimension(name, "output_padding", attrs.get("output_padding", 0), spatial)
        self.groups = attrs["groups"]
        self.data = parse_layout(name, attrs["data_layout"], "NC", spatial)
        self.out = parse_layout(name, attrs["out_layout"] or attrs["data_layout"], "NC", spatial)
        # a kernel's first letter is what the output channels follow: O, or I for a transposed convolution
        self.kernel = parse_layout(name, attrs["kernel_layout"], "IO" if transposed else "OI", spatial)
        self.dtype = attrs["out_dtype"]
        if any(s < 1 for s in (*self.strides, *self.dilation)) or self.groups < 1:
            fail(f"{name}: strides, dilation and groups must be positive")
        too_wide = [e >= max(s, d) for e, s, d in zip(self.extra, self.strides, self.dilation, strict=True)]
        if any(too_wide):  # as PyTorch: such rows would see no input at all
            limits = "smaller than the strides or the dilation"
            fail(f"{name}: the output padding is too large", limits, str(self.extra))
        if any(p < 0 for pair in self.padding for p in pair):
            fail(f"{name}: padding is negative", "sizes", str(self.padding))

    def out_extent(self, extent: Expr, window: Expr, d: int) -> Expr:
        """The extent of one spatial dimension of the result."""
        low, high = self.padding[d]
        reach = E.Add(E.Mul(E.Sub(window, int64(1)), int64(self.dilation[d])), int64(1))
        if self.transposed:
            grown = E.Add(E.Mul(E.Sub(extent, int64(1)), int64(self.strides[d])), reach)
            return SHAPES.simplify(E.Add(E.Sub(grown, int64(low + high)), int64(self.extra[d])))
        room = E.Sub(E.Add(extent, int64(low + high)), reach)
        return SHAPES.simplify(E.Add(E.FloorDiv(room, int64(self.strides[d])), int64(1)))

    def channels(self, data: Sequence[Expr], kernel: Sequence[Expr]) -> tuple[Expr, Expr]:
        """Input channels of a group, and output channels; refuses what does not fit."""
        given, groups = data[self.data.channel], int64(self.groups)
        if self.transposed:
            inputs, per_group = kernel[self.kernel.outer], kernel[self.kernel.channel]
            expected, outputs = inputs, SHAPES.simplify(E.Mul(per_group, groups))
            inner = SHAPES.simplify(E.FloorDiv(inputs, groups))
            text = f"{self.name}: the input channels are not a multiple of the groups"
            require_equal(text, int64(0), E.FloorMod(inputs, groups), f"a multiple of {self.groups}")
        else:
            inner, outputs = kernel[self.kernel.channel], kernel[self.kernel.outer]
            expected = SHAPES.simplify(E.Mul(inner, groups))
        text = f"{self.name}: the data's channels do not fit the kernel ({self.groups} group(s))"
        require_equal(text, expected, given, f"{dim_text(expected)} channels")
        text = f"{self.name}: the output channels are not a multiple of the groups"
        require_equal(text, int64(0), E.FloorMod(outputs, groups), f"a multiple of {self.groups}")
        return inner, outputs

    def result(self, data: Sequence[Expr], kernel: Sequence[Expr]) -> tuple[Expr, ...]:
        """The shape of the result."""
        _, outputs = self.channels(data, kernel)
        sizes = [
            self.out_extent(data[self.data.spatial[d]], kernel[self.kernel.spatial[d]], d) for d in range(self.spatial)
        ]
        for size in sizes:
            if isinstance(size, IntImm) and size.value < 0:
                fail(
                    f"{self.name}: the window is larger than the padded data",
                    "an extent of at least 0",
                    str(size.value),
                )
        return self.out.arrange(data[self.data.outer], outputs, sizes)

    def result_dims(self, data: Sequence[Expr], kernel: Sequence[Expr]) -> list[Expr]:
        """The extents of the result's axes, from those of the operands'."""
        plain = self.result(self.data.joined_dims(data), self.kernel.joined_dims(kernel))
        return self.out.split_dims(plain)


def _meaning(layout: Layout, values: Sequence[Any]) -> tuple[Any, Any, list[Any]]:
    return values[layout.outer], values[layout.channel], [values[a] for a in layout.spatial]


def _lower(plan: _Plan, data: te.TensorValue, weight: te.TensorValue) -> te.TensorValue:
    return plan.out.split(_lower_plain(plan, plan.data.joined(data), plan.kernel.joined(weight)))


def _lower_plain(plan: _Plan, data: te.TensorValue, weight: te.TensorValue) -> te.TensorValue:
    inner, outputs = plan.channels(data.shape, weight.shape)
    dims = plan.result(data.shape, weight.shape)
    dtype = plan.dtype or data.dtype
    wide = wide_dtype(dtype)
    channel = te.reduce_axis((0, inner), "rc")
    window = [
        te.reduce_axis((0, weight.shape[a]), f"r{'dhw'[3 - plan.spatial + n]}")
        for n, a in enumerate(plan.kernel.spatial)
    ]
    per_group = SHAPES.simplify(E.FloorDiv(outputs, int64(plan.groups)))
    sizes = [dims[a] for a in plan.out.spatial]
    source = _spread(plan, data, weight, sizes) if plan.transposed else _padded(plan, data)

    def body(*i: Any) -> Expr:
        n, c, place = _meaning(plan.out, i)
        group: Expr = int64(0) if plan.groups == 1 else E.FloorDiv(c, per_group)
        at = channel.var if plan.groups == 1 else E.Add(E.Mul(group, inner), channel.var)
        taps = [w.var for w in window]
        spots: list[Expr]
        if plan.transposed:
            within = c if plan.groups == 1 else E.FloorMod(c, per_group)
            kernel = weight[plan.kernel.arrange(at, within, taps)]
            spots = [
                E.Sub(E.Add(p, _reach(plan, weight, d)), E.Mul(t, int64(k)) if k != 1 else t)
                for d, (p, t, k) in enumerate(zip(place, taps, plan.dilation, strict=True))
            ]
        else:
            kernel = weight[plan.kernel.arrange(c, channel.var, taps)]
            spots = [
                E.Add(E.Mul(p, int64(s)) if s != 1 else p, E.Mul(t, int64(k)) if k != 1 else t)
                for p, s, t, k in zip(place, plan.strides, taps, plan.dilation, strict=True)
            ]
        value = source[plan.data.arrange(n, at, spots)]
        return te.sum(E.Mul(cast(wide, value), cast(wide, kernel)), axis=[channel, *window])

    total = te.compute(dims, body, plan.name.rpartition(".")[2])
    return total if wide == dtype else te.compute(dims, lambda *i: cast(dtype, total[i]), "conv_cast")


def _padded(plan: _Plan, data: te.TensorValue) -> te.TensorValue:
    """The data with zeros around it, unless there is no padding."""
    if not any(p for pair in plan.padding for p in pair):
        return data
    dims = list(data.shape)
    for axis, (low, high) in zip(plan.data.spatial, plan.padding, strict=True):
        dims[axis] = SHAPES.simplify(E.Add(dims[axis], int64(low + high)))

    def body(*i: Any) -> Expr:
        index: list[Any] = list(i)
        inside: Expr | None = None
        for axis, (low, high) in zip(plan.data.spatial, plan.padding, strict=True):
            if low:
                index[axis] = E.Sub(i[axis], int64(low))
            checks = ([E.GE(i[axis], int64(low))] if low else []) + (
                [E.LT(index[axis], data.shape[axis])] if high else []
            )
            for check in checks:
                inside = check if inside is None else E.And(inside, check)
        assert inside is not None
        return intrinsic("if_then_else", inside, data[tuple(index)], const(0, data.dtype))

    return te.compute([SHAPES.simplify(d) for d in dims], body, "pad_temp")


def _reach(plan: _Plan, weight: te.TensorValue, d: int) -> Expr:
    """How far the last tap of a window lies from the first."""
    window = weight.shape[plan.kernel.spatial[d]]
    return SHAPES.simplify(E.Mul(E.Sub(window, int64(1)), int64(plan.dilation[d])))


def _spread(plan: _Plan, data: te.TensorValue, weight: te.TensorValue, sizes: Sequence[Expr]) -> te.TensorValue:
    """A transposed convolution's data as a plain one with the taps in reverse reads it: its elements a stride apart,
    zeros between and around them. ``sizes``: the result's."""
    dims = list(data.shape)
    for d, axis in enumerate(plan.data.spatial):
        dims[axis] = SHAPES.simplify(E.Add(sizes[d], _reach(plan, weight, d)))

    def body(*i: Any) -> Expr:
        inside: Expr | None = None
        index: list[Any] = list(i)
        for d, axis in enumerate(plan.data.spatial):
            before = SHAPES.simplify(E.Sub(_reach(plan, weight, d), int64(plan.padding[d][0])))
            offset = SHAPES.simplify(E.Sub(i[axis], before))
            index[axis] = E.FloorDiv(offset, int64(plan.strides[d])) if plan.strides[d] != 1 else offset
            checks = [E.GE(offset, int64(0)), E.LT(index[axis], data.shape[axis])]
            if plan.strides[d] != 1:
                checks.append(E.EQ(E.FloorMod(offset, int64(plan.strides[d])), int64(0)))
            for check in checks:
                inside = check if inside is None else E.And(inside, check)
        assert inside is not None
        return intrinsic("if_then_else", inside, data[tuple(index)], const(0, data.dtype))

    return te.compute(dims, body, "spread")


# ------------------------------------------------------------------------------------------------------------ reference


def _ref(plan: _Plan, data: Any, weight: Any) -> Any:
    dtype = plan.dtype or dtypes.from_numpy(data.dtype)
    wide = dtypes.to_numpy(wide_dtype(dtype))
    data, weight = plan.data.joined_array(data), plan.kernel.joined_array(weight)
    x = np.transpose(data, (plan.data.outer, plan.data.channel, *plan.data.spatial)).astype(wide)
    w = np.transpose(weight, (plan.kernel.outer, plan.kernel.channel, *plan.kernel.spatial)).astype(wide)
    result = (_ref_transposed if plan.transposed else _ref_forward)(plan, x, w)
    order = np.argsort([plan.out.outer, plan.out.channel, *plan.out.spatial])
    return plan.out.split_array(np.transpose(result, order).astype(dtypes.to_numpy(dtype)))


def _ref_forward(plan: _Plan, x: Any, w: Any) -> Any:
    x = np.pad(x, [(0, 0), (0, 0), *plan.padding])
    groups = plan.groups
    taps, out_channels = w.shape[2:], w.shape[0]
    sizes = [
        (x.shape[2 + d] - (taps[d] - 1) * plan.dilation[d] - 1) // plan.strides[d] + 1 for d in range(plan.spatial)
    ]
    out = np.zeros((x.shape[0], out_channels, *sizes), x.dtype)
    for tap in itertools.product(*(range(t) for t in taps)):
        place = tuple(
            slice(t * k, t * k + (size - 1) * s + 1 if size > 0 else 0, s)
            for t, k, s, size in zip(tap, plan.dilation, plan.strides, sizes, strict=True)
        )
        window = x[(slice(None), slice(None), *place)]
        for g in range(groups):
            ins = slice(g * w.shape[1], (g + 1) * w.shape[1])
            outs = slice(g * out_channels // groups, (g + 1) * out_channels // groups)
            out[:, outs] += np.einsum("nc...,oc->no...", window[:, ins], w[(outs, slice(None), *tap)])
    return out


def _ref_transposed(plan: _Plan, x: Any, w: Any) -> Any:
    """Where no input meets a tap there is a 0 that is multiplied, as in the lowering."""
    taps, per_group, groups = w.shape[2:], w.shape[1], plan.groups
    sizes = [
        (x.shape[2 + d] - 1) * plan.strides[d] + (taps[d] - 1) * plan.dilation[d] + 1 + plan.extra[d]
        - sum(plan.padding[d])
        for d in range(plan.spatial)
    ]  # fmt: skip
    out = np.zeros((x.shape[0], per_group * groups, *(max(s, 0) for s in sizes)), x.dtype)
    for tap in itertools.product(*(range(t) for t in taps)):
        met = x
        for d in range(plan.spatial):
            met = _met(met, 2 + d, out.shape[2 + d], plan.padding[d][0] - tap[d] * plan.dilation[d], plan.strides[d])
        for g in range(groups):
            size = w.shape[0] // groups
            ins, outs = slice(g * size, (g + 1) * size), slice(g * per_group, (g + 1) * per_group)
            out[:, outs] += np.einsum("nc...,co->no...", met[:, ins], w[(ins, slice(None), *tap)])
    return out


def _met(x: Any, axis: int, size: int, offset: int, stride: int) -> Any:
    """The element along an axis that each of ``size`` places meets, ``(place + offset) / stride``, or 0."""
    at = np.arange(size) + offset
    inside = (at >= 0) & (at % stride == 0) & (at // stride < x.shape[axis])
    shape = [*x.shape[:axis], size, *x.shape[axis + 1 :]]
    if not inside.any():
        return np.zeros(shape, x.dtype)
    found = np.take(x, np.where(inside, at // stride, 0), axis)
    return np.where(inside.reshape([-1 if d == axis else 1 for d in range(x.ndim)]), found, x.dtype.type(0))


# --------------------------------------------------------------------------------------------------------- declarations


def _infer(plan: _Plan, data: TensorType, weight: TensorType) -> Type:
    dtype = plan.dtype or operands_dtype(plan.name, data, weight)
    plan.data.require_rank("data", data)
    plan.kernel.require_rank("weight", weight)
    a, b = tensor_dims(data), tensor_dims(weight)
    if a is None or b is None:
        return TensorType(None, dtype, plan.out.rank)
    return tensor(tuple(plan.result_dims(a, b)), dtype)


def _samples(spatial: int, transposed: bool) -> list[Sample]:
    def shape(*lead: int, size: int = 4 if spatial == 3 else 5) -> tuple[int, ...]:
        return (*lead, *([size] * spatial))

    letters = _DEFAULT[spatial]
    kernel = letters + ("OI" if transposed else "IO")
    found = [
        sample(shape(2, 3), shape(3, 4, size=3) if transposed else shape(4, 3, size=3)),
        sample(shape(1, 4), shape(4, 2, size=2) if transposed else shape(6, 2, size=2), groups=2, padding=1, strides=2),
        sample(shape(1, 2), shape(2, 2, size=2), dilation=2, padding=[1] * spatial),
        sample(
            (1, *([4] * spatial), 3),
            (*([3] * spatial), 2, 3) if transposed else (*([3] * spatial), 3, 2),
            data_layout="N" + letters + "C",
            kernel_layout=kernel,
            padding=1,
        ),
    ]
    found.append(
        sample(
            (1, 2, *([3] * spatial), 2),
            (2, 2, *([2] * spatial), 2, 3),
            data_layout=f"NC{letters}2c",
            kernel_layout=f"{'IO' if transposed else 'OI'}{letters}2i3o",
            out_layout=f"N{letters}C3c",
        )
    )
    found.append(sample(shape(1, 4), shape(4, 3, size=2) if transposed else shape(3, 4, size=2),
                        out_layout=f"NC{letters}2c"))  # fmt: skip
    if transposed:
        found.append(sample(shape(1, 2), shape(2, 3, size=3), strides=2, padding=1, output_padding=1))
    return found


def _declare(spatial: int, transposed: bool) -> Op:
    name = f"nn.conv{spatial}d" + ("_transpose" if transposed else "")
    letters = _DEFAULT[spatial]
    data_letters, kernel_letters = "NC" + letters, ("IO" if transposed else "OI") + letters

    def plan(attrs: dict[str, Any]) -> _Plan:
        return _Plan(name, spatial, attrs, transposed)

    def lower(data: te.TensorValue, weight: te.TensorValue, **attrs: Any) -> te.TensorValue:
        return _lower(plan(attrs), data, weight)

    def ref(data: Any, weight: Any, **attrs: Any) -> Any:
        return _ref(plan(attrs), np.asarray(data), np.asarray(weight))

    def forward(
        data: TensorType,
        weight: TensorType,
        strides: Axes = 1,  # type: ignore[assignment]
        padding: Axes = 0,  # type: ignore[assignment]
        dilation: Axes = 1,  # type: ignore[assignment]
        groups: int = 1,
        data_layout: str = data_letters,
        kernel_layout: str = kernel_letters,
        out_layout: str | None = None,
        out_dtype: DType = None,
    ) -> Type:
        attrs = {k: v for k, v in locals().items() if k not in ("data", "weight", "plan")}
        return _infer(plan(attrs), data, weight)

    def backward(
        data: TensorType,
        weight: TensorType,
        strides: Axes = 1,  # type: ignore[assignment]
        padding: Axes = 0,  # type: ignore[assignment]
        output_padding: Axes = 0,  # type: ignore[assignment]
        dilation: Axes = 1,  # type: ignore[assignment]
        groups: int = 1,
        data_layout: str = data_letters,
        kernel_layout: str = kernel_letters,
        out_layout: str | None = None,
        out_dtype: DType = None,
    ) -> Type:
        attrs = {k: v for k, v in locals().items() if k not in ("data", "weight", "plan")}
        return _infer(plan(attrs), data, weight)

    rule = backward if transposed else forward
    rule.__doc__ = (
        f"{'Transposed convolution' if transposed else 'Convolution'} (cross-correlation) over {spatial} dimension(s), "
        "as PyTorch defines it. ``padding``: one number, one a dimension, or all befores then all afters. Layouts are "
        f"orders of N, C, {', '.join(letters)} and O, I, {', '.join(letters)}; an axis may be "
        f"split (NC{letters}16c, where 0 fills the last block of a result). Narrower floats than float32 are summed "
        "in float32. Where the kernel meets no data there is a 0, and its product counts."
    )
    sizes = ("strides", "dilation", "output_padding") if transposed else ("strides", "dilation")
    return operator(
        name,
        device=Place.COMMON,
        fusion=Fusion.OUT_FUSABLE,
        lower=lower,
        ref=ref,
        samples=lambda: _samples(spatial, transposed),
        settle_attrs=settle_window(spatial, "data_layout", sizes),
    )(rule)


conv1d, conv2d, conv3d = (_declare(spatial, False) for spatial in (1, 2, 3))
conv1d_transpose, conv2d_transpose, conv3d_transpose = (_declare(spatial, True) for spatial in (1, 2, 3))
