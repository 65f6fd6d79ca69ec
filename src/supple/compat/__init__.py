"""Running scripts written for TVM."""

from supple.compat.alias import install_as_tvm
from supple.compat.table import ROWS, Row

__all__ = ["ROWS", "Row", "install_as_tvm"]
