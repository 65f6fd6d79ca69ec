"""Broken programs are refused with a diagnostic, never with another exception; what is accepted reads back.

``SECONDS=600 python tests/test_language_fuzz.py SEED`` goes on for longer.
"""

from __future__ import annotations

import os
import random
import re
import sys
import time
import warnings

import language_programs
import pytest

from supple.base.errors import InternalError, SuppleError
from supple.ir.structural import assert_structural_equal
from supple.script import from_source

TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
TEXTS = [item.text for item in language_programs.PROGRAMS]
TOKENS = [token for text in TEXTS for token in TOKEN.findall(text) if not token.isspace()]


def broken(rng: random.Random) -> str:
    """A program with one to three tokens removed, replaced, swapped or added."""
    tokens = TOKEN.findall(rng.choice(TEXTS))
    for _ in range(rng.randint(1, 3)):
        at, kind = rng.randrange(len(tokens)), rng.random()
        if kind < 0.3:
            tokens[at] = ""
        elif kind < 0.7:
            tokens[at] = rng.choice(TOKENS)
        elif kind < 0.85:
            other = rng.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        else:
            tokens.insert(at, rng.choice(TOKENS))
    return "".join(tokens)


def check(text: str) -> None:
    """Raise for anything but a refusal or a program that reads back."""
    try:
        program = from_source(text)
    except InternalError:
        raise
    except SuppleError:
        return
    assert_structural_equal(from_source(program.script(show_meta=True)), program)


@pytest.mark.parametrize("seed", range(4))
def test_broken_programs(seed):
    rng = random.Random(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's own, about the text
        for _ in range(400):
            check(broken(rng))


FOUND = {
    "a form as an attribute of an operator": """
@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    a = R.hint_on_device(x, R.match_cast("cpu", 0))
    return R.add(a, y)
""",
    "a tensor's operator on scalars": """
@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    T.Assert(A[1] @ T.float32(0), "A must be positive")
    for i in range(16):
        B[i] = A[i]
""",
    "a module as an attribute of the module": """
@I.ir_module
class Module:
    I.module_attrs({"a": T, "b": "text"})

    @R.function
    def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
        return x
""",
    "an external function with a name that the text needs": """
@I.ir_module
class Module:
    I = R.ExternFunc("lang.first")

    @R.function(pure=False)
    def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
        a = R.call_packed("lang.first", x, y, ty_args=R.Tensor((4, 4), "float32"))
        return a
""",
    "a module as an attribute of a function": """
@R.function
def main(x: R.Tensor((4, 4), "float32")):
    R.func_attr({"a": R})
    return x
""",
}


@pytest.mark.parametrize("title", FOUND)
def test_what_the_long_run_found_is_refused(title):
    with pytest.raises(SuppleError):
        from_source(FOUND[title])


if __name__ == "__main__":
    generator, end = random.Random(int(sys.argv[1])), time.time() + float(os.environ.get("SECONDS", "60"))
    count = 0
    while time.time() < end:
        sample = broken(generator)
        try:
            check(sample)
        except Exception:
            print(sample)
            raise
        count += 1
    print(f"{count} programs")
