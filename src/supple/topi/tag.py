"""``topi.tag``: the notes that tell how a tensor's elements come about."""

from __future__ import annotations

ELEMWISE = "elemwise"
BROADCAST = "broadcast"
INJECTIVE = "injective"
COMM_REDUCE = "comm_reduce"
COMM_REDUCE_IDX = "comm_reduce_idx"


def is_broadcast(tag: str) -> bool:
    """Whether each element is computed of one element of each operand, shapes broadcast."""
    return tag in (ELEMWISE, BROADCAST)


def is_injective(tag: str) -> bool:
    """Whether each element of the result is computed of one element of each operand, wherever that lies."""
    return tag in (ELEMWISE, BROADCAST, INJECTIVE)
