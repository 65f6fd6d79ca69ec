"""Sums of products by subscripts: einsum, as numpy defines it."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.build import te
from supple.ir import expr as E
from supple.ir.expr import cast, int64
from supple.ir.node import Expr, Type
from supple.ir.op import Fusion
from supple.ir.types import TensorType
from supple.ops.declare import Place, Sample, Tensors, fail, operator, sample
from supple.ops.requirements import require_equal
from supple.ops.shapes import is_one, same_dtype
from supple.sym.relate import tensor, tensor_dims


@dataclass(frozen=True)
class _Plan:
    """Labels of every operand's axes and of the result's; the axes of an ellipsis are labelled ``.0``, ``.1``, ..."""

    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]


def _labels(text: str, rank: int, operand: int) -> tuple[str, ...]:
    """The labels of one operand; an ellipsis takes the axes that no letter names, counted from the last."""
    head, dots, tail = text.partition("...")
    named = head + tail
    if not all(c.isalpha() for c in named):
        fail("einsum: subscripts are letters, one ellipsis, commas and an arrow", "letters", repr(text))
    if (rank != len(named)) if not dots else (rank < len(named)):
        fail(
            f"einsum: the subscripts of operand {operand} do not fit its rank",
            f"{'at least ' if dots else ''}{len(named)} dimensions for {text!r}",
            f"{rank} dimensions",
        )
    rest = rank - len(named)
    return (*head, *(f".{n}" for n in range(rest - 1, -1, -1) if dots), *tail)


def _plan(subscripts: str, ranks: Sequence[int]) -> _Plan:
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(ranks):
        fail("einsum: one group of subscripts for each operand", f"{len(ranks)} groups", f"{len(parts)} in {text!r}")
    inputs = tuple(_labels(part, rank, n) for n, (part, rank) in enumerate(zip(parts, ranks, strict=True)))
    dots = sorted({label for labels in inputs for label in labels if label[0] == "."}, key=lambda s: -int(s[1:]))
    if not arrow:
        counts = Counter(c for c in left if c.isalpha())
        return _Plan(inputs, (*dots, *sorted(c for c, n in counts.items() if n == 1)))
    head, given, tail = right.partition("...")
    named = head + tail
    if not all(c.isalpha() for c in named):
        fail("einsum: subscripts are letters, one ellipsis, commas and an arrow", "letters", repr(right))
    if dots and not given:
        fail("einsum: the result must keep the axes of the ellipsis", "... after the arrow", repr(right))
    for c, n in Counter(named).items():
        if n > 1:
            fail("einsum: a subscript stands twice in the result", "each at most once", repr(right))
        if all(c not in labels for labels in inputs):
            fail("einsum: the result has a subscript that no operand has", "a subscript of an operand", repr(c))
    return _Plan(inputs, (*head, *dots, *tail))


def _extents(plan: _Plan, shapes: Sequence[Sequence[Expr]]) -> dict[str, Expr]:
    """The extent of every label; a dimension of 1 is broadcast."""
    found: dict[str, Expr] = {}
    for labels, shape in zip(plan.inputs, shapes, strict=True):
        for label, extent in zip(labels, shape, strict=True):
            known = found.get(label)
            if known is None or is_one(known):
                found[label] = extent
            elif not is_one(extent):
                require_equal(f"einsum: the dimensions named {label!r} differ", known, extent)
    return found


_Operand = tuple[te.TensorValue, tuple[str, ...]]


def _contract(operands: Sequence[_Operand], kept: Sequence[str], wide: str) -> te.TensorValue:
    """The sum of the operands' product over all labels that are not kept."""
    own: dict[str, Expr] = {}  # the extents these operands span: 1 is broadcast
    for tensor_, labels in operands:
        for label, extent in zip(labels, tensor_.shape, strict=True):
            if label not in own or is_one(own[label]):
                own[label] = extent
    summed = [label for label in own if label not in kept]
    axes = {label: te.reduce_axis((0, own[label]), label.replace(".", "e")) for label in summed}

    def body(*i: Any) -> Expr:
        at: dict[str, Any] = {label: axes[label].var for label in summed}
        at.update(zip(kept, i, strict=True))
        product: Expr | None = None
        for tensor_, labels in operands:
            index = tuple(
                int64(0) if is_one(extent) and not is_one(own[label]) else at[label]
                for label, extent in zip(labels, tensor_.shape, strict=True)
            )
            value = cast(wide, tensor_[index])
            product = value if product is None else E.Mul(product, value)
        assert product is not None
        return te.sum(product, axis=list(axes.values())) if axes else product

    return te.compute([own[label] for label in kept], body, "einsum")


def _lower(operands: Sequence[te.TensorValue], subscripts: str) -> te.TensorValue:
    plan = _plan(subscripts, [t.ndim for t in operands])
    _extents(plan, [t.shape for t in operands])  # refuses what does not fit
    dtype = operands[0].dtype
    wide = "int64" if dtype == "bool" else dtypes.accumulator(dtype)
    pending: list[_Operand] = [(t, labels) for t, labels in zip(operands, plan.inputs, strict=True)]

    def needed(labels: Sequence[str], others: Sequence[_Operand]) -> tuple[str, ...]:
        """Which labels the result or another operand has."""
        used = {*plan.output, *(label for _, theirs in others for label in theirs)}
        return tuple(dict.fromkeys(label for label in labels if label in used))

    if len(pending) > 1:  # what one operand alone has is summed before it meets the others
        for n, (tensor_, labels) in enumerate(pending):
            kept = needed(labels, pending[:n] + pending[n + 1 :])
            if set(kept) != set(labels):
                pending[n] = (_contract([(tensor_, labels)], kept, wide), kept)
    while len(pending) > 2:  # from the left, two at a time
        pair, rest = pending[:2], pending[2:]
        kept = needed([label for _, labels in pair for label in labels], rest)
        pending = [(_contract(pair, kept, wide), kept), *rest]
    total = _contract(pending, plan.output, wide)
    if total.dtype == dtype:
        return total
    if dtype == "bool":
        return te.compute(total.shape, lambda *i: E.NE(total[i], int64(0)), "einsum_any")
    return te.compute(total.shape, lambda *i: cast(dtype, total[i]), "einsum_cast")


