"""Programs on disk: found again by what they follow from, and by nothing else; safe under many processes."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from supple.base.disk_cache import DiskCache
from supple.runtime import native

PROGRAM = """
import sys
import numpy as np
import supple
from supple.script import from_source

TEXT = '''
from supple.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), WEIGHT: R.Tensor((4, 3), "float32")):
        with R.dataflow():
            y = R.nn.relu(R.add(R.matmul(x, WEIGHT), R.const(NUMBER, "float32")))
            R.output(y)
        return y
'''
number, name, target, results = sys.argv[1:]
mod = from_source(TEXT.replace("NUMBER", number).replace("WEIGHT", name))
ex = supple.compile(mod, target, results=results)
x, w = np.ones((2, 4), "f4"), np.ones((4, 3), "f4")
out = np.asarray(ex["main"](x, w))
assert out.shape == (2, 3) and (out == 4 + float(number)).all(), out
print("compiled" if "kernels" in ex.program.timings else "found")
"""


def run(folder: Path, number: str = "1.0", name: str = "w", target: str = "llvm", results: str = "match") -> str:
    environment = {**os.environ, "SUPPLE_CACHE": str(folder), "SUPPLE_CHECK": "0"}
    command = [sys.executable, "-c", PROGRAM, number, name, target, results]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_next_process_finds_the_program_and_nothing_else_does(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    assert run(folder) == "compiled"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert run(folder) == "found"
    assert run(folder, number="2.0") == "compiled"
    assert run(folder, name="v") == "compiled"  # messages name parameters
    assert run(folder, target="llvm -mcpu=x86-64-v2") == "compiled"
    assert run(folder, results="numpy") == "compiled"
    for file in folder.glob("*/*"):
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert run(folder) == "compiled"  # damaged files are no programs
    assert run(folder) == "found"


def test_many_processes_at_once(tmp_path: Path) -> None:
    environment = {**os.environ, "SUPPLE_CACHE": str(tmp_path / "cache"), "SUPPLE_CHECK": "0"}
    command = [sys.executable, "-c", PROGRAM, "1.0", "w", "llvm", "match"]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        for _ in range(4)
    ]
    for process in running:
        out, error = process.communicate()
        assert process.returncode == 0 and out.strip() in ("compiled", "found"), error
    assert not [f for f in (tmp_path / "cache").glob("*/*") if "." in f.name]  # no draft is left


def test_the_runtimes_own_code_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    native.runtime()  # whose code is loaded by now
    cache = DiskCache(tmp_path / "cache")
    compiled: list[None] = []
    machine = native._machine

    def counted() -> Any:
        compiled.append(None)
        return machine()

    monkeypatch.setattr(native, "shared_cache", lambda: cache)
    monkeypatch.setattr(native, "_machine", counted)

    def answer(number: int) -> int:
        library = native.load_text(f"define i64 @answer() {{\n  ret i64 {number}\n}}\n", ["answer"])
        result: int = ctypes.CFUNCTYPE(ctypes.c_int64)(library.addresses["answer"])()
        return result

    assert [answer(42), answer(42), len(compiled)] == [42, 42, 1]
    assert [answer(43), len(compiled)] == [43, 2]
    for file in cache.directory.glob("*/*"):
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert [answer(42), answer(42), len(compiled)] == [42, 42, 3]  # damaged files are not loaded


def test_bytes_by_key(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache")
    assert cache.get("ab12") is None
    cache.put("ab12", b"content")
    assert cache.get("ab12") == b"content" and DiskCache(tmp_path / "cache").get("ab12") == b"content"
    cache.put("ab12", b"")
    assert cache.get("ab12") == b""
    file = tmp_path / "cache" / "ab" / "ab12"
    for damaged in (b"", b"supple1\n", b"something else entirely, and long enough"):
        file.write_bytes(damaged)
        assert cache.get("ab12") is None and not file.exists()


def test_what_was_not_used_for_longest_goes_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path / "cache", limit=4000)
    for n in range(6):
        cache.put(f"{n:04x}", bytes(1000))
        os.utime(tmp_path / "cache" / "00" / f"{n:04x}", (n, n))
    cache.get("0000")  # used just now
    cache._evict()
    assert [n for n in range(6) if cache.get(f"{n:04x}") is not None] == [0, 4, 5]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users own directories on POSIX")
def test_a_directory_of_others_is_not_used(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o777)
    shared.chmod(0o777)
    cache = DiskCache(shared)
    with pytest.warns(RuntimeWarning, match="mode 0700"):
        cache.put("ab12", b"content")
    assert cache.get("ab12") is None and not list(shared.iterdir())


def test_a_place_that_cannot_be_written_is_said_once(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    cache = DiskCache(blocked / "cache")
    with pytest.warns(RuntimeWarning, match="are not kept"):
        cache.put("ab12", b"content")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.put("ab12", b"content")
        assert cache.get("ab12") is None


def test_times_of_passes_are_printed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import supple\nfrom supple.script import relax as R\n\n\n"
        "@R.function\ndef main(x: R.Tensor((4,), 'float32')):\n    y = R.exp(x)\n    return y\n\n\n"
        "supple.compile(main)\n"
    )
    command = [sys.executable, "-m", "supple", "run", "--time-passes", str(script)]
    done: Any = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "supple: compiled in" in done.stderr and "llvm kernels" in done.stderr
