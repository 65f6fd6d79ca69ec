"""``tvm.testing``: comparing results."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.ir.structural import assert_structural_equal


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7) -> None:
    """Raise ``AssertionError`` when two arrays (or Tensors) differ in shape or by more than the tolerance."""
    left, right = np.asanyarray(actual), np.asanyarray(desired)
    np.testing.assert_array_equal(left.shape, right.shape)
    np.testing.assert_allclose(left, right, rtol=rtol, atol=atol, verbose=True)


__all__ = ["assert_allclose", "assert_structural_equal"]
