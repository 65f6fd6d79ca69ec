"""Does some test fail when a single check is deleted? ``python tests/mutation.py src/supple/verify --tests tests/...``

Deleted are, one at a time, the statements that refuse a program (``raise``, ``fail(...)``, ``require...(...)``,
``yield`` of a diagnostic) and, with ``--conditions``, each part of a condition of several parts that leads to one.
What no test notices is listed, and so is what no test executes; ``--report FILE`` writes it as Markdown.

Nothing is compiled again for a mutant: the files are changed while they are imported, so that every check asks first
whether it is there (``if __kept__(17): raise ...``), and which check is gone is one number. So a check is deleted in
nested functions, generators, decorated functions and methods alike. The tests are collected once; each group of tests
(to learn what executes what) and each mutant is a fork of that process, with folders of its own.
``tests/test_mutation.py`` shows that deleted checks are deleted.
"""

from __future__ import annotations

import argparse
import ast
import builtins
import importlib.abc
import os
import pickle
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
REFUSING = {"fail", "refuse"}  # functions that never return
DIAGNOSTICS = {"_fault", "Fault", "DiagnosticError", "TypeCheckError", "NotSupportedError"}
ENDED = "noticed by an end"  # the process was killed, or ended by itself
MOST_TESTS = 30  # of those that execute a check: the first ones decide
MEMORY_LIMIT = 12 << 30  # bytes for one mutant: or a list without an end


@dataclass(frozen=True)
class Site:
    """A check: a statement that refuses something, or one part of the condition before it."""

    file: Path
    line: int
    text: str
    asks: bool = False  # it may have an effect without refusing

    @property
    def place(self) -> str:
        return f"{self.file.relative_to(ROOT) if self.file.is_relative_to(ROOT) else self.file.name}:{self.line}"


def _name(node: ast.AST | None) -> str:
    """The name of a called function, without the object before it."""
    func = node.func if isinstance(node, ast.Call) else None
    return func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""


def refuses(statement: ast.stmt) -> bool:
    """Whether a statement refuses a program, or asks for what may be refused."""
    if isinstance(statement, ast.Raise):  # a bare raise passes on what something else refused
        abstract = isinstance(statement.exc, ast.Name) and statement.exc.id == "NotImplementedError"
        return statement.exc is not None and not abstract
    if not isinstance(statement, ast.Expr):
        return False
    if isinstance(statement.value, ast.Yield):
        return _name(statement.value.value) in DIAGNOSTICS
    return _name(statement.value) in REFUSING or asks(statement)


def asks(statement: ast.stmt) -> bool:
    """Whether a statement calls a function that returns where nothing is wrong."""
    return isinstance(statement, ast.Expr) and _name(statement.value).startswith("require_")


def _call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name, ast.Load()), list(args), [])


