"""Tests run in check mode: nodes are frozen, modules are verified after every pass."""

import os
import sys

os.environ["SUPPLE_CHECK"] = "1"  # before supple is imported
os.environ.setdefault("NO_COLOR", "1")

# many tests start processes: without files of bytecode each would compile every module of Supple first
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
