"""Compare printed text with Apache TVM's: ``python tests/oracle/text.py /path/to/python [-v]``.

The argument is a Python that has the apache-tvm wheel. Every program of the corpus is parsed and printed on both sides,
here in Relax's layout; the expressions of `fragments` are evaluated on both sides, here under the alias. The counts of
identical texts are printed and the others listed (with ``-v`` in full; texts that differ in the names of temporary
values alone, which are the parser's, are listed apart). Texts that do not read back here to an equal program, and those
that the oracle does not read, are listed as well. Not part of the ordinary tests.
"""

from __future__ import annotations

import difflib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import calls
import compare
import fragments
from forked import IN_CHILDREN

from supple.base.errors import SuppleError
from supple.ir.print_style import set_default_style
from supple.ir.structural import find_mismatch
from supple.script import from_source

_EVALUATE = (
    IN_CHILDREN
    + """
setting, texts, target = json.load(sys.stdin)
env = {}
exec(setting, env)

def result_of(text):
    try:
        value = eval(text, env)
        return ["ok", value.script() if hasattr(value, "script") else str(value)]
    except BaseException as error:
        return ["error", f"{type(error).__name__}: {error}"[-300:]]

with open(target, "w") as file:
    json.dump(in_children(texts, result_of, ["error", "the process died"], alone=True), file)
"""
)


def evaluated(python: str, setting: str, texts: list[str]) -> list[tuple[str, str]]:
    """The printed text of every expression, in that Python."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "results.json"
        order = json.dumps([setting, texts, str(target)])
        done = subprocess.run([python, "-c", _EVALUATE], input=order, capture_output=True, text=True, check=False)
        if not target.exists():
            raise SystemExit(f"{python} failed:\n{done.stderr[-2000:]}")
        return [(kind, text) for kind, text in json.loads(target.read_text())]


def without_names(text: str) -> str:
    """A text with the names of temporary values numbered in their order, so that only the layout is compared."""
    names: dict[str, str] = {}
    words = []
    for word in compare_words(text):
        if word.rstrip("0123456789_") in ("gv", "lv") or word.endswith(("_then", "_else")):
            word = names.setdefault(word, f"value{len(names)}")
        words.append(word)
    return "".join(words)


def compare_words(text: str) -> list[str]:
    """Identifiers and what is between them."""
    words, current = [], ""
    for character in text:
        if current and (character.isalnum() or character == "_") != (current[-1].isalnum() or current[-1] == "_"):
            words.append(current)
            current = ""
        current += character
    return [*words, current]


def report(title: str, pairs: list[tuple[str, str, str]], verbose: bool) -> None:
    """Print how many pairs of texts are equal, and the others."""
    equal = [p for p in pairs if p[1] == p[2]]
    names = [p for p in pairs if p[1] != p[2] and without_names(p[1]) == without_names(p[2])]
    other = [p for p in pairs if without_names(p[1]) != without_names(p[2])]
    for name, ours, theirs in other:
        print(f"--- {name}")
        lines = difflib.unified_diff(theirs.split("\n"), ours.split("\n"), "oracle", "supple", lineterm="", n=0)
        shown = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
        print("\n".join(shown if verbose else shown[:6]))
    if names:
        print(f"names of temporary values only: {', '.join(p[0] for p in names)}")
    print(f"{title}: {len(equal)} of {len(pairs)} identical, {len(names)} but for names, {len(other)} otherwise")


def programs(python: str, verbose: bool) -> None:
    """The corpus: both parse, both print."""
    corpus = compare.corpus() | {f"layout {n}": text for n, text in enumerate(fragments.PROGRAMS)}
    theirs = compare.printed_by_the_oracle(python, list(corpus.values()))
    pairs: list[tuple[str, str, str]] = []
    texts: list[str] = []
    for (title, text), (kind, other) in zip(corpus.items(), theirs, strict=True):
        try:
            own = from_source(text, check_well_formed=False)
        except SuppleError as error:
            print(f"REFUSED {title}: {str(error).splitlines()[0]}")
            texts.append("")
            continue
        ours = own.script(style="relax")
        texts.append(ours)
        try:
            found = find_mismatch(own, from_source(ours, check_well_formed=False))
            if found is not None:
                print(f"NOT READ BACK {title}: differs at {found.path}: {found.reason}")
        except SuppleError as error:
            if "metadata" not in str(error):
                print(f"NOT READ BACK {title}: {error}")
        if kind == "ok":
            pairs.append((title, ours, other))
        whole = from_source(own.script(style="relax", show_meta=True), check_well_formed=False)
        if find_mismatch(own, whole) is not None:
            print(f"NOT READ BACK {title} with the data of its constants")
    read = compare.printed_by_the_oracle(python, texts)
    for (title, _), (kind, message), (known, _) in zip(corpus.items(), read, theirs, strict=True):
        if kind == "error" and known == "ok" and "metadata" not in message:
            print(f"NOT READ by the oracle {title}: {' '.join(message.split())[-200:]}")
    print(f"the oracle reads {sum(kind == 'ok' for kind, _ in read)} of {len(texts)} of our texts")
    report("programs", pairs, verbose)


def parts(python: str, title: str, prelude: str, texts: list[str], verbose: bool) -> None:
    """Expressions: both build, both print."""
    theirs = evaluated(python, prelude, texts)
    alias = "import supple.compat\nsupple.compat.install_as_tvm()\n"
    ours = evaluated(sys.executable, alias + prelude, texts)
    pairs = []
    for text, (kind, other), (own_kind, own) in zip(texts, theirs, ours, strict=True):
        if kind == "ok":
            pairs.append((text, own if own_kind == "ok" else f"refused: {own}", other))
        else:
            print(f"only here {text}: {' '.join(other.split())[-120:]}")
    report(title, pairs, verbose)


def main(arguments: list[str]) -> int:
    python, verbose = arguments[0], "-v" in arguments[1:]
    set_default_style("relax")
    parts(python, "fragments", fragments.PRELUDE, list(fragments.FRAGMENTS), verbose)
    parts(python, "calls", calls.CALLS_PRELUDE, list(calls.CALLS), verbose)
    programs(python, verbose)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
