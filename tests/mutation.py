"""Does some test fail when a single check is deleted? ``python tests/mutation.py src/supple/verify src/supple/ops``

Every statement that refuses a program (``raise``, ``fail(...)``, ``yield`` of a diagnostic) is replaced by ``pass``,
one at a time, and the tests that execute it are run. What no test notices is listed. Needs ``pip install pytest-cov``;
not part of the ordinary tests. ``--report FILE`` writes the counts and the list as Markdown.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]
DIAGNOSTICS = {"_fault", "Fault", "DiagnosticError", "TypeCheckError", "NotSupportedError"}
MOST_TESTS = 12  # of those that execute a check: the first ones decide
TIME_LIMIT = 300  # seconds for one mutant: a deleted check may leave a loop without an end


@dataclass(frozen=True)
class Site:
    """A statement that refuses something."""

    file: Path
    first: int
    last: int
    text: str

    @property
    def place(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.first}"


def sites(file: Path) -> Iterator[Site]:
    """The refusing statements of a file."""
    source = file.read_text()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise):
            refuses = node.exc is not None  # a bare raise passes on what something else refused
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            refuses = getattr(node.value.func, "id", None) == "fail"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Yield):
            made = node.value.value
            refuses = isinstance(made, ast.Call) and getattr(made.func, "id", None) in DIAGNOSTICS
        else:
            refuses = False
        if refuses:
            assert isinstance(node, ast.stmt) and node.end_lineno is not None
            text = " ".join((ast.get_source_segment(source, node) or "").split())
            yield Site(file, node.lineno, node.end_lineno, text[:100])


def copy_of_the_project(target: Path) -> Path:
    """The sources and tests, to be changed freely."""
    for name in ("src", "tests", "examples", "docs"):
        shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, target / name)
    return target


def pytest(project: Path, *args: str, timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    """Run pytest on a copy: its sources come before the installed ones."""
    environment = {**os.environ, "PYTHONPATH": str(project / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *args]
    return subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=timeout
    )


def tests_by_line(project: Path, jobs: int, tests: list[str]) -> dict[tuple[str, int], list[str]]:
    """The tests that execute each line, by file (below the project) and line."""
    settings = project / ".coveragerc"
    settings.write_text("[run]\nsource = src/supple\nrelative_files = true\n")
    done = pytest(
        project, "--cov", f"--cov-config={settings}", "--cov-context=test", "--cov-report=", "-n", str(jobs), *tests
    )
    if done.returncode != 0:
        raise SystemExit(f"the tests fail without a change:\n{done.stdout[-3000:]}")
    found: dict[tuple[str, int], list[str]] = {}
    database = sqlite3.connect(project / ".coverage")
    query = "select file.path, context.context, line_bits.numbits from line_bits join file on file.id = file_id"
    for path, context, bits in database.execute(f"{query} join context on context.id = context_id"):
        test = context.partition("|")[0]
        if not test:
            continue
        for byte, value in enumerate(bits):
            for bit in range(8):
                if value >> bit & 1:
                    found.setdefault((path, byte * 8 + bit), []).append(test)
    return found


def survives(site: Site, tests: list[str], project: Path) -> bool:
    """Whether the tests still pass without the statement."""
    file = project / site.file.relative_to(ROOT)
    original = file.read_text()
    lines = original.split("\n")
    indent = lines[site.first - 1][: len(lines[site.first - 1]) - len(lines[site.first - 1].lstrip())]
    lines[site.first - 1 : site.last] = [f"{indent}pass"]
    file.write_text("\n".join(lines))
    try:
        return pytest(project, "-x", *tests[:MOST_TESTS], timeout=TIME_LIMIT).returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        file.write_text(original)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--tests", nargs="*", default=["tests"], help="test files to look at (all)")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    files = [f for p in options.paths for f in (sorted(p.resolve().rglob("*.py")) if p.is_dir() else [p.resolve()])]
    found = [site for file in files for site in sites(file)]
    with tempfile.TemporaryDirectory() as folder:
        copies = [copy_of_the_project(Path(folder) / str(n)) for n in range(options.jobs)]
        lines = tests_by_line(copies[0], options.jobs, options.tests)
        free: Queue[Path] = Queue()
        for project in copies:
            free.put(project)

        def judge(site: Site) -> str:
            tests = lines.get((str(site.file.relative_to(ROOT)), site.first), [])
            tests = sorted(set(tests), key=len)
            if not tests:
                return "not executed"
            project = free.get()
            try:
                return "survives" if survives(site, tests, project) else "noticed"
            finally:
                free.put(project)

        with ThreadPoolExecutor(options.jobs) as pool:
            verdicts = list(pool.map(judge, found))
    counts = {kind: verdicts.count(kind) for kind in ("noticed", "survives", "not executed")}
    rows = [f"- {v}: `{s.place}` `{s.text}`" for s, v in zip(found, verdicts, strict=True) if v != "noticed"]
    summary = f"{len(found)} checks deleted one at a time: " + ", ".join(f"{n} {kind}" for kind, n in counts.items())
    print("\n".join([*rows, summary]))
    if options.report is not None:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        paths = " ".join(str(p) for p in options.paths)
        head = f"# Deleting checks\n\n`python tests/mutation.py {paths}` at {commit.stdout.strip()}: {summary}.\n\n"
        options.report.write_text(head + "\n".join(rows) + "\n")
    return 1 if counts["survives"] or counts["not executed"] else 0


if __name__ == "__main__":
    sys.exit(main())
