"""Compare the parser with Apache TVM's on a corpus of programs: ``python tests/oracle/compare.py /path/to/python``.

The argument is a Python that has the apache-tvm wheel. Every program is parsed and printed there; Supple reads that
text and its own text of the same program, and the two must be structurally equal. The counts are printed; programs
that differ or that only one side takes are listed. Not part of the ordinary tests.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import language_programs
from corpus import PROGRAMS

from supple.base.errors import SuppleError
from supple.ir.structural import find_mismatch
from supple.script import from_source

KNOWN = {
    "R.make_closure": "the oracle says nothing of a closure's type",
    "R.invoke_pure_closure": "the same",
    "R.to_vdevice": "the oracle spells targets out as dicts",
    "T.target": "the oracle adds the machine's triple",
    "T.evaluate": "the oracle drops T.evaluate(0) and folds constants",
    "T.floordiv": "the oracle folds constants",
    "corpus 158": "the oracle folds i + 0",
}
"""Differences that are not faults: Supple keeps programs as written."""

_PRINT = """
import json, sys
import tvm
results = []
for text in json.load(sys.stdin):
    try:
        results.append(["ok", tvm.script.from_source(text, check_well_formed=False).script(show_meta=False)])
    except Exception as error:
        results.append(["error", str(error)[-400:]])
json.dump(results, sys.stdout)
"""


def corpus() -> dict[str, str]:
    """Programs by title, in the spelling that both sides take."""
    found = {item.names[0] + str(n): item.text for n, item in enumerate(language_programs.PROGRAMS)}
    found |= {f"corpus {n}": text for n, text in enumerate(PROGRAMS)}
    return {title: text.replace("@T.prim_func\n", "@T.prim_func(s_tir=True)\n") for title, text in found.items()}


def printed_by_the_oracle(python: str, texts: list[str]) -> list[tuple[str, str]]:
    """What the oracle makes of each text: ``("ok", text)`` or ``("error", message)``."""
    done = subprocess.run([python, "-c", _PRINT], input=json.dumps(texts), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"the oracle failed:\n{done.stderr[-2000:]}")
    return [(kind, text) for kind, text in json.loads(done.stdout)]


def compare(text: str, other: str) -> str | None:
    """Why Supple's reading of the oracle's text is not its reading of the original; None when they are equal."""
    own = from_source(text, check_well_formed=False)
    try:
        theirs = from_source(other, check_well_formed=False)
    except SuppleError as error:
        return f"the oracle's text is refused: {error}"
    found = find_mismatch(own, theirs)
    return None if found is None else f"differs at {found.path}: {found.reason} ({found.left} / {found.right})"


def main(python: str) -> int:
    programs = corpus()
    equal, refused, different = 0, [], []
    for (title, text), (kind, other) in zip(
        programs.items(), printed_by_the_oracle(python, list(programs.values())), strict=True
    ):
        if kind == "error":
            refused.append((title, other))
            continue
        problem = compare(text, other)
        if problem is None:
            equal += 1
        else:
            different.append((title, problem))
    known = [title for title, _ in different if title.rstrip("0123456789") in KNOWN or title in KNOWN]
    different = [(title, problem) for title, problem in different if title not in known]
    for title, problem in different:
        print(f"DIFFERENT {title}: {problem}")
    for title, problem in refused:
        print(f"only here {title}: {' '.join(problem.split())[-160:]}")
    print(
        f"{len(programs)} programs: {equal} equal, {len(different)} different, {len(known)} different by design, "
        f"{len(refused)} that the oracle refuses"
    )
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
