"""Compare LegalizeOps with Apache TVM: ``python tests/oracle/operator_legal.py /path/to/python [operator ...]``.

The argument is a Python that has the apache-tvm wheel. The module of every operator sample, with numbers and with
symbols, is legalised on both sides; compared are the calls that stand in ``main`` afterwards: their operators, the
names of the loop functions, arguments, result types and ``tir_vars``. What differs is listed by operator, with counts.
Values are compared by ``tests/operator_legalized.py``. Not part of the ordinary tests.
"""

from __future__ import annotations

import collections
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from forked import IN_CHILDREN, evaluated
from operator_legalized import module
from test_ops_registry import CASES

LEGALIZE = (
    IN_CHILDREN
    + """
import tvm
from tvm import relax
from tvm.script import from_source

def shown(value):
    return [str(f) for f in value.fields] if isinstance(value, relax.Tuple) else str(value)

def calls_of(func):
    found = []
    for block in func.body.blocks:
        for binding in block.bindings:
            call = binding.value
            if not isinstance(call, relax.Call):
                continue
            name = getattr(call.op, "name", None)
            if name != "relax.call_tir":
                found.append([name if name else "a function"])
                continue
            sizes = str(call.args[2]) if len(call.args) > 2 else None
            types = [str(t) for t in call.ty_args]
            found.append([name, call.args[0].name_hint, shown(call.args[1]), types, sizes])
    return found

def answer(text):
    try:
        return calls_of(relax.transform.LegalizeOps()(from_source(text))["main"])
    except BaseException as error:
        return "refused: %s: %s" % (type(error).__name__, str(error).strip()[-150:])

done = in_children(json.load(sys.stdin), answer, "died")
with open(sys.argv[1], "w") as file:
    json.dump(done, file)
"""
)


def plain(calls: Any) -> str:
    """Calls as text, without dtypes of literals."""
    return re.sub(r"T\.int64\((-?\d+)\)", r"\1", str(calls)).replace("T.Tuple(", "R.Tuple(")


def kind_of(theirs: Any, ours: Any) -> str:
    """How two results differ."""
    if isinstance(theirs, str):
        return "refused there" if isinstance(ours, list) else "refused by both"
    if isinstance(ours, str):
        return "refused here"
    if plain(theirs) == plain(ours):
        return "the same"
    if [c[0] for c in theirs] != [c[0] for c in ours]:
        return "other forms"
    return "other names" if [c[1:2] for c in theirs] != [c[1:2] for c in ours] else "other operands"


def main(python: str, names: list[str]) -> None:
    rows = []
    for op, sample in CASES:
        if not names or op.short_name in names:
            for symbolic in (False, True) if not sample.static else (False,):
                text = module(op, sample, symbolic)[0].script(style="relax", show_meta=True)
                rows.append((op.short_name, symbolic, text))
    texts = [text for _, _, text in rows]
    theirs = evaluated([python], LEGALIZE, texts)
    ours = evaluated([sys.executable, "-m", "supple", "run", "--as-tvm"], LEGALIZE, texts)
    counts: collections.Counter[str] = collections.Counter()
    listed = set()
    for (name, symbolic, _), a, b in zip(rows, theirs, ours, strict=True):
        kind = kind_of(a, b)
        counts[kind] += 1
        if kind not in ("the same", "refused by both") and (name, kind) not in listed:
            listed.add((name, kind))
            print(f"{kind} | {name} symbolic={symbolic}\n    theirs {plain(a)}\n    ours   {plain(b)}")
    print(dict(counts))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
