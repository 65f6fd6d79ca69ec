"""What a compilation makes, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from supple.runtime.abi import ErrorSite
from supple.runtime.signature import FunctionInfo
from supple.runtime.tensor import NDArray


@dataclass(frozen=True, slots=True)
class PackedCall:
    """A call from compiled code into Python. ``kind`` says what is called:

    * ``"registered"``: the registered function ``name``; ``"context"``: the same, with the running machine first;
    * ``"function"``: nothing; the result is the registered function itself;
    * ``"invoke"``: the first argument; ``"partial"``: nothing; the result is the first argument with the others fixed;
    * ``"print"``, ``"assert"``: what ``R.print`` and ``R.assert_op`` do, with a ``format``.
    """

    name: str
    format: str = ""
    kind: str = "registered"


@dataclass(eq=False)
class Program:
    """All that was compiled, as plain data: what an artifact stores.

    ``objects`` is object code; ``functions`` are the entries; ``constants`` the tensors it refers to by index;
    ``sites`` the places that can fail; ``calls`` the calls into Python; ``text`` the host functions for reading;
    ``closures`` the functions that are used as values; ``machine`` the architecture and the features of the processor
    that the code is for.
    """

    objects: tuple[bytes, ...]
    functions: tuple[FunctionInfo, ...]
    constants: tuple[NDArray | str | None, ...] = ()
    sites: tuple[ErrorSite, ...] = ()
    calls: tuple[PackedCall, ...] = ()
    text: str = ""
    results: str = "match"
    timings: Mapping[str, float] = field(default_factory=dict)
    closures: tuple[FunctionInfo, ...] = ()
    machine: tuple[str, ...] = ()
