"""The only reader of the process environment.

Every setting is read once, at import, and is documented here:

=====================  ==========================================================================
``SUPPLE_CHECK``       ``1`` freezes IR nodes and verifies after every pass (always on in tests)
``SUPPLE_DUMP``        a directory that receives the module's text after every pass
``SUPPLE_NUM_THREADS`` how many threads kernels may use (default: all cores)
``NO_COLOR``           set to anything: no colour in printed modules and diagnostics
=====================  ==========================================================================
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Config:
    """Settings of this process, fixed at import."""

    check: bool
    dump_dir: Path | None
    num_threads: int | None
    color: bool


def _read() -> Config:
    dump = os.environ.get("SUPPLE_DUMP")
    threads = os.environ.get("SUPPLE_NUM_THREADS")
    if threads is not None and (not threads.isdigit() or int(threads) < 1):
        raise ValueError(f"SUPPLE_NUM_THREADS: expected a positive integer, got {threads!r}")
    return Config(
        check=os.environ.get("SUPPLE_CHECK", "0") not in ("", "0"),
        dump_dir=Path(dump) if dump else None,
        num_threads=int(threads) if threads else None,
        color="NO_COLOR" not in os.environ,
    )


config = _read()
