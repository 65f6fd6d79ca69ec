"""Every name of the language has a program that parses, prints, reads back and runs; the table is current."""

from __future__ import annotations

from pathlib import Path

import language_programs as programs
import numpy as np
import pytest

import supple
from supple.base.errors import NotSupportedError, SuppleError
from supple.interp.graph import Interpreter
from supple.ir.loop import PrimFunc
from supple.ir.module import IRModule
from supple.ir.op import OPS
from supple.ir.serialize import load_json, save_json
from supple.ir.structural import assert_structural_equal, structural_hash
from supple.runtime.packed import register_global_func
from supple.script import from_source
from supple.script import relax as R
from supple.script import tirx as T

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module", autouse=True)
def packed_functions():
    def add_one(x, out):
        np.asarray(out)[...] = np.asarray(x) + 1

    def increment(x):
        array = np.asarray(x)
        array += 1

    register_global_func("lang.add_one", add_one, override=True)
    register_global_func("lang.first", lambda x, *rest: x, override=True)
    register_global_func("lang.second", lambda machine, x: x, override=True)
    register_global_func("lang.increment", increment, override=True)
    register_global_func("lang.nothing", lambda *args: 0, override=True)


def title(item: programs.Program) -> str:
    return item.names[0]


@pytest.mark.parametrize("item", programs.PROGRAMS, ids=title)
def test_a_program_reads_back(item):
    parsed = from_source(item.text)
    text = parsed.script(show_meta=True)
    again = from_source(text)
    assert_structural_equal(parsed, again)
    assert again.script(show_meta=True) == text
    assert_structural_equal(load_json(save_json(parsed)), parsed)
    assert structural_hash(again) == structural_hash(parsed)
    for name in item.names:
        assert name.rpartition(".")[2] in item.text or name in ("R.cpu", "R.Object", "I.meta_var", "T.macro", "T.macro")


def run(parsed, args):
    """The interpreter's results, or what a loop function wrote."""
    mod = parsed if isinstance(parsed, IRModule) else IRModule({"main": parsed})
    result = Interpreter(mod).run("main", *args)
    return args if isinstance(mod["main"], PrimFunc) else result


def compiled(parsed, args):
    """The same by native code."""
    mod = parsed if isinstance(parsed, IRModule) else IRModule({"main": parsed})
    machine = supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())
    result = machine["main"](*args)
    return args if isinstance(mod["main"], PrimFunc) else result


def same(a, b) -> None:
    if a is None or b is None:
        assert a is b
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)
    else:
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("item", [p for p in programs.PROGRAMS if p.interp is True], ids=title)
def test_a_program_runs(item):
    expected = run(from_source(item.text), item.args())
    if item.native is True:
        same(compiled(from_source(item.text), item.args()), expected)


@pytest.mark.parametrize("item", [p for p in programs.PROGRAMS if p.native is not True], ids=title)
def test_what_native_code_does_not_know_is_refused_cleanly(item):
    """A gap of the table is an error with a text, or no gap any more; never a crash."""
    try:
        supple.compile(IRModule.from_expr(p) if not isinstance(p := from_source(item.text), IRModule) else p)
    except SuppleError as error:
        assert str(error)


def language_names() -> list[str]:
    lines = (ROOT / "tests" / "language_names.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


LATER = ("R.dist.", "R.ccl.", "R.grad.", "R.distributed.", "R.nn.", "R.image.", "R.vision.")


def test_every_name_of_the_surface_is_accounted_for():
    shown = {name for item in programs.PROGRAMS for name in item.names}
    known = shown | set(programs.REFUSED) | set(programs.ELSEWHERE)
    forms = {op.removeprefix("relax.") for op in OPS if op.startswith("relax.")}
    missing = []
    for name in language_names():
        if name in known or name.startswith(LATER):
            continue
        if name.startswith("R.") and (name[2:] in forms or name[2:] in OPERATORS):
            continue  # an operator has tests of its own, or is not there yet
        missing.append(name)
    assert missing == []


OPERATORS = frozenset((
    "layout_transform", "quantize", "dequantize", "dynamic_strided_slice", "slice_scatter", "index_put", "unique",
    "nonzero", "einsum", "bucketize", "multinomial_from_uniform", "collapse_sum_to", "collapse_sum_like", "meshgrid",
    "reverse_sequence", "hamming_window", "outer", "linear", "scatter_elements", "scatter_nd", "gather_elements",
    "gather_nd", "topk", "argsort", "sort", "median", "cumsum", "cumprod", "one_hot",
))  # fmt: skip
"""Operators of the surface that may come with the operators' own work."""


@pytest.mark.parametrize("name", programs.REFUSED)
def test_a_refused_name_says_so(name):
    space, _, attribute = name.partition(".")
    base = attribute.partition(".")[0]
    with pytest.raises((NotSupportedError, AttributeError)) as caught:
        getattr(R if space == "R" else T, base)
    assert base in str(caught.value)


def test_the_documented_table_is_current():
    assert (ROOT / "docs" / "language.md").read_text() == programs.table(), (
        "run: python tests/language_programs.py docs/language.md"
    )