class Instrument(ast.NodeTransformer):
    """Makes every check of a file ask whether it is there, and say when it refuses."""

    def __init__(self, file: Path, sites: list[Site], conditions: bool) -> None:
        self.file, self.sites, self.conditions = file, sites, conditions

    def _new(self, node: ast.stmt | ast.expr, what: str = "") -> ast.Constant:
        text = " ".join(ast.unparse(node).split())
        self.sites.append(
            Site(self.file, node.lineno, f"{what}{text}"[:110], isinstance(node, ast.stmt) and asks(node))
        )
        return ast.Constant(len(self.sites) - 1)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.If) and self.conditions and any(map(refuses, node.body)):
            node.test = self._parts(node.test)
        super().generic_visit(node)
        if not isinstance(node, ast.stmt) or not refuses(node):
            return node
        number = self._new(node)
        found = ast.Expr(_call("__found__", number, ast.Constant(True)))
        body: list[ast.stmt] = [found, node]
        if asks(node):
            handler = ast.ExceptHandler(ast.Name("BaseException", ast.Load()), None, [found, ast.Raise()])
            body = [ast.Try([node], [handler], [], [])]
        return ast.copy_location(ast.If(_call("__kept__", number), body, []), node)

    def _parts(self, test: ast.expr) -> ast.expr:
        """``a or b`` with both parts deletable; likewise ``not (a and b)``."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            return ast.copy_location(ast.BoolOp(ast.Or(), [self._part(v) for v in test.values]), test)
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            inner = test.operand
            if isinstance(inner, ast.BoolOp) and isinstance(inner.op, ast.And):
                parts = [self._part(ast.copy_location(ast.UnaryOp(ast.Not(), v), v)) for v in inner.values]
                return ast.copy_location(ast.BoolOp(ast.Or(), parts), test)
        return test

    def _part(self, part: ast.expr) -> ast.expr:
        number = self._new(part, "the condition ")
        return ast.BoolOp(ast.And(), [_call("__kept__", number), _call("__found__", number, part)])


def instrument(files: Sequence[Path], conditions: bool) -> tuple[list[Site], dict[Path, CodeType]]:
    """The checks of the files, whose numbers are their places in the list, and the changed code."""
    sites: list[Site] = []
    codes = {}
    for file in files:
        tree = Instrument(file, sites, conditions).visit(ast.parse(file.read_text()))
        codes[file] = compile(ast.fix_missing_locations(tree), str(file), "exec", dont_inherit=True)
    return sites, codes


class State:
    """Which check is deleted, and what was executed since the sets were emptied."""

    def __init__(self) -> None:
        self.deleted = -1
        self.executed: set[int] = set()
        self.refused: set[int] = set()

    def kept(self, number: int) -> bool:
        self.executed.add(number)
        return number != self.deleted

    def found(self, number: int, value: Any) -> Any:
        if value:
            self.refused.add(number)
        return value


def install(codes: dict[Path, CodeType], state: State) -> None:
    """From now on the changed code is imported."""

    class Loader(SourceFileLoader):
        def get_code(self, fullname: str) -> CodeType | None:
            changed = codes.get(Path(self.path).resolve())
            return super().get_code(fullname) if changed is None else changed

    folders = {file.parent for file in codes}

    def finder(path: str) -> importlib.abc.PathEntryFinder:
        if Path(path).resolve() not in folders:
            raise ImportError(path)
        return FileFinder(path, (Loader, SOURCE_SUFFIXES))

    builtins.__kept__, builtins.__found__ = state.kept, state.found  # type: ignore[attr-defined]
    sys.path_hooks.insert(0, finder)
    sys.path_importer_cache.clear()


def forked(tasks: Sequence[Callable[[], Any]], jobs: int, limit: int, folder: Path) -> Iterator[tuple[int, Any]]:
    """What each task returns in a process of its own, as it ends; None where it was killed or raised."""
    running: dict[int, tuple[int, float]] = {}
    waiting = list(enumerate(tasks))
    while running or waiting:
        while waiting and len(running) < jobs:
            index, task = waiting.pop(0)
            child = os.fork()
            if child == 0:
                _child(task, limit, folder / str(index))
            running[child] = index, time.monotonic()
        for child, (index, since) in list(running.items()):
            done, _ = os.waitpid(child, os.WNOHANG)
            if not done and time.monotonic() - since > 20 * limit:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
            elif not done:
                continue
            del running[child]
            answer = folder / f"{index}" / "answer"
            yield index, pickle.loads(answer.read_bytes()) if answer.exists() else None
            shutil.rmtree(folder / str(index), ignore_errors=True)
        time.sleep(0.004)


def _child(task: Callable[[], Any], limit: int, folder: Path) -> None:
    """Runs a task with temporary files and saved programs of its own, silently, and never returns."""
    code = 1
    try:
        os.setsid()
        folder.mkdir(parents=True)
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(silence, stream)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
        os.environ |= {"PYTEST_DEBUG_TEMPROOT": str(folder), "SUPPLE_CACHE": str(folder / "cache")}
        result = pickle.dumps(task())
        (folder / "partial").write_bytes(result)
        (folder / "partial").rename(folder / "answer")
        code = 0
    finally:
        os._exit(code)


@dataclass
class Ran:
    """What one test executed; ``error`` is its failure."""

    seconds: float
    executed: frozenset[int]
    refused: frozenset[int]
    error: str


@dataclass(eq=False)
class Judge:
    """A pytest plugin that, in place of running the collected tests, runs them for each deleted check."""

    sites: list[Site]
    state: State
    jobs: int
    limit: int
    folder: Path
    verdicts: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def pytest_sessionstart(self) -> None:
        """Generated examples are the same for each mutant, and those of mutants are not remembered."""
        from hypothesis import settings  # not before pytest, which changes it while it is imported

        settings.register_profile("mutation", database=None, derandomize=True, deadline=None)
        settings.load_profile("mutation")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failures.append(f"{report.nodeid}\n{report.longreprtext}")

    pytest_collectreport = pytest_runtest_logreport

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if not self.failures:
            self.judge(session.items)
        return True

    def judge(self, items: list[pytest.Item]) -> None:
        """Fills in the verdicts, or the failures that do not allow it."""
        groups: dict[Path, list[int]] = {}
        for number, item in enumerate(items):
            groups.setdefault(item.path, []).append(number)
        group = list(groups.values())
        ran: dict[int, Ran] = {}
        record = [lambda numbers=numbers: self.record(items, numbers) for numbers in group]
        for index, result in forked(record, self.jobs, 3600, self.folder / "record"):
            if result is None:
                self.failures.append(f"{items[group[index][0]].path} ends the process")
            else:
                ran |= result
        self.failures += [result.error for result in ran.values() if result.error]
        if self.failures:
            return
        chosen = [self.tests_of(site, ran) for site in range(len(self.sites))]
        self.verdicts = ["not executed" if not tests else "" for tests in chosen]
        judged = [site for site, tests in enumerate(chosen) if tests]
        judge = [lambda site=site: self.notice(items, chosen[site], site) for site in judged]
        for index, noticed in forked(judge, self.jobs, self.limit, self.folder / "judge"):
            self.verdicts[judged[index]] = {None: ENDED, True: "noticed", False: "survives"}[noticed]

    def run(self, items: list[pytest.Item], numbers: Sequence[int], position: int) -> None:
        """One test, with the fixtures of the next one kept."""
        following = items[numbers[position + 1]] if position + 1 < len(numbers) else None
        item = items[numbers[position]]
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)

    def record(self, items: list[pytest.Item], numbers: Sequence[int]) -> dict[int, Ran]:
        """What each test executes."""
        found = {}
        for position, number in enumerate(numbers):
            self.state.executed.clear()
            self.state.refused.clear()
            self.failures.clear()
            begin = time.monotonic()
            self.run(items, numbers, position)
            seconds, executed, refused = time.monotonic() - begin, self.state.executed, self.state.refused
            found[number] = Ran(seconds, frozenset(executed), frozenset(refused), "\n".join(self.failures))
        return found

    def tests_of(self, site: int, ran: dict[int, Ran]) -> list[int]:
        """The tests in which a check refuses, the fast ones first, then those in which it asks for something."""
        asking = self.sites[site].asks
        found = [n for n, result in ran.items() if site in (result.executed if asking else result.refused)]
        found.sort(key=lambda number: (site not in ran[number].refused, ran[number].seconds))
        return found[:MOST_TESTS]

    def notice(self, items: list[pytest.Item], numbers: Sequence[int], site: int) -> bool:
        """Whether one of the tests fails without a check."""
        self.state.deleted = site
        for position in range(len(numbers)):
            self.run(items, numbers, position)
            if self.failures:
                return True
        return False


def report(options: argparse.Namespace, sites: list[Site], verdicts: list[str]) -> int:
    counts = {kind: verdicts.count(kind) for kind in ("noticed", ENDED, "survives", "not executed")}
    rows = [f"- {v}: `{s.place}` `{s.text}`" for s, v in zip(sites, verdicts, strict=True) if v != "noticed"]
    summary = f"{len(sites)} checks deleted one at a time: " + ", ".join(f"{n} {kind}" for kind, n in counts.items())
    print("\n".join([*rows, summary]), flush=True)
    if options.report is not None:
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        command = " ".join(["python tests/mutation.py", *sys.argv[1:]])
        options.report.write_text(f"`{command}` at {commit.stdout.strip()}: {summary}.\n\n" + "\n".join(rows) + "\n")
    return 1 if counts["survives"] or counts["not executed"] else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--tests", nargs="*", default=["tests"], help="tests to look at (all)")
    parser.add_argument("--conditions", action="store_true", help="also parts of conditions")
    parser.add_argument("--jobs", type=int, default=2)
    endless = "seconds of computing for one mutant: a deleted check may leave a loop without an end"
    parser.add_argument("--limit", type=int, default=120, help=endless)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    files = [f for p in options.paths for f in (sorted(p.resolve().rglob("*.py")) if p.is_dir() else [p.resolve()])]
    sites, codes = instrument(files, options.conditions)
    state = State()
    sys.path.insert(0, str(ROOT / "src"))
    install(codes, state)
    with tempfile.TemporaryDirectory() as folder:
        judge = Judge(sites, state, options.jobs, options.limit, Path(folder))
        plain = ["-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:terminal", "-s", "-o", "addopts="]
        pytest.main([*plain, *options.tests], plugins=[judge])
    if not judge.verdicts:
        print("\n".join(["without a change:", *judge.failures]))
        return 2
    return report(options, sites, judge.verdicts)


if __name__ == "__main__":
    sys.exit(main())
