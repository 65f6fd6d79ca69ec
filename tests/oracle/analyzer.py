"""Compare the analyzer with Apache TVM's on random expressions: ``python tests/oracle/analyzer.py ORACLE_PYTHON``.

The argument is a Python that has the apache-tvm wheel. Options: ``--count`` cases (default 4000), ``--seed``. Each case
is an expression over three variables with random ranges (and sometimes a condition in force). Both analyzers simplify
it, bound it, find its remainders, and try to prove a claim about it (without the oracle's SMT extension, which is
consulted above the default strength only). The command prints how often they are equally strong, and examples of where
this one is weaker, and checks that what this one says holds for random values. Not part of the ordinary tests.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from sym_tools import Case, make_case, run_case, values_of

_ORACLE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import tvm
from tvm import sym, tirx
from tvm.ir import Range
from sym_tools import build, KINDS

NODES = {"+": tirx.Add, "-": tirx.Sub, "*": tirx.Mul, "//": tirx.FloorDiv, "%": tirx.FloorMod, "div": tirx.Div,
         "mod": tirx.Mod, "min": tirx.Min, "max": tirx.Max, "<": tirx.LT, "<=": tirx.LE, "==": tirx.EQ, "!=": tirx.NE,
         ">": tirx.GT, ">=": tirx.GE, "and": tirx.And, "or": tirx.Or, "not": tirx.Not, "select": tirx.Select}

def size(e):
    parts = []
    for name in ("a", "b", "condition", "true_value", "false_value", "value"):
        part = getattr(e, name, None)
        if part is not None and hasattr(part, "ty"):
            parts.append(part)
    return 1 + sum(size(p) for p in parts)

def dump(e):
    for name, node in NODES.items():
        if type(e) is node:
            fields = [f for f in ("a", "b", "condition", "true_value", "false_value") if hasattr(e, f)]
            return [name, *(dump(getattr(e, f)) for f in fields)]
    if isinstance(e, tirx.Var):
        return e.name
    if isinstance(e, tirx.IntImm):
        return int(e.value)
    return str(e)

results = []
for case in json.load(sys.stdin):
    variables = {n: tirx.Var(n, case["dtype"]) for n in "xyz"}
    lit = lambda v: tirx.IntImm(case["dtype"], v)
    a = sym.Analyzer()
    for n, (low, extent) in case["ranges"].items():
        a.bind(variables[n], Range.from_min_extent(lit(low), lit(extent)))
    e = build(case["expr"], variables, lit, NODES)
    goal = build(case["goal"], variables, lit, NODES)
    scope = a.constraint_scope(build(case["given"], variables, lit, NODES)) if case["given"] else None
    try:
        if scope:
            scope.__enter__()
        b, m = a.const_int_bound(e), a.modular_set(e)
        s, r, c = a.simplify(e), a.rewrite_simplify(e), a.canonical_simplify(e)
        results.append({"bound": [b.min_value, b.max_value], "modular": [m.coeff, m.base],
            "proved": bool(a.can_prove(goal)), "simplify": [size(s), dump(s)],
            "rewrite": [size(r), dump(r)], "canonical": [size(c), dump(c)]})
        if scope:
            scope.__exit__(None, None, None)
    except Exception as error:
        results.append({"error": str(error)[-200:]})
json.dump(results, sys.stdout)
"""


def asked_of_the_oracle(python: str, cases: list[Case]) -> list[dict[str, Any]]:
    """What the oracle answers on each case."""
    done = subprocess.run(
        [python, "-c", _ORACLE, str(Path(__file__).resolve().parents[1])],
        input=json.dumps([case.as_json() for case in cases]), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(f"the oracle failed:\n{done.stderr[-2000:]}")
    return list(json.loads(done.stdout))


def strength(ours: dict[str, Any], theirs: dict[str, Any]) -> dict[str, int]:
    """For each question 1 where this analyzer is stronger, -1 where it is weaker, 0 where they are equal."""
    (low, high), (other_low, other_high) = ours["bound"], theirs["bound"]
    inside, outside = low >= other_low and high <= other_high, low <= other_low and high >= other_high
    found = {"bound": 0 if inside and outside else 1 if inside else -1}
    (coeff, _), (other, _) = ours["modular"], theirs["modular"]
    found["modular"] = 0 if coeff == other else 1 if coeff == 0 or (other and coeff % other == 0) else -1
    found["proved"] = int(ours["proved"]) - int(theirs["proved"])
    for name in ("simplify", "rewrite", "canonical"):
        difference = theirs[name][0] - ours[name][0]
        found[name] = (difference > 0) - (difference < 0)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python")
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--examples", type=int, default=4)
    options = parser.parse_args()
    generator = random.Random(options.seed)
    cases = [make_case(generator) for _ in range(options.count)]
    start = time.perf_counter()
    theirs = asked_of_the_oracle(options.python, cases)
    middle = time.perf_counter()
    counts: dict[str, Counter[int]] = {}
    weaker: dict[str, list[str]] = {}
    apart: Counter[str] = Counter()
    wrong = refused = checked = same_text = 0
    for case, other in zip(cases, theirs, strict=True):
        ours = run_case(case)
        for values in values_of(case, generator, 12):
            checked += 1
            problem = case.contradiction(ours, values)
            if problem is not None:
                wrong += 1
                print(f"WRONG {case}: {problem} at {values}")
        if "error" in other:
            refused += 1
            continue
        if (reason := case.set_apart(random.Random(1))) is not None:
            apart[reason] += 1
            continue
        same_text += ours["simplify"][1] == other["simplify"][1]
        for name, verdict in strength(ours, other).items():
            counts.setdefault(name, Counter())[verdict] += 1
            if verdict < 0:
                weaker.setdefault(name, []).append(f"{case}\n      here {ours[name]}\n      there {other[name]}")
    print(f"{len(cases)} cases, seed {options.seed}; the oracle refuses {refused}")
    print(f"{checked} values checked, {wrong} wrong; {same_text} simplified alike to the letter")
    print(f"oracle {middle - start:.1f} s, here {time.perf_counter() - middle:.1f} s")
    print("not compared: " + ", ".join(f"{count} where {reason}" for reason, count in apart.items()))
    for name, count in counts.items():
        print(f"{name:10} equal {count[0]:6}  stronger {count[1]:6}  weaker {count[-1]:6}")
        for example in weaker.get(name, [])[: options.examples]:
            print(f"    {example}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
