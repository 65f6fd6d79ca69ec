"""The tool that deletes checks deletes them, wherever they stand, and finds whether a test notices."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).with_name("mutation.py")

CHECKED = """
import contextlib
import functools
from dataclasses import dataclass

def fail(text):
    raise ValueError(text)  # noticed

def plain(x):
    if x == 0:
        fail("noticed")
    if x == 1:
        raise ValueError("not executed")
    if x == 2:
        fail("survives")
    return x

def outer(x):
    def inner():
        if x < 0:
            fail("noticed: nested")
    return (lambda: inner())()

def DiagnosticError(text):
    return text

def faults(x):
    if x < 0:
        yield DiagnosticError("noticed: generator")

@functools.lru_cache
def cached(x):
    if x < 0 or x > 9:
        raise ValueError("noticed, but one part survives")
    return x

@dataclass(frozen=True)
class Point:
    x: int

    def __post_init__(self):
        if not (self.x >= 0 and self.x != 7):
            fail("noticed: method, both parts")

    @staticmethod
    @contextlib.contextmanager
    def held(x):
        if x:
            fail("noticed: context manager")
        yield

def require_even(x):
    if x % 2:
        fail("noticed: asked")

def asking(x):
    require_even(x)
    if x == 6:
        while x < 8:
            if x == 6:
                raise ValueError("noticed: endless without it")
"""

CHECKS = """
import pytest
import checked

@pytest.mark.parametrize("act", [
    lambda: checked.plain(0),
    lambda: checked.outer(-1),
    lambda: checked.cached(10),
    lambda: checked.Point(-1),
    lambda: checked.Point(7),
    lambda: checked.Point.held(1).__enter__(),
    lambda: checked.asking(3),
    lambda: checked.asking(6),
])
def test_refused(act):
    with pytest.raises(ValueError):
        act()

def test_looks_at_nothing():
    for act, value in ((checked.plain, 2), (checked.cached, -1)):
        try:
            act(value)
        except ValueError:
            pass

def test_yields():
    assert list(checked.faults(-1)) == ["noticed: generator"]
    checked.Point(1)
    checked.asking(2)
"""


def test_checks_are_deleted_one_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "checked.py").write_text(CHECKED)
    (tmp_path / "test_checked.py").write_text(CHECKS)
    arguments = [tmp_path / "checked.py", "--conditions", "--limit", "1", "--tests", tmp_path / "test_checked.py"]
    done = subprocess.run(
        [sys.executable, TOOL, *arguments], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": ""}
    )
    assert done.stdout.splitlines() == [
        "- not executed: `checked.py:13` `raise ValueError('not executed')`",
        "- survives: `checked.py:15` `fail('survives')`",
        "- survives: `checked.py:33` `the condition x < 0`",
        "- noticed by an end: `checked.py:61` `raise ValueError('noticed: endless without it')`",
        "16 checks deleted one at a time: 12 noticed, 1 noticed by an end, 2 survives, 1 not executed",
    ], done.stdout + done.stderr


def test_tests_that_fail_by_themselves_are_named(tmp_path: Path) -> None:
    (tmp_path / "checked.py").write_text("")
    (tmp_path / "test_checked.py").write_text("def test_wrong():\n    assert 1 == 2\n")
    arguments = [tmp_path / "checked.py", "--tests", tmp_path / "test_checked.py"]
    done = subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True)
    assert done.returncode == 2 and "test_wrong" in done.stdout and "assert 1 == 2" in done.stdout
