"""What Relax's users ask of a buffer variable; the answers come from a level above, which can simplify."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from supple.ir.node import METHODS


class BufferMethods:
    """Methods and properties of a `Var` whose type is a `BufferType`; on any other they raise ``TypeError``."""

    __slots__ = ()

    def scope(self) -> str:
        """The storage scope."""
        return str(METHODS["buffer.type"](self, "scope").scope)

    def vload(self, begin: Any, dtype: str | None = None) -> Any:
        """The load at ``begin`` (an index, or one for each dimension); a vector dtype loads that many in a row."""
        return METHODS["buffer.vload"](self, begin, dtype)

    def vstore(self, begin: Any, value: Any) -> Any:
        """The statement that stores a value at ``begin``."""
        return METHODS["buffer.vstore"](self, begin, value)

    def offset_of(self, indices: Sequence[Any]) -> tuple[Any, ...]:
        """Where an element lies, in elements from the start of the memory, as the one index of the flattened buffer."""
        offset: tuple[Any, ...] = METHODS["buffer.offset_of"](self, indices)
        return offset

    def get_flattened_buffer(self) -> Any:
        """The buffer as one of a single dimension."""
        return METHODS["buffer.flattened"](self)

    def access_ptr(
        self, access_mask: Any, ptr_type: str = "handle", content_lanes: int = 1, offset: Any = 0, extent: Any = None
    ) -> Any:
        """``T.tvm_access_ptr(...)`` of the elements from ``offset`` on: ``A.access_ptr("rw")``. For backends: native
        code has no pointers."""
        return METHODS["buffer.access_ptr"](self, access_mask, content_lanes, offset, extent)

    @property
    def data(self) -> Any:
        """The storage that the buffer is a view of; its own is written ``A.data`` and stands for the buffer itself.

        Raises ``AttributeError`` for a variable that is no buffer.
        """
        if not hasattr(getattr(self, "ty", None), "offset_factor"):
            raise AttributeError(f"{self} is not a buffer: it has no data")
        source = METHODS["buffer.type"](self, "data").data
        return self if source is None else source

    @property
    def strides(self) -> tuple[Any, ...]:
        """Elements between neighbours of each dimension; empty for a compact buffer."""
        strides: tuple[Any, ...] = METHODS["buffer.type"](self, "strides").strides
        return strides

    @property
    def elem_offset(self) -> Any:
        """Elements before the first one."""
        return METHODS["buffer.elem_offset"](self)

    @property
    def data_alignment(self) -> int:
        """Bytes that the memory's address is a multiple of."""
        return int(METHODS["buffer.type"](self, "data_alignment").align)

    @property
    def offset_factor(self) -> int:
        """Elements that the offset is a multiple of."""
        return int(METHODS["buffer.type"](self, "offset_factor").offset_factor) or 1
