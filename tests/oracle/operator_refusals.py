"""Compare what operators take and refuse with Apache TVM: ``python tests/oracle/operator_refusals.py /path/to/python``.

The argument is a Python that has the apache-tvm wheel; names of operators may follow. Every sample's call is written as
a user writes it, and then with one thing changed: a tensor's rank, extents, symbols, dtype, unknown shape or dtype,
virtual device, another kind of value in its place; an attribute as None, as another type, out of range. Both sides
evaluate the text; compared is the deduced type, or that the call is refused and whether ``pytest.raises`` of the
oracle's exception class would catch ours. Differences are listed by kind. Not part of the ordinary tests.
"""

from __future__ import annotations

import collections
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from forked import IN_CHILDREN, evaluated
from test_ops_registry import CASES

from supple.base import dtypes
from supple.ir.op import Op
from supple.ops.declare import Sample, ShapeOf

EVALUATE = (
    IN_CHILDREN
    + """
import numpy as np
import tvm
from tvm import relax, tirx
from tvm.script import relax as R
from tvm.script import ir as I

n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
SYMBOLS = {}

def V(shape, dtype):
    return relax.Var("x", R.Tensor(shape, dtype) if dtype else R.Tensor(shape))

def S(shape, dtype):
    return V([e if e < 2 else SYMBOLS.setdefault(e, tirx.Var("s%d" % e, "int64")) for e in shape], dtype)

def N(ndim, dtype):
    return relax.Var("x", R.Tensor(dtype=dtype, ndim=ndim) if dtype else R.Tensor(ndim=ndim))

def D(shape, dtype):
    return relax.Var("x", R.Tensor(shape, dtype, relax.VDevice("llvm", 0, "global")))

def value_of(text):
    try:
        call = relax.BlockBuilder().normalize(eval(text))
        return ["type", str(call.ty)]
    except BaseException as error:
        names = [c.__name__ for c in type(error).__mro__ if c not in (BaseException, object, Exception)]
        return ["refused", names, str(error).strip()[-200:]]

op = relax.op
results = [in_children(group, value_of, ["died", []]) for group in json.load(sys.stdin)]
with open(sys.argv[1], "w") as file:
    json.dump(results, file)
"""
)

OTHER_VALUES = ("None", "99", "-99", "1", "[1]", "(0, 0)", "1.5", "'bad'", "tirx.IntImm('int64', 1)", "n")
OTHER_OPERANDS = ("relax.Var('s', R.Shape((2, 3)))", "relax.Var('t', R.Tuple(R.Tensor((2,), 'float32')))", "2", "'a'")


class Tensor:
    """A tensor argument: the function of `EVALUATE` that makes it, shape and dtype."""

    def __init__(self, shape: tuple[int, ...], dtype: str) -> None:
        self.shape, self.dtype = shape, dtype

    def __str__(self) -> str:
        return f"V({self.shape}, {self.dtype!r})"

    def others(self) -> Iterator[str]:
        """The tensor with one thing changed, as text."""
        shape, dtype = self.shape, self.dtype
        yield f"S({shape}, {dtype!r})"
        yield f"N({len(shape)}, {dtype!r})"
        yield f"N(-1, {dtype!r})"
        yield "N(-1, None)"
        yield f"V({shape}, None)"
        yield f"D({shape}, {dtype!r})"
        yield f"V({(*shape, 2)}, {dtype!r})"
        if shape:
            yield f"V({shape[1:]}, {dtype!r})"
        for axis in range(len(shape)):
            yield f"V({(*shape[:axis], shape[axis] + 1, *shape[axis + 1 :])}, {dtype!r})"
        for other in ("bool", "int32", "float64", "float16", "uint8"):
            if other != dtype:
                yield f"V({shape}, {other!r})"
        yield from OTHER_OPERANDS


def argument(value: Any) -> Any:
    """A sample's argument: tensors, lists of them, or text."""
    if isinstance(value, ShapeOf):
        return str(value.values)
    if isinstance(value, tuple):
        return Tensor(value, "float32")
    if isinstance(value, np.ndarray):
        return Tensor(value.shape, dtypes.from_numpy(value.dtype))
    if isinstance(value, list) and not all(isinstance(v, int) for v in value):
        return [argument(v) for v in value]
    return repr(value)


def text_of(value: Any) -> str:
    return f"[{', '.join(map(text_of, value))}]" if isinstance(value, list) else str(value)


