"""Comparing stages: right programs agree, and a pass that breaks one is found."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from supple.ir.expr import BufferLoad, FloatImm, Max
from supple.ir.module import IRModule
from supple.ir.walk import transform
from supple.script import from_source
from supple.tools import compare as module
from supple.tools.compare import compare

EXAMPLE = (Path(__file__).parent.parent / "examples" / "mlp.py").read_text()
HEAD = "from supple.script import ir as I, relax as R, tirx as T\n\n"


def small(start: str, end: str) -> Any:
    """A program of the example, 13 inputs and 17 hidden units: what is scheduled is interpreted loop by loop."""
    text = EXAMPLE[EXAMPLE.index(start) :]
    text = text[: text.index(end)] if end else text
    return from_source(HEAD + text.replace("784", "13").replace("256", "17").replace("128", "17"))


def arguments() -> list[Any]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype("float32") for s in ((3, 13), (13, 17), (17,), (17, 10), (10,))]


def test_both_forms_of_the_page_agree_at_every_stage() -> None:
    for program, entry in ((small("@R.function", "@I.ir_module"), "relax_mlp"), (small("@I.ir_module", ""), "main")):
        report = compare(program, entry, *arguments())
        assert report.agrees and report.culprit is None, str(report)
        assert report.stages[-1].name == "native" and "agrees" in str(report)


def test_a_pass_that_changes_a_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_relu(mod: IRModule, _: Any) -> IRModule:
        def rewrite(node: Any) -> Any:
            is_relu = isinstance(node, Max) and isinstance(node.a, BufferLoad) and isinstance(node.b, FloatImm)
            return node.a if is_relu else None

        return transform(mod, rewrite)  # type: ignore[return-value]

    at = next(n for n, step in enumerate(module.PIPELINE) if step.name == "legalize") + 1
    broken = dataclasses.replace(module.PIPELINE[0], name="broken", run=without_relu)
    monkeypatch.setattr(module, "PIPELINE", (*module.PIPELINE[:at], broken, *module.PIPELINE[at:]))
    report = compare(small("@I.ir_module", ""), "main", *arguments())
    assert report.culprit is not None and report.culprit.name == "broken"
