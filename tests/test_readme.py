"""The README's example runs and prints what it should."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_example_runs(tmp_path: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.S)
    assert blocks
    for number, block in enumerate(blocks):
        script = tmp_path / f"example_{number}.py"
        script.write_text(block)
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=dict(os.environ))
        assert done.returncode == 0, done.stderr
        assert "784" in done.stdout


def test_import_is_light() -> None:
    """``import supple`` loads neither LLVM nor numpy: what is used loads when it is used."""
    code = "import sys, supple; sys.exit(any(m in sys.modules for m in ('llvmlite', 'numpy', 'pygments', 'torch')))"
    assert subprocess.run([sys.executable, "-c", code], env=dict(os.environ)).returncode == 0
