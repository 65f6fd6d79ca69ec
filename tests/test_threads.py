"""The pool of threads: a model of its protocol in all interleavings, and the real one under load, forks and exits."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from supple.runtime.platforms import pool_platform, usable_cores
from supple.runtime.pool import num_threads, set_num_threads
from supple.runtime.pool_ir import MOST_THREADS

SOURCES = str(Path(__file__).parent.parent / "src")

needs_pool = pytest.mark.skipif(pool_platform() is None, reason="compiled code runs on one thread here")


# --------------------------------------------------------------------------------------------------------------- model


@dataclass(frozen=True)
class Caller:
    """Where the caller is: ``at`` names its next step, ``i`` the worker (or the chunk) that the step is about."""

    at: str = "begin"
    i: int = 0
    job: int = 0


@dataclass(frozen=True)
class Worker:
    """Where a worker is, its slot, the job that it believes to run, and the chunk of it."""

    at: str = "spin"
    ticket: int = 0
    parked: int = 0
    job: int = -1
    chunk: int = -1


@dataclass(frozen=True)
class Pool:
    """One state of the protocol in ``runtime/pool_ir.py``. ``done`` lists the chunks that ran, as (job, chunk)."""

    caller: Caller
    workers: tuple[Worker, ...]
    pending: int = 0
    waits: int = 0
    job: int = -1  # the job that is written down
    next: int = 0  # its next chunk that nobody has taken
    done: frozenset[tuple[int, int]] = frozenset()


CHUNKS = 3


class BrokenProtocolError(Exception):
    """A chunk ran twice, or for a job that is not the one written down."""


def _ran(state: Pool, job: int, chunk: int) -> Pool:
    if job != state.job or (job, chunk) in state.done:
        raise BrokenProtocolError(f"chunk {chunk} of job {job} while job {state.job} is written down")
    return replace(state, done=state.done | {(job, chunk)})


def _with(state: Pool, i: int, **changes: int | str) -> Pool:
    workers = list(state.workers)
    workers[i] = replace(workers[i], **changes)  # type: ignore[arg-type]
    return replace(state, workers=tuple(workers))


def _caller(state: Pool, jobs: int, fault: str) -> Iterator[Pool]:
    """What the caller may do next; each is one atomic step."""
    c, count = state.caller, len(state.workers)

    def go(to: Pool, at: str, i: int = 0) -> Pool:
        return replace(to, caller=replace(c, at=at, i=i))

    if c.at == "begin":
        if c.job < jobs:
            written = replace(state, job=c.job, next=0, pending=count, waits=0)
            yield go(written, "look" if fault == "looks first" else "post")
    elif c.at == "post":
        posted = _with(state, c.i, ticket=1)
        following = ("post", c.i + 1) if c.i + 1 < count else ("own", 0)
        yield go(posted, *(following if fault == "looks first" else ("look", c.i)))
    elif c.at == "look":
        following = ("post", c.i + 1) if c.i + 1 < count else ("own", 0)
        if fault == "looks first":
            following = ("post", c.i)
        yield go(state, *(("wake", c.i) if state.workers[c.i].parked else following))
    elif c.at == "wake":
        woken = _with(state, c.i, at="check") if state.workers[c.i].at == "asleep" else state
        following = ("post", c.i + 1) if c.i + 1 < count else ("own", 0)
        yield go(woken, *(("post", c.i) if fault == "looks first" else following))
    elif c.at == "own":
        if state.next < CHUNKS:
            yield go(replace(state, next=state.next + 1), "run", state.next)
        else:
            yield go(state, "recall")
    elif c.at == "run":
        yield go(_ran(state, c.job, c.i), "own")
    elif c.at == "recall":
        following = ("recall", c.i + 1) if c.i + 1 < count else ("wait", 0)
        if state.workers[c.i].ticket:
            yield go(_with(state, c.i, ticket=0), "cancel", c.i)
        else:
            yield go(state, *following)
    elif c.at == "cancel":
        less = replace(state, pending=state.pending - 1)
        yield go(less, *(("recall", c.i + 1) if c.i + 1 < count else ("wait", 0)))
    elif c.at == "wait":
        yield go(state, "finish" if state.pending == 0 or fault == "does not wait" else "lie down")
    elif c.at == "lie down":
        yield go(replace(state, waits=1), "check")
    elif c.at == "check":
        yield go(state, "finish" if state.pending == 0 else "sleep", state.pending)
    elif c.at == "sleep":  # the system call compares, then sleeps
        yield go(state, "asleep" if state.pending == c.i else "check")
    elif c.at == "finish":
        yield replace(state, caller=Caller("begin", 0, c.job + 1))


def _worker(state: Pool, i: int, fault: str) -> Iterator[Pool]:
    """What a worker may do next."""
    w = state.workers[i]
    if w.at == "spin":
        if w.ticket:
            yield _with(state, i, at="take")
        else:
            yield _with(state, i, at="park")
    elif w.at == "take":
        if w.ticket or fault == "takes blindly":
            yield _with(state, i, at="claim", ticket=0, job=state.job)
        else:
            yield _with(state, i, at="spin")
    elif w.at == "claim":
        if state.next < CHUNKS:
            yield _with(replace(state, next=state.next + 1), i, at="run", chunk=state.next)
        else:
            yield _with(state, i, at="count", chunk=-1)
    elif w.at == "run":
        yield _with(_ran(state, w.job, w.chunk), i, at="claim", chunk=-1)
    elif w.at == "count":
        last = state.pending == 1
        yield _with(replace(state, pending=state.pending - 1), i, at="tell" if last else "spin")
    elif w.at == "tell":
        yield _with(state, i, at="call" if state.waits else "spin")
    elif w.at == "call":
        woken = replace(state, caller=replace(state.caller, at="check")) if state.caller.at == "asleep" else state
        yield _with(woken, i, at="spin")
    elif w.at == "park":
        yield _with(state, i, parked=1, at="check")
    elif w.at == "check":
        yield _with(state, i, at="sleep" if not w.ticket else "rise")
    elif w.at == "sleep":
        yield _with(state, i, at="check" if w.ticket and fault != "sleeps anyway" else "asleep")
    elif w.at == "rise":
        yield _with(state, i, parked=0, at="spin")
    elif w.at == "asleep" and fault != "sleeps anyway":
        yield _with(state, i, at="check")  # sleepers may wake for no reason


def explore(workers: int, jobs: int, fault: str = "", *, restless: bool = False) -> int:
    """Visit every state; returns how many. ``restless``: sleepers may wake for no reason.

    Raises `BrokenProtocolError` where a chunk runs twice or for a job that is over, and where a state is reached from
    which the caller can never finish.
    """
    start = Pool(Caller(), tuple(Worker() for _ in range(workers)))
    before: dict[Pool, list[Pool]] = {start: []}
    pending, finished = [start], []
    while pending:
        state = pending.pop()
        if state.caller == Caller("begin", 0, jobs):
            finished.append(state)
            if len(state.done) != jobs * CHUNKS:
                raise BrokenProtocolError("a chunk did not run")
        following = list(_caller(state, jobs, fault))
        for i, w in enumerate(state.workers):
            if w.at != "asleep" or restless:
                following.extend(_worker(state, i, fault))
        for other in following:
            if other not in before:
                before[other] = []
                pending.append(other)
            before[other].append(state)
    good, pending = set(finished), list(finished)
    while pending:
        for earlier in before[pending.pop()]:
            if earlier not in good:
                good.add(earlier)
                pending.append(earlier)
    stuck = [state for state in before if state not in good]
    if stuck:
        raise BrokenProtocolError(f"the caller can never finish from {stuck[0]}")
    return len(before)


@pytest.mark.parametrize("restless", [False, True])
def test_every_interleaving_of_the_protocol(restless: bool) -> None:
    """Each chunk runs once, for the job that is written down, and nobody sleeps while there is something to do."""
    assert explore(1, 3, restless=restless) > 100
    assert explore(2, 2, restless=restless) > 3000


@pytest.mark.parametrize("fault", ["looks first", "does not wait", "takes blindly", "sleeps anyway"])
def test_the_model_finds_faults(fault: str) -> None:
    with pytest.raises(BrokenProtocolError):
        for workers in (1, 2):
            explore(workers, 2, fault)
            _no_sleep_is_slept_through(workers, fault)


def _no_sleep_is_slept_through(workers: int, fault: str) -> None:
    """A worker that sleeps although its ticket is set is a lost wake-up, even if the caller does all the work: raises
    `BrokenProtocolError` where that lasts, which is where nobody is about to wake it."""
    start = Pool(Caller(), tuple(Worker() for _ in range(workers)))
    seen, pending = {start}, [start]
    while pending:
        state = pending.pop()
        for i, w in enumerate(state.workers):
            c = state.caller
            about = (c.at in ("look", "wake") and c.i <= i) or (c.at == "post" and c.i <= i)
            if w.at == "asleep" and w.ticket and not about:
                raise BrokenProtocolError(f"worker {i} sleeps through {state}")
        following = list(_caller(state, 2, fault))
        for i, w in enumerate(state.workers):
            if w.at != "asleep":
                following.extend(_worker(state, i, fault))
        for other in following:
            if other not in seen:
                seen.add(other)
                pending.append(other)


@pytest.mark.parametrize("workers", [1, 2])
def test_no_wake_up_is_lost(workers: int) -> None:
    _no_sleep_is_slept_through(workers, "")


# ------------------------------------------------------------------------------------------------------------ settings


def test_the_number_of_threads() -> None:
    before = num_threads()
    try:
        for count in (1, 2, 7, MOST_THREADS):
            set_num_threads(count)
            assert num_threads() == (count if pool_platform() else 1)
        for wrong in (0, -1, MOST_THREADS + 1):
            with pytest.raises(ValueError, match="expected 1 to 256 threads"):
                set_num_threads(wrong)
        for odd in (1.5, "2", None, True):
            with pytest.raises(TypeError, match="expected an integer"):
                set_num_threads(odd)  # type: ignore[arg-type]
    finally:
        set_num_threads(before)
    assert usable_cores() >= 1


PROGRAM = """
import os, signal, sys, threading, time
import numpy as np
import supple
from supple.codegen import kernel_parallel
from supple.runtime import num_threads, set_num_threads
from supple.runtime.pool import shared_jobs, worker_count
from supple.script import from_source

