"""What the numbers mean that ``vm.builtin.match_shape`` and ``vm.builtin.make_shape`` take."""

from __future__ import annotations

from enum import IntEnum

from supple.runtime import vm_builtins


class MatchShapeCode(IntEnum):
    """What ``vm.builtin.match_shape`` does with an extent."""

    ASSERT_EQUAL_TO_IMM = vm_builtins.ASSERT_EQUAL_TO_IMM
    STORE_TO_HEAP = vm_builtins.STORE_TO_HEAP
    NO_OP = vm_builtins.NO_OP
    ASSERT_EQUAL_TO_LOAD = vm_builtins.ASSERT_EQUAL_TO_LOAD


class MakeShapeCode(IntEnum):
    """Where ``vm.builtin.make_shape`` finds an extent."""

    USE_IMM = vm_builtins.USE_IMM
    LOAD_SHAPE = vm_builtins.LOAD_SHAPE
