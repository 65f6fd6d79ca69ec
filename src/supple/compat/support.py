"""``tvm.support.utils``: directories that go when they are not needed any more."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from types import TracebackType


class TempDirectory:
    """A directory for a while: removed by `remove`, at the end of ``with``, or with the object.

    ``custom_path`` names a directory that is made (and removed) instead of one with a name of its own.
    """

    def __init__(self, custom_path: str | None = None) -> None:
        if custom_path is None:
            self.temp_dir: str | None = tempfile.mkdtemp()
        else:
            os.makedirs(custom_path, exist_ok=True)
            self.temp_dir = custom_path
        self._finalizer = weakref.finalize(self, shutil.rmtree, self.temp_dir, ignore_errors=True)

    @property
    def path(self) -> str:
        """The directory. Raises ``ValueError`` when it was removed."""
        if self.temp_dir is None:
            raise ValueError("the directory was removed")
        return self.temp_dir

    def relpath(self, name: str) -> str:
        """The path of a file in the directory."""
        return os.path.join(self.path, name)

    def listdir(self) -> list[str]:
        """The names of what is in the directory."""
        return os.listdir(self.path)

    def remove(self) -> None:
        """Remove the directory and all that is in it."""
        self._finalizer()
        self.temp_dir = None

    def __enter__(self) -> TempDirectory:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.remove()


def tempdir(custom_path: str | None = None) -> TempDirectory:
    """A new `TempDirectory`."""
    return TempDirectory(custom_path)
