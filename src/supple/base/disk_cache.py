"""Bytes on disk by key: what was compiled once need not be compiled by the next process.

Files are written whole and then renamed, so that readers and writers of any number of processes never see a part of
one; each carries a checksum, and what does not match is removed. The directory belongs to the user alone (mode 0700);
another's is not used. A disk that is full or read-only only means that nothing is kept: a warning says so once.

A library for this (diskcache) takes as long to import as a cached program may take to load in all.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import secrets
import stat
import warnings
from pathlib import Path

from supple.base.config import config

_DIGEST = 16
_MAGIC = b"supple1\n"
_EVICT_EVERY = 16  # writes of a process between two looks at the size of everything


class DiskCache:
    """A directory of at most about ``limit`` bytes; what was not used for longest goes first."""

    def __init__(self, directory: Path, limit: int = 1 << 30) -> None:
        self.directory = directory
        self.limit = limit
        self._usable: bool | None = None
        self._writes = 0

    def get(self, key: str) -> bytes | None:
        """The bytes of a key, or None."""
        if not self._ready():
            return None
        file = self._file(key)
        try:
            data = file.read_bytes()
        except OSError:
            return None
        payload = data[len(_MAGIC) + _DIGEST :]
        if not data.startswith(_MAGIC) or data[len(_MAGIC) : len(_MAGIC) + _DIGEST] != _digest(payload):
            with contextlib.suppress(OSError):
                file.unlink()
            return None
        with contextlib.suppress(OSError):  # another process may have removed it
            os.utime(file)
        return payload

    def put(self, key: str, payload: bytes) -> None:
        """Keep bytes under a key."""
        if not self._ready():
            return
        file = self._file(key)
        draft = file.with_name(f"{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            file.parent.mkdir(mode=0o700, exist_ok=True)
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                out.write(_MAGIC + _digest(payload) + payload)
            os.replace(draft, file)
        except OSError as error:
            with contextlib.suppress(OSError):
                draft.unlink()
            self._refuse(str(error))
            return
        self._writes += 1
        if self._writes % _EVICT_EVERY == 1:
            self._evict()

    def _file(self, key: str) -> Path:
        return self.directory / key[:2] / key

    def _ready(self) -> bool:
        """Whether the directory is there and the user's own."""
        if self._usable is None:
            self._usable = True
            try:
                self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
                found = self.directory.stat()
            except OSError as error:
                self._refuse(str(error))
            else:
                if hasattr(os, "getuid") and (found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077):
                    self._refuse("others may write there (it must be the user's own, with mode 0700)")
        return self._usable

    def _refuse(self, why: str) -> None:
        self._usable = False
        warnings.warn(f"compiled programs are not kept in {self.directory}: {why}", RuntimeWarning, stacklevel=4)

    def _evict(self) -> None:
        """Remove the files that were not used for longest until what is left is under the limit."""
        found: list[tuple[float, int, Path]] = []
        for file in self.directory.glob("*/*"):
            with contextlib.suppress(OSError):
                status = file.stat()
                found.append((status.st_mtime, status.st_size, file))
        total = sum(size for _, size, _ in found)
        for _, size, file in sorted(found, key=lambda entry: entry[0]):
            if total <= self.limit:
                return
            with contextlib.suppress(OSError):
                file.unlink()
            total -= size


@functools.cache
def shared_cache() -> DiskCache | None:
    """The cache of this process (``SUPPLE_CACHE``); None where nothing is kept."""
    return None if config.cache_dir is None else DiskCache(config.cache_dir)


def _digest(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_DIGEST).digest()
