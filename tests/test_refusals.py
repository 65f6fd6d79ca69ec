"""Wrong copies of the page's module: each is refused at its line, with the cause, in a plain ``python script.py``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = (Path(__file__).parent.parent / "examples" / "mlp.py").read_text()

# name: (text to replace, replacement, marker of the line that must be named, what the message must say)
MUTATIONS: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "wrong inner dimension": (
        "        lv2 = R.matmul(lv1, w1) + b1",
        "        lv2 = R.matmul(lv1, w0) + b1",
        "lv2 = R.matmul(lv1, w0)",
        ("inner dimensions differ", "expected: x2 with 128 rows", "actual:   784 rows"),
    ),
    "undefined variable": (
        "            lv1 = R.call_tir(cls.relu, (lv,), out_ty",
        "            lv1 = R.call_tir(cls.relu, (lvv,), out_ty",
        "(lvv,)",
        ("lvv", "did you mean"),
    ),
    "wrong out_ty": (
        "lv1 = R.call_tir(cls.relu, (lv,), out_ty=R.Tensor((n, 256)",
        "lv1 = R.call_tir(cls.relu, (lv,), out_ty=R.Tensor((n, 255)",
        "R.Tensor((n, 255)",
        ("relu", "256", "255"),
    ),
    "too few arguments": (
        "R.call_tir(cls.linear, (x, w0, b0)",
        "R.call_tir(cls.linear, (x, w0)",
        "(x, w0)",
        ("linear", "4 (X, W, B, Z)", "3"),
    ),
    "wrong dtype": (
        '        b0: R.Tensor((256,), dtype="float32"),',
        '        b0: R.Tensor((256,), dtype="float64"),',
        "lv = R.call_tir(cls.linear, (x, w0, b0)",
        ("linear", "float32", "float64"),
    ),
    "missing R.output": (
        "            R.output(lv2)\n        return lv2",
        "        return lv2",
        "return lv2",
        ("R.output", "lv2"),
    ),
    "wrong return type": (
        ') -> R.Tensor(("n", 10), dtype="float32"):\n        cls',
        ') -> R.Tensor(("n", 11), dtype="float32"):\n        cls',
        "",
        ("return", "11", "10"),
    ),
    "impure call in dataflow": (
        "            R.output(lv2)",
        '            lv3 = R.call_packed("log", lv2)\n            R.output(lv2)',
        'R.call_packed("log", lv2)',
        ("log", "dataflow"),
    ),
    "dtype mix in an operator": (
        "        lv0 = R.matmul(data, w0) + b0",
        '        lv0 = R.matmul(data, w0) + R.const([1], "int32")',
        "lv0 = R.matmul(data, w0)",
        ("float32", "int32", "astype"),
    ),
    "unknown operator": (
        "lv1 = R.nn.relu(lv0)",
        "lv1 = R.nn.rleu(lv0)",
        "R.nn.rleu",
        ("rleu", "did you mean"),
    ),
    "an undefined buffer": (
        "Z[v_i, v_j] = Y[v_i, v_j] + B[v_j]",
        "Z[v_i, v_j] = Q[v_i, v_j] + B[v_j]",
        "Q[v_i, v_j]",
        ("Q",),
    ),
    "too many indices": (
        "Z[v_i, v_j] = Y[v_i, v_j] + B[v_j]",
        "Z[v_i, v_j] = Y[v_i, v_j, 0] + B[v_j]",
        "Y[v_i, v_j, 0]",
        ("Y", "2", "3"),
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_wrong_module_is_refused_at_its_line(name: str, tmp_path: Path) -> None:
    old, new, marker, words = MUTATIONS[name]
    assert old in SOURCE
    text = SOURCE.replace(old, new, 1)
    script = tmp_path / "model.py"
    script.write_text(text)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, env={**os.environ, "SUPPLE_CHECK": "1"}
    )
    assert done.returncode != 0, "the module was accepted"
    error = done.stderr
    if marker:
        line = max(n for n, t in enumerate(text.splitlines(), 1) if marker in t)
        assert f"model.py:{line}:" in error, error
    assert "^" in error, error
    for word in words:
        assert word in error, error