def calls(op: Op, sample: Sample) -> Iterator[tuple[str, str]]:
    """What was changed, and the call."""
    if any(not isinstance(v, (int, float, str, list, tuple, type(None))) for v in sample.attrs.values()):
        return
    args = [argument(a) for a in sample.args]
    attrs = {k: repr(v) for k, v in sample.attrs.items()}

    def call(args: list[Any], attrs: dict[str, str]) -> str:
        given = [*map(text_of, args), *(f"{k}={v}" for k, v in attrs.items())]
        return f"op.{op.short_name}({', '.join(given)})"

    yield "as it is", call(args, attrs)
    for place, arg in enumerate(args):
        rest = args[:place], args[place + 1 :]
        if isinstance(arg, Tensor):
            for other in arg.others():
                yield f"operand {place}", call([*rest[0], other, *rest[1]], attrs)
        elif isinstance(arg, list):
            for at, part in enumerate(arg[:2]):
                for other in part.others() if isinstance(part, Tensor) else ():
                    yield f"operand {place}.{at}", call([*rest[0], [*arg[:at], other, *arg[at + 1 :]], *rest[1]], attrs)
            yield f"operand {place}", call([*rest[0], [], *rest[1]], attrs)
            yield f"operand {place}", call([*rest[0], *arg, *rest[1]], attrs)
        else:
            for other in OTHER_VALUES:
                yield f"argument {place}", call([*rest[0], other, *rest[1]], attrs)
    if all(isinstance(a, Tensor) for a in args):
        yield "symbols", call([f"S({a.shape}, {a.dtype!r})" for a in args], attrs)
        yield "symbols", call([f"N({len(a.shape)}, {a.dtype!r})" for a in args], attrs)
        yield "symbols", call(["N(-1, None)" for _ in args], attrs)
    for param in op.params:
        if param.is_attr:
            for other in OTHER_VALUES:
                yield f"attribute {param.name}", call(args, {**attrs, param.name: other})


def groups(names: list[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """The calls of each operator: two samples with changes, the others as they are."""
    made: dict[str, dict[str, str]] = {}
    seen: collections.Counter[str] = collections.Counter()
    for op, sample in CASES:
        if names and op.short_name not in names:
            continue
        found = list(calls(op, sample))
        seen[op.short_name] += 1
        for what, text in found if seen[op.short_name] <= 2 else found[:1]:
            made.setdefault(op.short_name, {}).setdefault(text, what)
    return [(name, [(what, text) for text, what in texts.items()]) for name, texts in made.items()]


def plain(text: str) -> str:
    """A type's text as both sides may write it: dtypes of literals, and virtual devices that no module names."""
    text = re.sub(r"T\.int64\((-?\d+)\)", r"\1", text).replace("T.Tuple(", "R.Tuple(")
    return text.replace('vdevice="llvm:-1:global"', 'vdevice=I.vdevice("llvm", 0, "global")')


def difference(theirs: Any, ours: Any) -> str | None:
    """What kind of difference there is, or None."""
    if theirs[0] == "died":
        return None
    if theirs[0] == "type" and ours[0] == "type":
        return None if plain(theirs[1]) == plain(ours[1]) else "another type"
    if theirs[0] == "type":
        return "refused here"
    if ours[0] == "type":
        return "accepted here"
    wanted = "SuppleError" if theirs[1][0] == "InternalError" else theirs[1][0]  # as the alias has it
    return None if wanted in ours[1] else "another class"


def main(python: str, names: list[str]) -> None:
    made = groups(names)
    texts = [[text for _, text in found] for _, found in made]
    theirs = evaluated([python], EVALUATE, texts)
    ours = evaluated([sys.executable, "-m", "supple", "run", "--as-tvm"], EVALUATE, texts)
    counts: collections.Counter[str] = collections.Counter()
    for (_, found), a, b in zip(made, theirs, ours, strict=True):
        for (what, text), one, other in zip(found, a, b, strict=True):
            kind = difference(one, other)
            counts["calls"] += 1
            counts["of them refused by both"] += one[0] == "refused" and other[0] == "refused"
            if kind is not None:
                counts[kind] += 1
                print(f"{kind} | {what} | {text}\n    theirs {one[1:]}\n    ours   {other[1:]}")
    print(dict(counts))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
