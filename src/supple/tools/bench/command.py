"""The ``supple bench`` command."""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from supple.base.target import available_processors
from supple.tools.bench.cases import all_cases
from supple.tools.bench.measure import environment
from supple.tools.bench.peers import PEERS
from supple.tools.bench.report import add, machine, markdown, means, plot, print_table


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--cases", nargs="*", default=["*"], metavar="PATTERN", help="names, such as 'mlp-*' (all)")
    parser.add_argument("--groups", nargs="*", metavar="GROUP", help="groups of cases, such as matmul")
    parser.add_argument("--threads", nargs="*", default=["1", "all"], help="numbers of threads (1 all)")
    parser.add_argument("--peers", nargs="*", metavar="NAME", help="libraries to compare with (all that are installed)")
    parser.add_argument("--seconds", type=_seconds, default=0.3, help="for each case and library (0.3)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every figure")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the tables as a page")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="write bars of the ratios (.svg, .png; matplotlib)")
    parser.add_argument("--list", action="store_true", help="print the cases' names and stop")


def run(options: argparse.Namespace) -> int:
    """Measure and report; the exit status."""
    cases = [
        case
        for case in all_cases()
        if any(fnmatch.fnmatch(case.name, pattern) for pattern in options.cases)
        and (not options.groups or case.group in options.groups)
    ]
    if options.list:
        print("\n".join(f"{case.name:36} {case.group}" for case in cases))
        return 0
    if not cases:
        print("supple bench: no case has such a name; --list shows them", file=sys.stderr)
        return 2
    installed = [peer for peer in PEERS if peer.installed]
    unknown = set(options.peers or ()) - {peer.name for peer in installed}
    if unknown:
        print(f"supple bench: not installed: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 2
    chosen = [peer for peer in installed if not options.peers or peer.name in options.peers]
    names, counts = [peer.name for peer in chosen], _threads(options.threads)
    versions = {peer.name: peer.version for peer in chosen}
    rows: list[dict[str, Any]] = []
    peaks: dict[int, dict[str, Any]] = {}
    with importlib.import_module("rich.progress").Progress(transient=True) as progress:
        processes = [(threads, beside) for threads in counts for beside in _processes(names, threads)]
        task = progress.add_task("measuring", total=len(cases) * len(processes))
        for threads, beside in processes:
            asked = {
                "cases": [c.name for c in cases], "peers": beside, "threads": threads, "seconds": options.seconds,
            }  # fmt: skip
            worker = subprocess.Popen(
                [sys.executable, "-m", "supple.tools.bench.worker"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(threads),
            )  # fmt: skip
            assert worker.stdin is not None and worker.stdout is not None
            worker.stdin.write(json.dumps(asked))
            worker.stdin.close()
            for line in worker.stdout:
                if not line.startswith("{"):
                    continue  # a library's own words
                found = json.loads(line)
                if "roofline" in found:
                    peaks[threads] = found["roofline"]
                    continue
                add(rows, found)
                _write(options, versions, peaks, rows)  # what is measured stays when a long run is stopped
                progress.update(task, advance=1, description=found["case"])
            if worker.wait() != 0:
                print(f"supple bench: the measuring process ended with status {worker.returncode}", file=sys.stderr)
                return 1
    print_table(rows, names, peaks)
    if options.plot is not None:
        plot(rows, options.plot)
    return 0


def _processes(names: list[str], threads: int) -> list[list[str]]:
    """The libraries that are measured in one process. Threads of several libraries that wait for work disturb each
    other, so that each is measured beside Supple alone when there are several threads."""
    return [names] if threads == 1 or not names else [[name] for name in names]


def _write(
    options: argparse.Namespace, versions: dict[str, str], peaks: dict[int, Any], rows: list[dict[str, Any]]
) -> None:
    whole = {"machine": machine(), "versions": versions, "roofline": peaks, "means": means(rows), "rows": rows}
    text = json.dumps(whole, indent=1) + "\n"
    if options.json is not None:
        options.json.write_text(text)
    if options.markdown is not None:
        options.markdown.write_text(markdown(json.loads(text)))


def _seconds(text: str) -> float:
    value = float(text)  # argparse reports a ValueError with the option's name
    if not 0 <= value < float("inf"):
        raise ValueError
    return value


def _threads(asked: list[str]) -> list[int]:
    for text in asked:
        if text != "all" and not (text.isascii() and text.isdigit() and int(text) >= 1):
            raise SystemExit(f"supple bench: --threads: expected a number from 1 on, or all; got {text!r}")
    counts = [available_processors() if text == "all" else int(text) for text in asked]
    return list(dict.fromkeys(counts))
