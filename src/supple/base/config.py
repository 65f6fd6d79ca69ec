"""The only reader of the process environment.

Every setting is read once, at import, and is documented here:

=====================  ==========================================================================
``SUPPLE_CHECK``       ``1`` freezes IR nodes and verifies after every pass (always on in tests)
``SUPPLE_DUMP``        a directory that receives the module's text after every pass
``SUPPLE_CACHE``       a directory for compiled code, or ``0`` for none (default: the user's cache directory)
``SUPPLE_TIME_PASSES`` ``1`` prints after every compilation how long each step took, to standard error
``SUPPLE_NUM_THREADS`` how many threads kernels may use (default: all cores)
``NO_COLOR``           set to anything: no colour in printed modules and diagnostics
=====================  ==========================================================================
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Config:
    """Settings of this process, read at import; only the command line changes one afterwards."""

    check: bool
    dump_dir: Path | None
    cache_dir: Path | None
    time_passes: bool
    num_threads: int | None
    color: bool


def _read() -> Config:
    dump = os.environ.get("SUPPLE_DUMP")
    threads = os.environ.get("SUPPLE_NUM_THREADS")
    if threads is not None and (not threads.isdigit() or int(threads) < 1):
        raise ValueError(f"SUPPLE_NUM_THREADS: expected a positive integer, got {threads!r}")
    check = os.environ.get("SUPPLE_CHECK", "0") not in ("", "0")
    return Config(
        check=check,
        dump_dir=Path(dump) if dump else None,
        cache_dir=_cache_dir(check),
        time_passes=os.environ.get("SUPPLE_TIME_PASSES", "0") not in ("", "0"),
        num_threads=int(threads) if threads else None,
        color="NO_COLOR" not in os.environ,
    )


def _cache_dir(check: bool) -> Path | None:
    """Where compiled programs are kept; nowhere in check mode, which is there to run everything."""
    asked = os.environ.get("SUPPLE_CACHE")
    if asked in ("0", "off") or (asked is None and check):
        return None
    if asked:
        return Path(asked)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "supple" if base and os.path.isabs(base) else None


config = _read()
