"""LegalizeOps by value: every sample of every operator as a module, before and after.

    python tests/operator_legalized.py [--only NAME ...]

The legalised module has no operator left that has a compute definition, prints, reads back to itself, and gives the
same values: interpreted before and after, and as native code of what was read back. The number of failures is the exit
status; operators that stay by their nature are listed.
"""

from __future__ import annotations

import argparse
import collections
import sys
from typing import Any

import numpy as np
from operator_agreement import close
from test_ops_registry import CASES, arrays_of, prepared

import supple
from supple.base import dtypes
from supple.build.block_builder import BlockBuilder
from supple.interp.graph import Interpreter
from supple.ir.expr import Call, Var, as_expr
from supple.ir.graph import ShapeExpr
from supple.ir.module import IRModule
from supple.ir.op import Op
from supple.ir.structural import assert_structural_equal
from supple.ir.types import TensorType, prim_type
from supple.ir.walk import pre_order
from supple.ops.declare import Sample, ShapeOf
from supple.relax.transform import LegalizeOps
from supple.script import from_source


def module(op: Op, sample: Sample, symbolic: bool) -> tuple[IRModule, list[Any]]:
    """The sample as a function of its tensors, with symbols for extents above 1, and its arrays."""
    sample = prepared(op, sample)
    params: list[Var] = []
    arrays: list[Any] = []
    symbols: dict[int, Var] = {}

    def dim(extent: int) -> Any:
        if not symbolic or sample.static or extent < 2 or any(isinstance(a, ShapeOf) for a in sample.args):
            return as_expr(extent)
        return symbols.setdefault(extent, Var(f"s{extent}", prim_type("int64")))

    def argument(value: Any) -> Any:
        if isinstance(value, ShapeOf):
            return list(value.values)
        if isinstance(value, list):
            return [argument(v) for v in value]
        if not isinstance(value, np.ndarray):
            return as_expr(value)
        shape = ShapeExpr(tuple(dim(e) for e in value.shape))
        params.append(Var(f"x{len(params)}", TensorType(shape, dtypes.from_numpy(value.dtype))))
        arrays.append(value)
        return params[-1]

    args = [argument(a) for a in arrays_of(sample)]
    bb = BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(op(*args, **sample.attrs)))
    return bb.finalize(), arrays


def left(mod: IRModule) -> set[str]:
    """The operators of a module that have a compute definition and yet were not lowered; views do no work."""
    calls = [n for f in mod.functions.values() for n in pre_order(f) if isinstance(n, Call) and isinstance(n.op, Op)]
    return {c.op.short_name for c in calls if (c.op.lower or "dynamic" in c.op.facts) and not c.op.facts.get("view")}  # type: ignore[union-attr]


def checked(op: Op, sample: Sample, symbolic: bool, *, native: bool = True) -> None:
    """Raises AssertionError or whatever goes wrong."""
    mod, arrays = module(op, sample, symbolic)
    legal = LegalizeOps()(mod)
    assert not left(legal)
    again = from_source(legal.script(show_meta=True))
    assert_structural_equal(legal, again)
    if not native:
        return
    runs = [Interpreter(mod).run("main", *arrays), Interpreter(legal).run("main", *arrays)]
    vm = supple.relax.VirtualMachine(supple.compile(again, results="numpy"), supple.cpu())
    runs.append(vm["main"](*arrays))
    expected, *others = [list(map(np.asarray, r if isinstance(r, (tuple, list)) else [r])) for r in runs]
    for found in others:
        assert len(found) == len(expected)
        for a, e in zip(found, expected, strict=True):
            assert a.shape == e.shape and a.dtype == e.dtype, (a.shape, e.shape)
            assert close(e, a, 10.0), f"{a} instead of {e}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    for op, sample in CASES:
        if options.only and op.short_name not in options.only:
            continue
        for symbolic in (False, True):
            counts["modules"] += 1
            try:
                with np.errstate(all="ignore"):
                    checked(op, sample, symbolic)
            except Exception as error:
                counts["failed"] += 1
                print(f"FAILED {op.short_name} {sample.attrs} symbolic={symbolic}: {type(error).__name__} {error}")
    print(dict(counts), flush=True)
    return min(counts["failed"], 100)


if __name__ == "__main__":
    sys.exit(main())
