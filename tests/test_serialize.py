"""Saving and loading, pickling and copying: structurally equal, exact to the bit, at any depth."""

from __future__ import annotations

import copy
import json
import pickle

import mlp
import numpy as np
import pytest

from supple.ir.expr import Var, const
from supple.ir.graph import constant
from supple.ir.serialize import FormatError, load_json, save_json
from supple.ir.structural import assert_structural_equal
from supple.ir.types import prim_type
from supple.ir.walk import post_order


def test_modules_survive_json_pickle_and_deepcopy() -> None:
    for program in (mlp.Module, mlp.relax_mlp, mlp.Module["linear"]):
        for again in (load_json(save_json(program)), pickle.loads(pickle.dumps(program)), copy.deepcopy(program)):
            assert again is not program
            assert_structural_equal(program, again)
        assert save_json(load_json(save_json(program))) == save_json(program)


def test_spans_survive() -> None:
    again = load_json(save_json(mlp.relax_mlp))
    assert again.params[0].span == mlp.relax_mlp.params[0].span is not None


def test_constants_and_floats_are_exact() -> None:
    special = np.array([0.1, -0.0, np.nan, np.inf, 1e-45, np.float32(3.3)], "float32")
    again = load_json(save_json(constant(special)))
    assert again.data.tobytes() == special.tobytes() and again.data.dtype == special.dtype
    for dtype in ("float16", "float64", "int8", "uint64", "bool", "int64"):
        data = np.array([0, 1, 1], dtype)
        assert load_json(save_json(constant(data))).data.dtype == data.dtype
    for value in (0.1, -0.0, float("inf"), 1e-320):
        assert load_json(save_json(const(value, "float64"))).value.hex() == value.hex()
    assert np.isnan(load_json(save_json(const(float("nan"), "float32"))).value)


def test_sharing_and_depth() -> None:
    n = Var("n", prim_type("int64"))
    e = n + n
    for _ in range(5000):
        e = e + 1
    again = load_json(save_json(e))
    variables = [node for node in post_order(again) if isinstance(node, Var)]
    assert len(variables) == 1 and variables[0].name == "n"


def test_other_text_is_refused() -> None:
    good = json.loads(save_json(mlp.Module))
    for text in (
        "",
        "{}",
        "[1]",
        '{"supple_json": 99, "nodes": [], "root": null}',
        '{"supple_json": 1, "nodes": [["X", {}]], "root": 0}',
    ):
        with pytest.raises(FormatError):
            load_json(text)
    good["nodes"][3][1] = {"nonsense": 1}
    with pytest.raises(FormatError, match="damaged"):
        load_json(json.dumps(good))
