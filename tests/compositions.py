"""Random compositions of operators with symbolic shapes: interpreter, native code and numpy agree.

    python tests/compositions.py [--seed N] [--programs N] [--seconds N] [--only N ...]

A program is a function of tensors of several dtypes with dimensions among ``n``, ``m``, expressions of them and
numbers. Its steps (`composition_families`, `composition_sums`) state what their values are by numpy. The program runs
for several sizes (0 and 1 among them) by the interpreter, after LegalizeOps, and as native code. Disagreements are
printed with the program; their number is the exit status.
"""

from __future__ import annotations

import argparse
import collections
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import composition_families
import composition_sums
import numpy as np
from composition_program import SIZES, Env, Program, TooLargeError, Value, is_float, wide

import supple
from supple.base.errors import ExecutionError, SuppleError
from supple.interp.graph import Interpreter
from supple.ir.structural import assert_structural_equal
from supple.script import from_source


def outcome(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The results as a list of arrays, or the error that a program may raise while it runs."""
    try:
        with np.errstate(all="ignore"):
            found = function(*(a.copy() for a in args))
    except (ExecutionError, supple.error.ArgumentError) as error:
        return error
    return [np.asarray(f) for f in (found if isinstance(found, (tuple, list)) else [found])]


def wrong(value: Value, env: Env, actual: Any) -> str | None:
    """What is wrong with a result, or None."""
    wanted = value.array(env)
    if actual.shape != wanted.shape or actual.dtype != wanted.dtype:
        return f"{actual.dtype}{actual.shape}, by numpy {wanted.dtype}{wanted.shape}"
    if value.exact or not is_float(value):
        fits = np.array_equal(wide(actual), wide(wanted), equal_nan=is_float(value))
    else:
        seen = [wide(env.known[id(a)]) for a in value.ancestors if id(a) in env.known and is_float(a)]
        scale = max([1.0, *(float(np.max(np.abs(s[np.isfinite(s)]), initial=0.0)) for s in seen)])
        terms = max([1, *(s.size for s in seen)])  # sums one after another err in proportion to how many there are
        rtol = max(64, terms / 8) * value.eps
        with np.errstate(all="ignore"):
            fits = np.allclose(actual.astype("f8"), wanted.astype("f8"), rtol=rtol, atol=rtol * scale, equal_nan=True)
    return None if fits else f"{_short(actual)}\n    by numpy {_short(wanted)}"


def _short(a: Any) -> str:
    return np.array2string(wide(a), threshold=40).replace("\n", "")[:600]


def check(seed: int, counts: Any) -> str | None:
    """Build and run one program: what is wrong with it, or None."""
    program = Program(seed)
    mod = program.build(program.rng.randint(3, 14), {**composition_families.FAMILIES, **composition_sums.FAMILIES})
    text = mod.script(show_meta=True)
    if seed % 4 == 0:
        again = from_source(text)
        assert_structural_equal(mod, again)
    legal = supple.relax.transform.LegalizeOps()(mod)
    vm = supple.relax.VirtualMachine(supple.compile(mod, results="numpy"), supple.cpu())
    ways = {
        "interpreter": lambda *a: Interpreter(mod).run("main", *a),
        "legalized": lambda *a: Interpreter(legal).run("main", *a),
        "native code": vm["main"],
    }
    counts["programs"] += 1
    counts.update({f"family {name}": times for name, times in program.used.items()})
    for _ in range(3):
        sizes = {s: program.rng.choice(SIZES) for s in program.symbols}
        if program.rng.random() < 0.2:
            sizes[program.symbols[1]] = sizes[program.symbols[0]]
        try:
            args = program.arrays(sizes)
            env = Env(sizes, args)
            expected: Any = [v.array(env) for v in program.results]
        except TooLargeError:
            continue
        except (ValueError, IndexError, ZeroDivisionError) as error:  # numpy refuses
            expected = error
        counts["calls"] += 1
        for way, function in ways.items():
            actual = outcome(function, args)
            if way == "native code" and isinstance(expected, IndexError) and not isinstance(actual, Exception):
                counts["unread"] += 1  # fused code computes no element that nothing reads, so none fails there
                continue
            problem = _compared(program, env, expected, actual)
            if problem is not None:
                shown = ", ".join(f"{s.name}={v}" for s, v in sizes.items())
                return f"{way}, {shown}: {problem}\n{text}"
    return None


def _compared(program: Program, env: Env, expected: Any, actual: Any) -> str | None:
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        if isinstance(expected, Exception) and isinstance(actual, Exception):
            return None
        found = str(actual).splitlines()[0] if isinstance(actual, Exception) else "a result"
        return f"{found}; by numpy {expected if isinstance(expected, Exception) else 'a result'}"
    if len(actual) != len(program.results):
        return f"{len(actual)} results instead of {len(program.results)}"
    for place, (value, array) in enumerate(zip(program.results, actual, strict=True)):
        problem = wrong(value, env, array)
        if problem is not None:
            return f"result {place}: {problem}"
    return None


def one(seed: int, counts: Any) -> str | None:
    """`check`; any exception is a failure too."""
    try:
        return check(seed, counts)
    except Exception as error:
        what = str(error) if isinstance(error, SuppleError) else traceback.format_exc(limit=-6)
        return f"{type(error).__name__}: {what}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--only", type=int, nargs="*")
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    start = time.monotonic()
    for seed in options.only or range(options.seed, options.seed + options.programs):
        problem = one(seed, counts)
        if problem is not None:
            counts["failed"] += 1
            print(f"PROGRAM {seed}: {problem}\n", flush=True)
        if time.monotonic() - start > options.seconds:
            break
    print(dict(sorted(counts.items())))
    return min(counts["failed"], 100)


if __name__ == "__main__":
    sys.exit(main())
