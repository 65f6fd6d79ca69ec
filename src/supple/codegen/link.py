"""Linking object code into this process with LLVM's ORC.

The same bytes serve the JIT, a disk cache and a saved artifact. Every external symbol must be listed with its address:
an object that needs anything else is refused by name before it can run.
"""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import llvmlite.binding as llvm

from supple.base.errors import InternalError
from supple.base.target import host
from supple.codegen.llvm import target_machine


@dataclass(frozen=True)
class Program:
    """Object code with what it defines and what it needs: plain data, as a cache or an artifact stores it."""

    objects: tuple[bytes, ...]
    exports: tuple[str, ...]
    imports: tuple[str, ...] = field(default=())


class Library:
    """Code that is loaded in this process: ``library["name"]`` is an address. Freed when the object dies."""

    def __init__(self, tracker: llvm.ResourceTracker, exports: Iterable[str]) -> None:
        self._tracker = tracker
        self._addresses = {name: int(tracker[name]) for name in exports}

    def __getitem__(self, name: str) -> int:
        return self._addresses[name]

    def __contains__(self, name: object) -> bool:
        return name in self._addresses


@functools.lru_cache(maxsize=1)
def _jit() -> llvm.LLJIT:
    return llvm.create_lljit_compiler(target_machine(host()), use_jit_link=True, suppress_errors=True)


_serial = itertools.count()


def link(program: Program, imports: Mapping[str, int] | None = None) -> Library:
    """Load a program. ``imports`` maps each external symbol it may use to an address.

    Raises `InternalError` that lists the symbols which are used but not given, and those that should be exported but
    are not defined.
    """
    known = dict(imports or {})
    defined: set[str] = set()
    needed: set[str] = set()
    for data in program.objects:
        here = elf_symbols(data)
        if here is not None:
            defined |= here[0]
            needed |= here[1]
    if defined:
        missing = sorted(needed - defined - set(known))
        if missing:
            raise InternalError(f"generated code needs symbols that are not on the list: {', '.join(missing)}")
        absent = sorted(set(program.exports) - defined)
        if absent:
            raise InternalError(f"generated code does not define {', '.join(absent)}")
    builder = llvm.JITLibraryBuilder()
    for data in program.objects:
        builder.add_object_img(data)
    for name, address in known.items():
        if not address:
            raise InternalError(f"symbol {name} has no address")
        builder.import_symbol(name, address)
    for name in program.exports:
        builder.export_symbol(name)
    try:
        tracker = builder.link(_jit(), f"supple.{next(_serial)}")
    except RuntimeError as error:
        raise InternalError(f"linking failed: {error}") from None
    return Library(tracker, program.exports)


_SYMBOL = struct.Struct("<IBBHQQ")


def elf_symbols(data: bytes) -> tuple[set[str], set[str]] | None:
    """Names a 64-bit ELF object defines and those it leaves undefined; None for other formats."""
    if data[:5] != b"\x7fELF\x02":
        return None
    offset, = struct.unpack_from("<Q", data, 0x28)
    size, count, _ = struct.unpack_from("<HHH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + i * size) for i in range(count)]
    defined: set[str] = set()
    undefined: set[str] = set()
    for section in sections:
        if section[1] != 2:  # SHT_SYMTAB
            continue
        strings = sections[section[6]]
        for position in range(section[4] + _SYMBOL.size, section[4] + section[5], _SYMBOL.size):
            name, info, _, index, _, _ = _SYMBOL.unpack_from(data, position)
            start = strings[4] + name
            text = data[start : data.index(b"\0", start)].decode()
            if text and info >> 4 in (1, 2):  # global or weak
                (undefined if index == 0 else defined).add(text)
    return defined, undefined
