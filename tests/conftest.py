"""Tests run in check mode: nodes are frozen, modules are verified after every pass."""

import os

os.environ["SUPPLE_CHECK"] = "1"  # before supple is imported
os.environ.setdefault("NO_COLOR", "1")