def _ref(operands: Sequence[Any], subscripts: str) -> Any:
    """By numpy, in the order of the lowering, which makes a difference where something is infinite."""
    dtype = operands[0].dtype
    plan = _plan(subscripts, [np.ndim(x) for x in operands])
    numbers = {label: n for n, label in enumerate(dict.fromkeys(label for part in plan.inputs for label in part))}
    output = [numbers[label] for label in plan.output]
    pending = [(_summable(x), [numbers[c] for c in part]) for x, part in zip(operands, plan.inputs, strict=True)]

    def contracted(given: list[Any], others: list[Any]) -> Any:
        used = {*output, *(m for _, part in others for m in part)}
        kept = [m for m in dict.fromkeys(m for _, part in given for m in part) if m in used]
        return np.einsum(*(item for one in given for item in one), kept), kept

    if len(pending) > 1:
        for n, one in enumerate(pending):
            pending[n] = contracted([one], pending[:n] + pending[n + 1 :])
    while len(pending) > 2:
        pending = [contracted(pending[:2], pending[2:]), *pending[2:]]
    return np.asarray(np.einsum(*(item for one in pending for item in one), output)).astype(dtype)


def _summable(x: Any) -> Any:
    """Operands as they are multiplied and added: of bools, products are conjunctions and sums whether any is true."""
    return x.astype("int64") if x.dtype == bool else dtypes.widened(x)


def _samples() -> list[Sample]:
    ints = np.arange(6).reshape(2, 3).astype("int32")
    return [
        sample([(2, 3), (3, 4)], subscripts="ij,jk->ik"),
        sample([(2, 3), (3, 4)], subscripts="ij, jk"),
        sample([(3, 3)], subscripts="ii"),
        sample([(3, 3)], subscripts="ii->i"),
        sample([(2, 3)], subscripts="ba"),
        sample([(2, 5, 3), (3, 4)], subscripts="...ij,jk->...ik"),
        sample([(2, 1, 5, 3), (4, 5, 3)], subscripts="...ij,...kj->k...i"),
        sample([(2, 3), (3, 4), (4, 2)], subscripts="ij,jk,kl->il"),
        sample([(2, 3), (4, 5)], subscripts="ij,kl->k"),
        sample([(2,), (3,)], subscripts="i,j->ij"),
        sample([(1, 3), (2, 3)], subscripts="ij,ij->i"),
        sample([ints, ints], subscripts="ij,ij->"),
        sample([ints > 2, ints[0] < 2], subscripts="ij,j->i"),
        sample([(0, 3), (3, 2)], subscripts="ij,jk->ik"),
        sample([(2, 0), (0, 2)], subscripts="ij,jk->ik"),
    ]


def _output_rank(subscripts: str) -> int | None:
    """The rank of the result where the subscripts alone say it."""
    given, arrow, output = subscripts.replace(" ", "").partition("->")
    if "." in subscripts:
        return None
    return len(output) if arrow else sum(given.count(label) == 1 for label in set(given) - {","})


@operator(fusion=Fusion.OUT_FUSABLE, device=Place.ANY, lower=_lower, ref=_ref, samples=_samples)
def einsum(operands: Tensors, subscripts: str) -> Type:
    """The sum of products that subscripts name, as numpy's einsum: ``"ij,jk->ik"``, repeated subscripts of one operand
    (its diagonal), an ellipsis for axes that are broadcast, and without an arrow the subscripts that stand once in
    alphabetical order. What one operand alone has is summed first; several operands are contracted two at a time from
    the left. Of bools, whether any product is true."""
    if not operands:
        fail("einsum: needs an operand", "at least 1", "0")
    dtype = operands[0].dtype
    ranked = tensor_dims(operands[0]) is not None  # dtypes are compared as far as the shapes are known, as in Relax
    for before, other in itertools.pairwise(operands):
        ranked = ranked and before.ndim != -1
        if ranked and (dtype is None) != (other.dtype is None):
            hint = "R.match_cast to a type of known dtype"
            fail("einsum: the dtype of an operand is not known", dtype or other.dtype, None, hint=hint)
        common = same_dtype("einsum", TensorType(None, dtype), other)
        dtype = common if ranked else dtype
    if any(t.ndim == -1 for t in operands):
        written = _output_rank(subscripts)
        return TensorType(None, dtype, -1 if ranked or operands[0].ndim == -1 or written is None else written)
    plan = _plan(subscripts, [t.ndim for t in operands])
    dims = [tensor_dims(t) for t in operands]
    if any(d is None for d in dims):
        return TensorType(None, dtype, len(plan.output))
    extents = _extents(plan, [d for d in dims if d is not None])
    return tensor([extents[label] for label in plan.output], dtype)
