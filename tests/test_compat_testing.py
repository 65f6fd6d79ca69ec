"""``tvm.testing``: what test-suites written for TVM import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from supple import tirx
from supple.base import dtypes
from supple.compat import testing, testing_env
from supple.script import ir as I

PROGRAM = """
import tvm
import tvm.testing
from tvm.testing import env
import numpy as np

size = tvm.testing.parameter(1, 10)
named = tvm.testing.parameter(by_dict={"small": 2, "large": 3})
made = []

@tvm.testing.fixture
def doubled(size):
    return 2 * size

@tvm.testing.fixture(cache_return_value=True)
def once():
    made.append(1)
    return len(made)

def test_sizes(size, doubled, named, once):
    assert doubled == 2 * size and named in (2, 3) and once == 1

def test_devices():
    assert env.has_llvm() and not env.has_cuda() and tvm.testing.device_enabled("llvm -mcpu=haswell")

@tvm.testing.slow
def test_slow():
    tvm.testing.assert_allclose(np.ones(2), np.ones(2))

if __name__ == "__main__":
    tvm.testing.main()
"""


def test_parameters_fixtures_and_main(tmp_path: Path) -> None:
    script = tmp_path / "test_program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "supple", "run", "--as-tvm", str(script), "-q", "-p", "no:cacheprovider"],
        capture_output=True,
        text=True,
        env=dict(os.environ),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout


def test_differences_are_refused() -> None:
    testing.assert_allclose([1.0], np.ones(1))
    with pytest.raises(AssertionError):
        testing.assert_allclose([1.0], [1.1])
    with pytest.raises(AssertionError):
        testing.assert_allclose(np.ones((1, 2)), np.ones(2))


def test_conditions_over_ranges() -> None:
    x, y = tirx.Var("x", "int32"), tirx.Var("y", "int32")
    ranges = {x: I.Range(0, 10), y: I.Range(0, 10)}
    testing.check_bool_expr_is_true(x > 2 * y, ranges, 2 * x > 4 * y)
    with pytest.raises(AssertionError, match="x = 0, y = 0"):
        testing.check_bool_expr_is_true(x > 2 * y, ranges)
    with pytest.raises(KeyError, match="y"):
        testing.check_bool_expr_is_true(x > 2 * y, {x: I.Range(0, 3)})
    testing.assert_prim_expr_equal(x + 1, x + 1)
    with pytest.raises((ValueError, AssertionError)):
        testing.assert_prim_expr_equal(x + 1, y + 1)


def test_gradients() -> None:
    x = np.array([1.0, 2.0, -0.5])
    testing.check_numerical_grads(lambda a: float((a**3).sum()), [x], [3 * x**2])
    testing.check_numerical_grads(lambda a: float((a**3).sum()), {"a": x}, {"a": 3 * x**2})
    with pytest.raises(AssertionError, match="gradient of 0"):
        testing.check_numerical_grads(lambda a: float((a**3).sum()), [x], [x])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "bool", "float16"])
def test_random_arrays(dtype: str) -> None:
    made = testing.generate_random_array(dtype, (3, 4))
    assert made.shape == (3, 4) and dtypes.from_numpy(made.dtype) == dtype


def test_what_the_machine_has() -> None:
    assert testing.enabled_targets()[0][0] == "llvm" and not testing.device_enabled("cuda")
    assert testing.device_enabled({"kind": "llvm"}) and testing_env.has_llvm_min_version(15)
    assert not testing_env.has_llvm_min_version(1000) and not testing_env.has_gpu()
    assert testing_env.has_cpu_feature("no-such-feature") is False
    assert testing.strtobool("Yes") and not testing.strtobool("off")
    with pytest.raises(ValueError, match="truth value"):
        testing.strtobool("perhaps")
    with pytest.raises(AttributeError):
        testing_env.missing
