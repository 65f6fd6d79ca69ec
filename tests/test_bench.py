"""``supple bench``: the command measures, checks results first, and reports."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from supple.tools.bench import command, worker
from supple.tools.bench.cases import Case, Input, all_cases, mlp
from supple.tools.bench.measure import Times, geometric_mean, interleaved, least_seconds
from supple.tools.bench.report import add, best_peer, means, of_roofline, ratio


def test_the_command_measures_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    asked = ["bench", "--cases", "cube-64", "mlp-loops-bound-1", "--threads", "1", "--peers", "numpy", "--seconds", "0"]
    written = ["--json", str(file), "--markdown", str(tmp_path / "page.md")]
    command = [sys.executable, "-m", "supple", *asked, *written]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "cube-64" in done.stdout and "best / ours" in done.stdout
    whole = json.loads(file.read_text())
    assert set(whole["versions"]) == {"numpy"} and whole["roofline"]["1"]["flops"] > 1e9
    for row in whole["rows"]:
        assert not row["missing"]
        for name in ("supple", "numpy"):
            times = row["times"][name]
            assert 0 < times["minimum"] <= times["lower_quartile"] <= times["median"]
    assert {"mlp", "matmul", "all"} == set(whole["means"])
    page = (tmp_path / "page.md").read_text()
    assert "| cube-64 |" in page and "## 1 thread" in page and "| matmul |" in page


@pytest.mark.parametrize(
    "case", [c for c in all_cases() if c.flops < 2e6 and "4096" not in c.name], ids=lambda c: c.name
)
def test_every_small_case_is_right(case: Case) -> None:
    found = worker.compare(case, ["numpy"], threads=1, seconds=0.0)
    assert not found["missing"], found["missing"]


def test_what_cannot_run_or_is_wrong_has_no_time() -> None:
    refused = Case("refused", "x", (Input((2, 3)), Input((2, 3))), lambda o, a, b: o.matmul(a, b), 1.0, 1.0)
    with pytest.raises(ValueError, match="matmul"):
        worker.compare(refused, ["numpy"], 1, 0.0)  # not even the reference
    wrong = Case("wrong", "x", (Input((2, 3)),), _different, 1.0, 1.0)
    missing = worker.compare(wrong, ["numpy"], 1, 0.0)["missing"]
    assert set(missing) == {"supple"} and "off by" in missing["supple"]


def _different(ops: Any, a: Any) -> Any:
    return ops.exp(a) if isinstance(a, np.ndarray) else ops.relu(a)


def row(ours: float, **others: float) -> dict[str, Any]:
    times = {"supple": {"median": ours}, **{k: {"median": v} for k, v in others.items()}}
    found = {"case": "c", "group": "g", "threads": 1, "flops": 2e9, "bytes": 1e6, "times": times, "missing": {}}
    rows: list[dict[str, Any]] = []
    add(rows, found)
    return rows[0]


def test_figures() -> None:
    assert best_peer(row(1.0, a=3.0, b=2.0)) == ("b", 2.0, 2.0) and best_peer(row(1.0)) is None
    assert ratio(row(1.0, a=3.0, b=2.0)) == 2.0
    assert means([row(1.0, a=4.0), row(1.0, a=1.0)]) == {"g": 2.0, "all": 2.0}
    peaks = {"flops": 1e9, "bandwidth": [(1e3, 1e9), (1e6, 1e5)]}
    assert least_seconds(peaks, 1.0, 1e6) == 10.0 and least_seconds(peaks, 5e9, 1.0) == 5.0
    assert of_roofline(row(20.0), peaks) == 0.5
    assert geometric_mean([1.0, 4.0]) == 2.0
    assert Times((3.0, 1.0, 2.0)).median == 2.0 and Times((3.0, 1.0)).minimum == 1.0


def test_a_library_is_compared_with_supple_in_its_own_process() -> None:
    rows = [row(2.0, a=3.0)]
    add(rows, row(1.0, b=2.0))
    add(rows, {**row(4.0, c=5.0), "threads": 2})
    assert len(rows) == 2 and rows[0]["times"]["supple"]["median"] == 1.0
    assert best_peer(rows[0]) == ("a", 3.0, 1.5) and ratio(rows[1]) == 1.25
    without = row(1.0, d=9.0)
    del without["times"]["supple"]
    failed = {**without, "times": {"d": {"median": 0.1}}, "missing": {"supple": "wrong"}}
    add(rows, failed)  # where Supple has no result, nobody is compared with it
    assert best_peer(rows[0]) == ("a", 3.0, 1.5) and rows[0]["missing"] == {"supple": "wrong"}
    assert command._processes(["a", "b"], 1) == [["a", "b"]] and command._processes(["a", "b"], 2) == [["a"], ["b"]]


def test_contestants_take_turns() -> None:
    calls: list[str] = []
    times = interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 0.0, settle=False)
    assert set(times) == {"a", "b"} and len(times["a"].samples) == len(times["b"].samples) >= 7
    turns = [name for name, _ in itertools.groupby(calls[4:])]  # after the calls that say how long one takes
    assert len(turns) >= 7 and {"".join(pair) for pair in itertools.pairwise(turns)} == {"ab", "ba"}


def test_names(capsys: pytest.CaptureFixture[str]) -> None:
    names = [case.name for case in all_cases()]
    assert len(set(names)) == len(names) > 70
    assert mlp(4, True, "loops").symbolic_rows
    parser = ArgumentParser()
    command.add_arguments(parser)
    assert command.run(parser.parse_args(["--list", "--groups", "int8"])) == 0
    assert capsys.readouterr().out.split() == ["int8-256", "int8", "int8-1024", "int8"]
    assert command.run(parser.parse_args(["--cases", "nothing"])) == 2
    assert command.run(parser.parse_args(["--peers", "nobody"])) == 2
