"""Object code made by worker processes is the object code made here, in order, whatever happens to the workers."""

from __future__ import annotations

import pytest

from supple.base.errors import InternalError
from supple.base.target import Target
from supple.codegen import llvm_pool
from supple.codegen.llvm import compile_text
from supple.codegen.llvm_pool import ObjectCompiler

TARGET = Target.parse("llvm")


def text(n: int) -> str:
    return f"define i32 @f{n}(i32 %x) {{\n  %y = add i32 %x, {n}\n  ret i32 %y\n}}\n"


EXPECTED = [compile_text(text(n), TARGET) for n in range(12)]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_the_same_in_the_same_order(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_pool, "FIRST_WORKER", 1)
    with ObjectCompiler(TARGET, workers) as compiler:
        for n in range(12):
            compiler.add(text(n))
        assert len(compiler._processes) == workers
        assert compiler.results() == EXPECTED
        assert compiler.results() == EXPECTED
        compiler.add(text(0))
        assert compiler.results() == [*EXPECTED, EXPECTED[0]]
    assert all(process.wait() is not None for process in compiler._processes)


def test_little_work_starts_no_process() -> None:
    with ObjectCompiler(TARGET, 3) as compiler:
        for n in range(12):
            compiler.add(text(n))
        assert compiler.results() == EXPECTED and not compiler._processes


def test_dead_workers_leave_their_work_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_pool, "FIRST_WORKER", 1)
    with ObjectCompiler(TARGET, 2) as compiler:
        for n in range(12):
            compiler.add(text(n))
            for process in compiler._processes:
                process.kill()
        assert compiler.results() == EXPECTED


@pytest.mark.parametrize("workers", [0, 2])
def test_text_that_llvm_refuses_is_an_error_here(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_pool, "FIRST_WORKER", 1)
    with ObjectCompiler(TARGET, workers) as compiler:
        for n in range(3):
            compiler.add(text(n))
        compiler.add("define i32 @broken( {")
        with pytest.raises(InternalError, match="LLVM refused"):
            compiler.results()


def test_an_exception_ends_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_pool, "FIRST_WORKER", 1)
    with pytest.raises(KeyError), ObjectCompiler(TARGET, 2) as compiler:
        for n in range(12):
            compiler.add(text(n))
        raise KeyError
    assert all(process.wait() is not None for process in compiler._processes)
    assert not any(thread.is_alive() for thread in compiler._threads)
