"""Names and literals in printed text: unique Python identifiers, strings, numbers that read back to the same bits."""

from __future__ import annotations

import keyword
import re
import unicodedata
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.ir.expr import Var

RESERVED = frozenset(("T", "R", "I", "cls", "Module", "metadata", "range", "float", *keyword.kwlist))


def identifier(hint: str) -> str:
    """A Python identifier close to ``hint``, as Python itself would read it."""
    text = unicodedata.normalize("NFKC", hint)
    if not text.isidentifier():
        text = re.sub(r"\W", "_", text, flags=re.UNICODE)
        if not text or text[0].isdigit():
            text = f"v_{text}" if text else "v"
        if not text.isidentifier():
            text = "v_" + re.sub(r"[^A-Za-z0-9_]", "_", text)
        text = unicodedata.normalize("NFKC", text)
    if text.startswith("__"):  # Python would rename it in a class
        text = f"v{text}"
    return f"{text}_" if text in RESERVED else text


class Names:
    """Gives every variable a name that is unique among the variables in sight.

    ``open_scope`` and ``close_scope`` follow the text's nesting: names of a closed scope may be used again.
    """

    def __init__(self, reserved: frozenset[str] = frozenset(), addresses: bool = False) -> None:
        """``reserved`` names are numbered like names that are taken (otherwise an underscore sets them apart).
        With ``addresses`` every name ends in its variable's address."""
        self.reserved = reserved
        self.addresses = addresses
        self._names: dict[int, str] = {}
        self._scopes: list[set[str]] = [set()]
        self._defined: list[list[Var]] = [[]]

    def open_scope(self) -> None:
        self._scopes.append(set())
        self._defined.append([])

    def close_scope(self) -> None:
        self._scopes.pop()
        for var in self._defined.pop():
            self._names.pop(id(var), None)

    def taken(self, name: str) -> bool:
        return name in self.reserved or any(name in scope for scope in self._scopes)

    def fresh(self, hint: str) -> str:
        """A new name in the innermost scope."""
        base = hint if hint in self.reserved else identifier(hint)
        name, count = base, 0
        while self.taken(name):
            count += 1
            name = f"{base}{'' if base.endswith('_') else '_'}{count}"
        self._scopes[-1].add(name)
        return name

    @property
    def depth(self) -> int:
        """The innermost scope's number."""
        return len(self._scopes) - 1

    def define(self, var: Var, depth: int | None = None) -> str:
        """Name a variable in the innermost scope, or in one further out."""
        name = self.fresh(f"{var.name}_{id(var):#x}" if self.addresses else var.name)
        if depth is not None and depth != self.depth:
            self._scopes[-1].discard(name)
            self._scopes[depth].add(name)
        self._names[id(var)] = name
        self._defined[-1 if depth is None else depth].append(var)  # which also keeps it alive: its id stays its own
        return name

    def find(self, var: Var) -> str | None:
        """The variable's name if it has one."""
        return self._names.get(id(var))

    def get(self, var: Var) -> str:
        """The variable's name; one that was never defined gets one at its first use."""
        return self._names.get(id(var)) or self.define(var)


def quote(text: str) -> str:
    """A Python string literal in double quotes."""
    raw = repr(text)
    if raw[0] == '"':
        return raw
    return '"' + raw[1:-1].replace("\\'", "'").replace('"', '\\"') + '"'


def float_text(value: float, dtype: str, digits: int = 0) -> str:
    """The shortest decimal that reads back to the same value in ``dtype``; ``"inf"``, ``"-inf"``, ``"nan"`` quoted.
    With ``digits`` the value has that many significant ones, whole numbers all of theirs."""
    if value != value:
        return '"nan"'
    with np.errstate(all="ignore"):
        number = dtypes.to_numpy(dtypes.element(dtype)).type(value)
    if np.isnan(number):  # what is too large for a dtype without infinities
        return '"nan"'
    if np.isinf(number):
        return '"inf"' if value > 0 else '"-inf"'
    if digits:
        return digits_text(value, digits)
    text = repr(float(value)) if number.dtype.itemsize == 8 else str(number)  # shortest that reads back
    return text if any(c in text for c in ".en") else f"{text}.0"


def digits_text(value: float, digits: int) -> str:
    """A finite number with so many significant digits; whole numbers with all of theirs and ``.0``."""
    return f"{value:.1f}" if value == int(value) else f"{value:.{digits}g}"


def plain_number(value: Any, digits: int = 0) -> str:
    """A Python number as an expression; ``digits`` as for `float_text`."""
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            return f'float("{value}")'
        return digits_text(value, digits) if digits else repr(value)
    return repr(value)
