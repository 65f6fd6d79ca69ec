"""Tests run in check mode: nodes are frozen, modules are verified after every pass."""

import gc
import os
import sys

os.environ["SUPPLE_CHECK"] = "1"  # before supple is imported
os.environ.setdefault("NO_COLOR", "1")

# many tests start processes: without files of bytecode each would compile every module of Supple first
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


def pytest_collection_finish() -> None:
    """Tests of ownership collect garbage hundreds of times: they need not look through what stays until the end."""
    gc.collect()
    gc.freeze()
