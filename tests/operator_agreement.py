"""Operators on hostile inputs: the interpreter and native code give the same values, or both refuse.

    python tests/operator_agreement.py [--seed N] [--rounds N] [--only NAME ...]

Every sample of every operator runs with symbols for its extents, other dtypes, other sizes (0 and 1 among them),
special values (NaN, infinities, extreme integers, indices out of bounds) and arrays that are strided, offset,
reversed or read-only. Disagreements are printed; the number of them is the exit status.
"""

from __future__ import annotations

import argparse
import collections
import sys
from typing import Any

import numpy as np
from test_ops_registry import CASES, arrays_of, prepared

import supple
from supple.base import dtypes
from supple.base.errors import DiagnosticError, InternalError, NotSupportedError, SuppleError
from supple.build.block_builder import BlockBuilder
from supple.interp.graph import Interpreter
from supple.ir.expr import Var, as_expr
from supple.ir.graph import ShapeExpr
from supple.ir.module import IRModule
from supple.ir.op import Op
from supple.ir.types import TensorType, prim_type
from supple.ops.declare import Sample, ShapeOf, random_array

FLOATS = ["float16", "bfloat16", "float64"]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e15, -1e15, 1e-40, 0.5, 1.5, 2.5, -0.5, 255.0, 9.3e18, -9.3e18]