kernel_parallel.WORTH_SHARING, kernel_parallel.CHUNK = -1, 0
main = supple.compile(from_source('''
from supple.script import ir as I, relax as R, tirx as T
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n", 40), "float32"), w: R.Tensor((40, 50), "float32")) -> R.Tensor(("n", 50), "float32"):
        with R.dataflow():
            a = R.matmul(x, w)
            y = R.nn.softmax(a)
            R.output(y)
        return y
'''))["main"]
rng = np.random.default_rng(0)
W = rng.standard_normal((40, 50)).astype("float32")
SIZES = (0, 1, 2, 3, 5, 17, 64, 131, 200)
X = {n: rng.standard_normal((n, 40)).astype("float32") for n in SIZES}
set_num_threads(1)
RIGHT = {n: main(X[n], W) for n in SIZES}

def check(times, seed=0):
    order = np.random.default_rng(seed)
    for _ in range(times):
        n = SIZES[order.integers(len(SIZES))]
        assert (main(X[n], W) == RIGHT[n]).all(), n

def processes_end(*pids):
    for pid in pids:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
"""


@pytest.fixture(scope="module", autouse=True)
def programs_are_kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the processes compile is the same in all of them: the first one compiles it, the others load it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUPPLE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def run(body: str, *, timeout: float = 120, **environment: str) -> str:
    """Run a program in a process of its own; it must end by itself, with nothing on its standard error."""
    text = PROGRAM + textwrap.dedent(body)
    env = {**os.environ, "PYTHONPATH": SOURCES, "SUPPLE_CHECK": "0", **environment}
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=timeout, env=env)
    assert done.returncode == 0 and not done.stderr, f"{done.returncode}: {done.stderr}"
    return done.stdout


def test_the_environment_sets_the_number() -> None:
    text = "from supple.runtime import num_threads; print(num_threads())"
    for count in ("1", "3"):
        env = {**os.environ, "PYTHONPATH": SOURCES, "SUPPLE_NUM_THREADS": count}
        done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, env=env, check=True)
        assert done.stdout.strip() == (count if pool_platform() else "1")


# -------------------------------------------------------------------------------------------------------------- stress


@needs_pool
def test_many_callers_at_once() -> None:
    """Eight Python threads call one executable while the pool's size changes; all results are right to the bit."""
    run("""
        set_num_threads(4)
        errors = []
        def calls(seed):
            try:
                check(1500, seed)
            except BaseException as error:
                errors.append(error)
        threads = [threading.Thread(target=calls, args=(i,)) for i in range(8)]
        for t in threads: t.start()
        while any(t.is_alive() for t in threads):
            for count in (1, 4, 2, 8, 3):
                set_num_threads(count)
                time.sleep(0.002)
        for t in threads: t.join()
        assert not errors, errors
        assert shared_jobs() > 100 and worker_count() <= 7
        """)


