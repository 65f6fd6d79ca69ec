"""Layouts of images and kernels by letters: which axis is the batch, the channels, each spatial dimension.

An axis may be split: in ``NCHW16c`` the last axis counts the 16 channels of each of C's blocks. An operator on such a
layout is the operator on the plain layout (``NCHW``) between `Layout.joined` and `Layout.split`; its rule, its lowering
and its reference all work on plain layouts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import IntImm, const, int64
from supple.ir.intrinsics import intrinsic
from supple.ir.node import Expr
from supple.ir.types import TensorType
from supple.ops.declare import fail
from supple.ops.requirements import require_equal
from supple.sym.simplify import SHAPES

T = TypeVar("T")
SPATIAL = "DHW"
_AXIS = re.compile(r"([A-Z])|([0-9]+)([a-z])")


@dataclass(frozen=True)
class Layout:
    """Axes by meaning: ``outer`` (batch, or a kernel's output channels), ``channel`` (or a kernel's input channels),
    and the spatial ones in the order D, H, W, as axes of the plain layout ``text``.

    ``axes`` are all axes in order, each the axis of the plain layout that it belongs to, and its size where it counts
    inside of a block (0 for the axis of the blocks, or the whole axis)."""

    name: str
    text: str
    outer: int
    channel: int
    spatial: tuple[int, ...]
    axes: tuple[tuple[int, int], ...]

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.axes)

    @property
    def is_split(self) -> bool:
        """Whether an axis is split."""
        return self.rank != len(self.text)

    def arrange(self, outer: T, channel: T, spatial: Sequence[T]) -> tuple[T, ...]:
        """Values by meaning in the plain layout's order."""
        result: dict[int, T] = {self.outer: outer, self.channel: channel}
        result.update(zip(self.spatial, spatial, strict=True))
        return tuple(result[d] for d in range(len(self.text)))

    def require_rank(self, what: str, ty: TensorType) -> None:
        """Refuse a tensor of another rank."""
        if ty.ndim not in (-1, self.rank):
            fail(f"{self.name}: {what} must have {self.rank} dimensions", f"{self.rank} dimensions",
                 f"{ty.ndim} dimensions")  # fmt: skip

    def joined_dims(self, dims: Sequence[Expr]) -> list[Expr]:
        """The plain layout's extents; refuses blocks of another size than the layout's."""
        if not self.is_split:
            return list(dims)
        joined: list[Expr] = [int64(1)] * len(self.text)
        for (axis, block), dim in zip(self.axes, dims, strict=True):
            if block:
                text = f"{self.name}: the blocks of {self.text[axis]} have another size than the layout's"
                require_equal(text, int64(block), dim, str(block))
            joined[axis] = SHAPES.simplify(E.Mul(joined[axis], int64(block) if block else dim))
        return joined

    def split_dims(self, dims: Sequence[Expr]) -> list[Expr]:
        """The extents of the layout's axes: as many blocks as hold all."""
        sizes = self._blocks()
        return [
            int64(block) if block else SHAPES.simplify(E.FloorDiv(E.Add(dims[a], int64(sizes[a] - 1)), int64(sizes[a])))
            for a, block in self.axes
        ]

    def joined(self, data: te.TensorValue) -> te.TensorValue:
        """The tensor in the plain layout."""
        if not self.is_split:
            return data
        return te.compute(self.joined_dims(data.shape), lambda *i: data[tuple(self._split_index(i))], "joined")

    def split(self, data: te.TensorValue) -> te.TensorValue:
        """A tensor of the plain layout in blocks; 0 where the last block has no element."""
        if not self.is_split:
            return data
        sizes = self._blocks()

        def body(*i: Any) -> Expr:
            plain: list[Expr] = [int64(0)] * len(self.text)
            for (axis, block), index in zip(self.axes, i, strict=True):
                scaled = index if block or sizes[axis] == 1 else E.Mul(index, int64(sizes[axis]))
                plain[axis] = scaled if isinstance(plain[axis], IntImm) else E.Add(plain[axis], scaled)
            inside: Expr | None = None
            for axis, size in enumerate(sizes):
                if SHAPES.equal(E.FloorMod(data.shape[axis], int64(size)), int64(0)) is not True:
                    check = E.LT(plain[axis], data.shape[axis])
                    inside = check if inside is None else E.And(inside, check)
            value = data[tuple(plain)]
            return value if inside is None else intrinsic("if_then_else", inside, value, const(0, data.dtype))

        return te.compute(self.split_dims(data.shape), body, "split")

    def joined_array(self, data: Any) -> Any:
        """`joined`, of a numpy array."""
        if not self.is_split:
            return data
        order = [d for a in range(len(self.text)) for block in (False, True) for d in self._axes_of(a, block)]
        shape = [1] * len(self.text)
        for (axis, _), size in zip(self.axes, data.shape, strict=True):
            shape[axis] *= size
        return np.transpose(data, order).reshape(shape)

    def split_array(self, data: Any) -> Any:
        """`split`, of a numpy array."""
        if not self.is_split:
            return data
        sizes = self._blocks()
        whole = np.pad(data, [(0, -n % size) for n, size in zip(data.shape, sizes, strict=True)])
        apart = whole.reshape([n for m, size in zip(whole.shape, sizes, strict=True) for n in (m // size, size)])
        order = [2 * axis + bool(block) for axis, block in self.axes]
        whole_axes = [d for d in range(apart.ndim) if d not in order]  # of size 1: what is not split has no blocks
        shape = [block or whole.shape[axis] // sizes[axis] for axis, block in self.axes]
        return np.transpose(apart, order + whole_axes).reshape(shape)

    def _blocks(self) -> list[int]:
        """The size of the blocks of each axis of the plain layout; 1 where it is not split."""
        sizes = [1] * len(self.text)
        for axis, block in self.axes:
            sizes[axis] = block or sizes[axis]
        return sizes

    def _axes_of(self, axis: int, block: bool) -> list[int]:
        return [d for d, (a, size) in enumerate(self.axes) if a == axis and bool(size) is block]

    def _split_index(self, plain: Sequence[Any]) -> list[Expr]:
        sizes = self._blocks()

        def place(axis: int, block: int) -> Expr:
            if sizes[axis] == 1:  # not split, or into blocks of one
                return int64(0) if block else plain[axis]
            return (E.FloorMod if block else E.FloorDiv)(plain[axis], int64(sizes[axis]))

        return [place(axis, block) for axis, block in self.axes]


def parse_layout(name: str, text: str, letters: str, spatial: int) -> Layout:
    """A layout such as ``NCHW`` (letters ``NC``), ``NCHW16c`` or ``OIHW16i16o`` (letters ``OI``); refuses all else."""
    wanted = letters + SPATIAL[3 - spatial :]
    pieces = list(_AXIS.finditer(text))
    plain = "".join(piece[1] for piece in pieces if piece[1])
    blocks = [piece[3].upper() for piece in pieces if piece[3]]
    if "".join(piece[0] for piece in pieces) != text or sorted(plain) != sorted(wanted):
        fail(f"{name}: unknown layout", f"an order of the letters {wanted}, and blocks such as 16c", repr(text))
    if any(letter not in plain for letter in blocks) or len(set(blocks)) != len(blocks):
        fail(f"{name}: unknown layout", f"at most one block for each of the letters {wanted}", repr(text))
    if any(piece[2] and int(piece[2]) == 0 for piece in pieces):
        fail(f"{name}: unknown layout", "blocks of at least 1", repr(text))
    spots = tuple(plain.index(letter) for letter in SPATIAL[3 - spatial :])
    axes = tuple((plain.index((piece[1] or piece[3]).upper()), int(piece[2] or 0)) for piece in pieces)
    return Layout(name, plain, plain.index(letters[0]), plain.index(letters[1]), spots, axes)


def free_layout(name: str, text: str) -> Layout:
    """A layout of any letters (``"NCHW16c"``, ``"OIHW"``): only `Layout.joined` and `Layout.split` mean something."""
    pieces = list(_AXIS.finditer(text))
    plain = "".join(piece[1] for piece in pieces if piece[1])
    blocks = [piece[3].upper() for piece in pieces if piece[3]]
    whole = "".join(piece[0] for piece in pieces) == text and len(set(plain)) == len(plain)
    whole = whole and all(int(piece[2] or 1) > 0 for piece in pieces)
    if not plain or not whole or len(set(blocks)) != len(blocks) or not set(blocks) <= set(plain):
        fail(f"{name}: {text!r} is not a layout", "letters such as NCHW or NCHW16c", repr(text))
    axes = tuple((plain.index(p[1]), 0) if p[1] else (plain.index(p[3].upper()), int(p[2])) for p in pieces)
    return Layout(name, plain, 0, 0, (), axes)


def per_dimension(name: str, what: str, value: int | Sequence[int] | None, spatial: int) -> tuple[int, ...]:
    """One number for each spatial dimension: a single one counts for all."""
    values = (value,) if isinstance(value, int) else tuple(value or ())
    if len(values) == 1:
        values = values * spatial
    if len(values) != spatial:
        fail(f"{name}: {what} must be one number, or one for each spatial dimension", str(spatial), str(len(values)))
    return values


def padding_pairs(name: str, value: int | Sequence[int] | None, spatial: int) -> list[tuple[int, int]]:
    """Padding before and after each spatial dimension: one number for all, one each, or all befores then all afters."""
    values = (value,) if isinstance(value, int) else tuple(value or ())
    if len(values) == 1:
        values = values * spatial
    if len(values) == spatial:
        values = values * 2
    if len(values) != 2 * spatial:
        fail(f"{name}: padding must be 1, {spatial} or {2 * spatial} numbers", f"{2 * spatial}", str(len(values)))
    return list(zip(values[:spatial], values[spatial:], strict=True))


def settle_window(
    spatial: int, layout: str = "", sizes: Sequence[str] = ()
) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """How Relax stores a window's attributes (``settle_attrs``): ``sizes`` with one number for each spatial dimension,
    ``padding`` with one for each side, and ``out_layout`` as the attribute ``layout`` where it is not given."""

    def settle(attrs: Mapping[str, Any]) -> dict[str, Any]:
        result = dict(attrs)
        for name in (*sizes, "padding"):
            given, wanted = result.get(name), 2 * spatial if name == "padding" else spatial
            if isinstance(given, (tuple, list)) and len(given) in (1, spatial):
                result[name] = tuple(given) * (wanted // len(given))
        if layout in result:
            result["out_layout"] = result.get("out_layout") or result[layout]
        return result

    return settle
