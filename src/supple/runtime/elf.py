"""Which symbols an object file defines and needs, so that missing ones are named before anything is loaded."""

from __future__ import annotations

import struct

_SYMBOL = struct.Struct("<IBBHQQ")


def elf_symbols(data: bytes) -> tuple[set[str], set[str]] | None:
    """Names a 64-bit ELF object defines and those it leaves undefined; None for other formats."""
    if data[:5] != b"\x7fELF\x02":
        return None
    (offset,) = struct.unpack_from("<Q", data, 0x28)
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
