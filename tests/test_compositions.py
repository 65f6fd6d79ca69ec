"""Random compositions of operators with symbolic shapes: interpreter, legalised program, native code and numpy agree
(`python tests/compositions.py` for long runs)."""

from __future__ import annotations

import collections

import pytest
from compositions import one

# what long runs found, and some more: a tuple of one result, negative sizes, sizes written in another order,
# dimensions that only broadcasting knows, choices in sizes, too few elements for topk
FOUND = [1016, 1047, 1072, 20066, 20180, 20504]


@pytest.mark.parametrize("seed", [*FOUND, *range(6)])
def test_interpreter_native_code_and_numpy_agree(seed: int) -> None:
    assert one(seed, collections.Counter()) is None
