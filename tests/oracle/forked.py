"""What scripts for the oracle's Python share: child processes that answer, since some questions make the oracle die."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def in_children(items: Sequence[Any], answer: Callable[[Any], Any], died: Any, alone: bool = False) -> list[Any]:
    """``answer`` of each item, as JSON carries it. A child process answers one after the other (``alone``: only one);
    where it dies, ``died`` is the answer and another child goes on."""
    done: list[Any] = []
    while len(done) < len(items):
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(receive)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            with os.fdopen(send, "w") as out:
                for item in items[len(done) :][: 1 if alone else None]:
                    out.write(json.dumps(answer(item)) + "\n")
                    out.flush()
            os._exit(0)
        os.close(send)
        with os.fdopen(receive) as back:
            answers = [json.loads(line) for line in back]
        os.waitpid(child, 0)
        done += answers
        if len(done) < len(items) and not (alone and answers):
            done.append(died)
    return done


IN_CHILDREN = f"""
from __future__ import annotations
import json, os, sys
{inspect.getsource(in_children)}
"""
"""`in_children` as text, for the head of a script that another Python runs."""


def evaluated(python: list[str], script: str, data: Any) -> Any:
    """What a script writes as JSON into the file that it is given, which reads ``data`` from its standard input."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "script.py", Path(folder) / "found.json"
        source.write_text(script)
        subprocess.run(
            [*python, str(source), str(target)], input=json.dumps(data), text=True, check=True,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        return json.loads(target.read_text())
