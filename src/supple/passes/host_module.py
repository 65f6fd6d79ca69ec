"""The tables that the host functions of one executable share: constants, strings, functions that are values, calls
into Python."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from supple.ir.host import HostFunction
from supple.ir.loop import PrimFunc
from supple.ir.types import BufferType
from supple.passes.noalias import has_opaque_accesses, written_places
from supple.runtime.program import PackedCall


@dataclass
class HostModule:
    """The tables that all functions of an executable share."""

    functions: list[HostFunction] = field(default_factory=list)
    constants: list[Any] = field(default_factory=list)
    closures: list[str] = field(default_factory=list)
    calls: list[PackedCall] = field(default_factory=list)
    _constant_index: dict[int, int] = field(default_factory=dict)
    _string_index: dict[str, int] = field(default_factory=dict)
    _call_index: dict[PackedCall, int] = field(default_factory=dict)
    _nothing: int | None = None
    _stored: dict[int, frozenset[int]] = field(default_factory=dict)
    _keep: list[object] = field(default_factory=list)

    def constant(self, data: Any) -> int:
        """The index of a constant's data (an array, shared by identity)."""
        if id(data) not in self._constant_index:
            self._constant_index[id(data)] = len(self.constants)
            self.constants.append(np.asarray(data))
            self._keep.append(data)
        return self._constant_index[id(data)]

    def string(self, text: str) -> int:
        """The index of a string constant."""
        if text not in self._string_index:
            self._string_index[text] = len(self.constants)
            self.constants.append(text)
        return self._string_index[text]

    def nothing(self) -> int:
        """The index of the constant None."""
        if self._nothing is None:
            self._nothing = len(self.constants)
            self.constants.append(None)
        return self._nothing

    def closure(self, name: str) -> int:
        """The index of a function that is used as a value."""
        if name not in self.closures:
            self.closures.append(name)
        return self.closures.index(name)

    def stored(self, func: PrimFunc) -> frozenset[int]:
        """The places of the parameters that a loop function stores into."""
        found = self._stored.get(id(func))
        if found is None:
            found = self._stored[id(func)] = written_places(func)
            self._keep.append(func)
        return found

    def written(self, func: PrimFunc) -> frozenset[int]:
        """The places of the parameters that a loop function writes, or may write under another name."""
        if has_opaque_accesses(func):
            return frozenset(i for i, p in enumerate(func.params) if isinstance(p.ty, BufferType))
        return self.stored(func)

    def call(self, call: PackedCall) -> int:
        """The index of a call into Python."""
        if call not in self._call_index:
            self._call_index[call] = len(self.calls)
            self.calls.append(call)
        return self._call_index[call]
