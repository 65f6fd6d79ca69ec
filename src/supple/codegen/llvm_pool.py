"""Object code of many kernels, made by other processes while this one goes on writing kernels.

LLVM as llvmlite offers it holds one lock per process, so threads do not help. Worker processes get a module's text and
give back object code, by length-prefixed messages on their pipes. They start when there is enough to do; at the end
this process takes what is still waiting. A worker that dies only leaves its work to others.
"""

from __future__ import annotations

import contextlib
import pickle
import struct
import subprocess
import sys
import threading
from collections import deque
from types import TracebackType
from typing import IO, Any

from supple.base.errors import InternalError
from supple.base.target import Target, available_processors
from supple.codegen.llvm import compile_text

FIRST_WORKER = 1 << 20  # characters of text that wait before a process is started (it takes about 0.3 s to be of use)
_LENGTH = struct.Struct("<Q")


class ObjectCompiler:
    """``add`` modules' texts, then take ``results`` in the same order. Use it as a context manager."""

    def __init__(self, target: Target, workers: int | None = None) -> None:
        self.target = target
        self.most = available_processors() - 1 if workers is None else workers
        self._texts: list[str] = []
        self._objects: dict[int, bytes] = {}
        self._waiting: deque[int] = deque()
        self._error: Exception | None = None
        self._lock = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._closed = False

    def __enter__(self) -> ObjectCompiler:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closed = True
            self._lock.notify_all()
        for process in self._processes:
            process.kill()
        for thread in self._threads:
            thread.join()
        for process in self._processes:
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream is not None
                with contextlib.suppress(OSError):  # what was not sent to a process that is gone
                    stream.close()

    def add(self, text: str) -> None:
        """Another module to compile, some time."""
        with self._lock:
            self._waiting.append(len(self._texts))
            self._texts.append(text)
            self._lock.notify()
            started = len(self._threads)
            due = sum(len(self._texts[i]) for i in self._waiting) >= FIRST_WORKER * (started + 1)
        if started < self.most and due:
            self._start()

    def results(self) -> list[bytes]:
        """The object code of every module. Raises `InternalError` for text that LLVM refuses."""
        while True:
            with self._lock:
                if self._error is not None:
                    raise self._error
                if len(self._objects) == len(self._texts):
                    return [self._objects[i] for i in range(len(self._texts))]
                if not self._waiting:
                    self._lock.wait()
                    continue
                index = self._waiting.popleft()
            made = compile_text(self._texts[index], self.target)
            with self._lock:
                self._objects[index] = made

    def _start(self) -> None:
        command = f"import sys; sys.path[:] = {sys.path!r}; from supple.codegen.llvm_pool import serve; serve()"
        process = subprocess.Popen(
            [sys.executable, "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        thread = threading.Thread(target=self._feed, args=(process,), name="supple-llvm", daemon=True)
        self._processes.append(process)
        self._threads.append(thread)
        thread.start()

    def _feed(self, process: subprocess.Popen[bytes]) -> None:
        """Give one worker one module after the other until everything is done."""
        assert process.stdin is not None and process.stdout is not None
        while True:
            with self._lock:
                while not self._waiting and not self._closed:
                    self._lock.wait()
                if self._closed:
                    return
                index = self._waiting.pop()  # the newest: this process will take the oldest
            try:
                _send(process.stdin, pickle.dumps((self._texts[index], self.target)))
                answer = pickle.loads(_receive(process.stdout))
            except (OSError, EOFError, pickle.UnpicklingError):  # the worker is gone: somebody else compiles it
                with self._lock:
                    self._waiting.appendleft(index)
                    self._lock.notify_all()
                return
            with self._lock:
                if isinstance(answer, bytes):
                    self._objects[index] = answer
                else:
                    self._error = InternalError(answer)
                self._lock.notify_all()


def _send(stream: IO[bytes], data: bytes) -> None:
    stream.write(_LENGTH.pack(len(data)))
    stream.write(data)
    stream.flush()


def _receive(stream: IO[bytes]) -> bytes:
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    return _exactly(stream, length)


def _exactly(stream: IO[bytes], count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise EOFError
    return data


def serve() -> None:
    """What a worker process does: read modules from standard input, write object code to standard output."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            text, target = pickle.loads(_receive(source))
        except EOFError:
            return
        answer: Any
        try:
            answer = compile_text(text, target)
        except InternalError as error:
            answer = str(error)
        _send(sink, pickle.dumps(answer))