@needs_pool
def test_sleeping_and_waking() -> None:
    """Calls after pauses of every length around the time after which workers sleep."""
    run("""
        for count in (2, 5):
            set_num_threads(count)
            for i in range(400):
                check(1, i)
                time.sleep((i % 20) * 0.00015)
        """)


@needs_pool
def test_a_child_process_starts_anew() -> None:
    """After a fork the child has no workers and makes its own; fork while another thread keeps the pool busy, too."""
    run("""
        set_num_threads(3)
        check(50)
        assert worker_count() == 2
        def child():
            pid = os.fork()
            if pid == 0:
                assert worker_count() == 0
                check(50)
                assert worker_count() == 2
                inner = os.fork()
                if inner == 0:
                    check(50)
                    os._exit(0)
                processes_end(inner)
                os._exit(0)
            return pid
        processes_end(child(), child())
        check(50)
        stop = False
        def busy():
            while not stop: check(5)
        thread = threading.Thread(target=busy)
        thread.start()
        for _ in range(15):
            pid = os.fork()
            if pid == 0:
                check(30)
                os._exit(0)
            processes_end(pid)
        stop = True
        thread.join()
        check(20)
        """, PYTHONWARNINGS="ignore")  # fmt: skip


@needs_pool
def test_multiprocessing() -> None:
    run("""
        import multiprocessing
        set_num_threads(2)
        check(20)
        with multiprocessing.get_context("fork").Pool(3) as pool:
            pool.starmap(check, [(20, i) for i in range(9)])
        check(20)
        """, PYTHONWARNINGS="ignore")  # fmt: skip


