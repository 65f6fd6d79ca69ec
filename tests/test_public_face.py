"""Names and small habits of users: the public package, its command, and what a wrong use is answered with."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import supple
from supple.base.errors import DiagnosticError
from supple.ir.structural import assert_structural_equal
from supple.script import from_source

PROGRAM = """
from supple.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")):
        y = R.add(x, R.const([1.0, 2.0, 3.0, 4.0], "float32"))
        return y
"""


def test_names_of_the_package_resolve() -> None:
    for name in supple.__all__:
        assert getattr(supple, name) is not None
    assert supple.relax.transform.FuseOps is supple.transform.FuseOps
    assert supple.Target("llvm -mcpu=znver3") == supple.Target({"kind": "llvm", "mcpu": "znver3"})
    with pytest.raises(AttributeError, match="nothing_such"):
        supple.nothing_such


def test_modules_are_pickled_and_copied() -> None:
    mod = from_source(PROGRAM)
    assert_structural_equal(pickle.loads(pickle.dumps(mod)), mod)
    assert_structural_equal(copy.deepcopy(mod), mod)
    fresh = subprocess.run(
        [sys.executable, "-c", "import pickle, sys; print(pickle.load(sys.stdin.buffer).script())"],
        input=pickle.dumps(mod),
        capture_output=True,
        check=True,
    )
    assert fresh.stdout.decode().strip() == mod.script().strip()


def test_a_function_on_arrays_says_to_compile_first() -> None:
    function = from_source(PROGRAM)["main"]
    with pytest.raises(TypeError, match="compile a graph function"):
        function(np.ones(4, "float32"))


@pytest.mark.parametrize("dtype", ["float4_e2m1fn", "float6_e2m3fn"])
def test_dtypes_that_have_no_bytes_of_their_own_are_refused_by_name(dtype: str) -> None:
    with pytest.raises(DiagnosticError, match="the smallest floats are the float8 kinds"):
        from_source(PROGRAM.replace('R.Tensor((4,), "float32")', f'R.Tensor((4,), "{dtype}")'))


def run(path: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    script = path / "script.py"
    script.write_text(text)
    command = [sys.executable, "-m", "supple", "run", *options, str(script), "one", "--two"]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_command_runs_scripts(tmp_path: Path) -> None:
    done = run(tmp_path, "import sys\nprint(sys.argv[1:])\n")
    assert (done.returncode, done.stdout.strip()) == (0, "['one', '--two']")
    assert run(tmp_path, "raise SystemExit(3)").returncode == 3


def test_the_command_shows_the_script_alone(tmp_path: Path) -> None:
    done = run(tmp_path, "def f():\n    1 / 0\n\nf()\n")
    assert done.returncode == 1 and "ZeroDivisionError" in done.stderr
    assert 'script.py", line 4' in done.stderr and "runpy" not in done.stderr and "cli" not in done.stderr


def test_the_command_names_the_option_that_is_missing(tmp_path: Path) -> None:
    done = run(tmp_path, "import tvm\n")
    assert done.returncode == 1 and "--as-tvm" in done.stderr
    text = "import tvm\nfrom tvm.relax.transform import FuseOps\nprint(tvm.transform.Sequential)\n"
    done = run(tmp_path, text, "--as-tvm")
    assert (done.returncode, done.stderr) == (0, "")
