"""``tvm.script.parser.core.doc``: syntax trees, which are those of Python's own ``ast``, as in Supple's parser."""

from __future__ import annotations

import ast
from ast import *  # noqa: F403 - the classes of nodes, under their own names
from typing import Any


def parse(source: str, filename: str = "<unknown>", mode: str = "exec") -> ast.AST:  # type: ignore[no-redef]
    """The tree of a Python text."""
    tree: ast.AST = ast.parse(source, filename, mode)
    return tree


def to_doc(node: Any) -> Any:
    """The node itself: Python's trees are the trees of this module."""
    return node


def from_doc(node: Any) -> Any:
    """The node itself."""
    return node