@needs_pool
@pytest.mark.parametrize("ending", ["pass", "sys.exit(0)", "os._exit(0)"])
def test_the_end_of_the_process_while_calls_run(ending: str) -> None:
    run(f"""
        set_num_threads(4)
        def busy():
            while True: check(5)
        for _ in range(3):
            threading.Thread(target=busy, daemon=True).start()
        time.sleep(0.1)
        {ending}
        """)


@needs_pool
def test_the_end_of_the_process_while_workers_are_idle() -> None:
    run("""
        set_num_threads(4)
        check(20)
        if os.fork(): time.sleep(0.02)  # one ends while its workers look for work, one while they sleep
        else: check(20)
        """, PYTHONWARNINGS="ignore")  # fmt: skip


@needs_pool
def test_executables_come_and_go() -> None:
    """Code is freed while the pool lives on, right after its last call."""
    run("""
        import gc
        set_num_threads(3)
        program = main.executable.program
        del main
        from supple.runtime.executable import Executable
        for i in range(30):
            main = Executable(program)["main"]
            check(4, i)
            del main
            gc.collect()
        """)


@needs_pool
def test_signals_go_to_the_caller() -> None:
    """Workers block all signals but faults; a handler runs on the main thread while loops are shared."""
    run("""
        seen = []
        signal.signal(signal.SIGALRM, lambda *_: seen.append(threading.current_thread() is threading.main_thread()))
        set_num_threads(4)
        check(20)
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            check(10)
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert seen and all(seen)
        mine = str(threading.get_native_id())
        blocked = []
        for task in os.listdir("/proc/self/task"):
            if task != mine:
                status = open(f"/proc/self/task/{task}/status").read()
                blocked.append(int(status.split("SigBlk:")[1].split()[0], 16))
        bit = 1 << (signal.SIGALRM - 1)
        assert len(blocked) >= 3 and sum(1 for b in blocked if b & bit) >= 3
        assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
        """)