class Case:
    """A sample as a function of its tensors, whose extents are symbols (one for each extent, or each its own)."""

    def __init__(self, op: Op, sample: Sample, dtype: str | None, apart: bool) -> None:
        self.op, self.dtype, self.apart = op, dtype, apart
        self.arrays: list[Any] = []
        self.params: list[Var] = []
        self.symbols: dict[Any, Var] = {}
        self.sample = prepared(op, sample)
        args = [self._argument(a) for a in arrays_of(self.sample)]
        bb = BlockBuilder()
        with bb.function("main", self.params):
            bb.emit_func_output(bb.emit(op(*args, **self.sample.attrs)))
        self.mod: IRModule = bb.finalize()
        self.vm = supple.relax.VirtualMachine(supple.compile(self.mod, results="numpy"), supple.cpu())

    def _argument(self, value: Any) -> Any:
        if isinstance(value, list) and not all(isinstance(v, int) for v in value):
            return [self._argument(v) for v in value]
        if isinstance(value, ShapeOf):
            return list(value.values)
        if not isinstance(value, np.ndarray):
            return [as_expr(v) for v in value] if isinstance(value, list) else as_expr(value)
        if self.dtype is not None and value.dtype == np.float32:
            value = value.astype(dtypes.to_numpy(self.dtype))
        place = len(self.arrays)
        dims = [self._dim(e, (place, d)) for d, e in enumerate(value.shape)]
        self.arrays.append(value)
        self.params.append(Var(f"x{place}", TensorType(ShapeExpr(tuple(dims)), dtypes.from_numpy(value.dtype))))
        return self.params[-1]

    def _dim(self, extent: int, place: tuple[int, int]) -> Any:
        if self.sample.static or (extent < 2 and not self.apart):
            return as_expr(extent)
        key = place if self.apart else extent
        return self.symbols.setdefault(key, Var(f"s{len(self.symbols)}", prim_type("int64")))

    def inputs(self, rng: np.random.Generator) -> list[Any]:
        """Arrays of other sizes, values and layouts."""
        sizes = {id(v): k if isinstance(k, int) else None for k, v in self.symbols.items()}
        change = rng.random() < 0.6
        made = []
        for param, array in zip(self.params, self.arrays, strict=True):
            shape = []
            for dim, extent in zip(param.ty.shape.values, array.shape, strict=True):  # type: ignore[union-attr]
                if id(dim) in sizes and change and rng.random() < 0.5:
                    sizes[id(dim)] = int(rng.choice([0, 1, 2, 3, 5]))
                chosen = sizes.get(id(dim))
                shape.append(extent if chosen is None else chosen)
                if id(dim) in sizes:
                    sizes[id(dim)] = shape[-1]
            made.append(shape)
        for param, shape in zip(self.params, made, strict=True):  # the last word on a symbol holds everywhere
            for d, dim in enumerate(param.ty.shape.values):  # type: ignore[union-attr]
                if id(dim) in sizes and sizes[id(dim)] is not None:
                    shape[d] = sizes[id(dim)]  # type: ignore[call-overload]
        return [self._array(a, tuple(s), rng) for a, s in zip(self.arrays, made, strict=True)]

    def _array(self, like: Any, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
        dtype = dtypes.from_numpy(like.dtype)
        kind = int(rng.integers(0, 4))
        if kind == 0 and shape == like.shape:
            values = like.copy()
        elif kind == 1 and dtypes.is_float(dtype):
            with np.errstate(all="ignore"):
                values = rng.choice(SPECIAL, shape).astype(like.dtype)
        elif kind == 1 and dtypes.is_int(dtype):
            info = np.iinfo(like.dtype)
            values = rng.choice([info.min, info.max, 0, 1, 2, info.max // 2], shape).astype(like.dtype)
        elif kind == 2 and shape == like.shape and like.size:
            values = rng.permutation(like.reshape(-1)).reshape(shape)
        else:
            values = random_array(shape, dtype, int(rng.integers(0, 1 << 30)))
        return laid_out(values, rng)


def laid_out(values: Any, rng: np.random.Generator) -> Any:
    """The same values in another layout: strided, offset, reversed, transposed, read-only."""
    layout = int(rng.integers(0, 7))
    if values.ndim and layout == 1:
        whole = np.zeros((*values.shape[:-1], 2 * values.shape[-1] + 1), values.dtype)
        values = _into(whole[..., 1::2][..., : values.shape[-1]], values)
    elif values.ndim and layout == 2:
        values = np.ascontiguousarray(values[::-1])[::-1]
    elif values.ndim and layout == 3:
        values = np.asfortranarray(values)
    elif layout == 4:
        values = values.copy()
        values.flags.writeable = False
    elif layout == 5:
        whole = np.zeros(values.nbytes + values.itemsize, "uint8")[values.itemsize :]
        values = _into(whole.view(values.dtype).reshape(values.shape), values)
    return values


def _into(place: Any, values: Any) -> Any:
    place[...] = values
    return place


def outcome(function: Any, args: list[Any]) -> Any:
    """The results as a list of arrays, or the exception."""
    try:
        result = function(*args)
    except Exception as error:
        return error
    return [np.asarray(r) for r in (result if isinstance(result, (tuple, list)) else [result])]


TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 1e-4, "float64": 1e-10}


def difference(expected: Any, actual: Any, args: Any = ()) -> str | None:
    """What is wrong with two outcomes, or None; sums round by the size of what they add, so ``args`` count as well."""
    largest = max((_largest(a) for a in args), default=0.0)
    for which, found in (("interpreter", expected), ("native code", actual)):
        if isinstance(found, Exception) and (not isinstance(found, SuppleError) or isinstance(found, InternalError)):
            return f"{which} raises {type(found).__name__}: {found}"
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        if isinstance(expected, Exception) and isinstance(actual, Exception):
            return None
        return f"interpreter {_short(expected)}, native code {_short(actual)}"
    for a, b in zip(expected, actual, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"interpreter {a.dtype}{a.shape}, native code {b.dtype}{b.shape}"
        if not close(a, b, largest):
            return f"interpreter {_short([a])}, native code {_short([b])}"
    return None


def _largest(a: Any) -> float:
    if not dtypes.is_float(dtypes.from_numpy(a.dtype)):
        return 0.0
    with np.errstate(all="ignore"):
        wide = np.abs(a.astype("float64"))
        return float(np.max(wide[np.isfinite(wide)], initial=0.0))


def close(a: Any, b: Any, largest: float) -> bool:
    """Whether two arrays agree within the rounding of their dtype, of values up to ``largest``."""
    dtype = dtypes.from_numpy(a.dtype)
    if not dtypes.is_float(dtype):
        return bool(np.array_equal(a, b))
    with np.errstate(all="ignore"):
        x, y = a.astype("float64"), b.astype("float64")
        finite = np.isfinite(x) & np.isfinite(y)
        scale = float(np.max(np.abs(x[finite]), initial=1.0))
        rtol = TOLERANCE.get(dtype, 0.3)
        scale = min(scale, 1e3) if largest < 1e3 else max(scale, largest)
        return bool(np.allclose(x, y, rtol=rtol, atol=rtol * scale, equal_nan=True))


def _short(found: Any) -> str:
    if isinstance(found, Exception):
        return f"raises {str(found).splitlines()[0]}"
    return " ".join(str(np.array2string(f, threshold=12)).replace("\n", " ")[:300] for f in found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    for number, (op, sample) in enumerate(CASES):
        if options.only and op.short_name not in options.only:
            continue
        rng = np.random.default_rng([options.seed, number])
        dtype = None if rng.random() < 0.4 else str(rng.choice(FLOATS))
        apart = bool(rng.random() < 0.4)
        try:
            case = Case(op, sample, dtype, apart)
        except (NotSupportedError, DiagnosticError, TypeError) as error:
            counts["refused"] += 1
            if not isinstance(error, DiagnosticError) or isinstance(error, NotSupportedError):
                print(f"REFUSED {op.short_name} {dtype} apart={apart}: {str(error).splitlines()[0]}", flush=True)
            continue
        except Exception as error:
            counts["failed"] += 1
            print(f"FAILED {op.short_name} {dtype} apart={apart}: {type(error).__name__} {error}", flush=True)
            continue
        for _ in range(options.rounds):
            args = case.inputs(rng)
            with np.errstate(all="ignore"):
                expected = outcome(lambda *a: Interpreter(case.mod).run("main", *a), args)  # noqa: B023
            actual = outcome(case.vm["main"], args)
            counts["calls"] += 1
            wrong = difference(expected, actual, args)
            if wrong is not None:
                counts["failed"] += 1
                given = ", ".join(f"{a.dtype}{a.shape}" for a in args)
                print(f"DIFFERENT {op.short_name} {sample.attrs} apart={apart} ({given}): {wrong}", flush=True)
                for a in args:
                    print("    ", np.array2string(a, threshold=20).replace("\n", " ")[:200])
    print(dict(counts))
    return min(counts["failed"], 100)


if __name__ == "__main__":
    sys.exit(main())
