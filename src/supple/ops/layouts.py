"""Layouts of images and kernels by letters: which axis is the batch, the channels, each spatial dimension."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from supple.ops.declare import fail

T = TypeVar("T")
SPATIAL = "DHW"


@dataclass(frozen=True)
class Layout:
    """Axes by meaning: ``outer`` (batch, or a kernel's output channels), ``channel`` (or a kernel's input channels),
    and the spatial ones in the order D, H, W."""

    text: str
    outer: int
    channel: int
    spatial: tuple[int, ...]

    def arrange(self, outer: T, channel: T, spatial: Sequence[T]) -> tuple[T, ...]:
        """Values by meaning in the layout's order."""
        result: dict[int, T] = {self.outer: outer, self.channel: channel}
        result.update(zip(self.spatial, spatial, strict=True))
        return tuple(result[d] for d in range(len(self.text)))


def parse_layout(name: str, text: str, letters: str, spatial: int) -> Layout:
    """A layout such as ``NCHW`` (letters ``NC``) or ``OIHW`` (letters ``OI``); refuses all else, blocked ones too."""
    wanted = letters + SPATIAL[3 - spatial :]
    if sorted(text) != sorted(wanted):
        fail(f"{name}: unknown layout", f"an order of the letters {wanted}", repr(text))
    axes = tuple(text.index(letter) for letter in SPATIAL[3 - spatial :])
    return Layout(text, text.index(letters[0]), text.index(letters[1]), axes)


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
