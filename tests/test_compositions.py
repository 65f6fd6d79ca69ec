"""Random compositions of operators with symbolic shapes: interpreter, legalised program, native code and numpy agree
(`python tests/compositions.py` for long runs)."""

from __future__ import annotations

import collections

import pytest
from compositions import one


@pytest.mark.parametrize("seed", range(3))
def test_interpreter_native_code_and_numpy_agree(seed: int) -> None:
    assert one(seed, collections.Counter()) is None
