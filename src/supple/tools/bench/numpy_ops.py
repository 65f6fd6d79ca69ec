"""Cases in numpy: a peer, and what every other result is compared with."""

from __future__ import annotations

from typing import Any

import numpy as np

from supple.base import dtypes


class NumpyOps:
    """The operators of cases in numpy."""

    def matmul(self, a: Any, b: Any, out_dtype: str | None = None) -> Any:
        if out_dtype is not None:
            kind = dtypes.to_numpy(out_dtype)
            a, b = a.astype(kind), b.astype(kind)
        return a @ b

    def transpose(self, a: Any) -> Any:
        return a.T

    def add(self, a: Any, b: Any) -> Any:
        return a + b

    def multiply(self, a: Any, b: Any) -> Any:
        return a * b

    def exp(self, a: Any) -> Any:
        return np.exp(a)

    def tanh(self, a: Any) -> Any:
        return np.tanh(a)

    def sigmoid(self, a: Any) -> Any:
        return 1 / (1 + np.exp(-a))

    def relu(self, a: Any) -> Any:
        return np.maximum(a, 0)

    def gelu(self, a: Any) -> Any:
        return 0.5 * a * (1 + _erf(a * np.float32(0.7071067811865476)))

    def softmax(self, a: Any) -> Any:
        powers = np.exp(a - a.max(-1, keepdims=True))
        return powers / powers.sum(-1, keepdims=True)

    def layer_norm(self, a: Any, gamma: Any, beta: Any) -> Any:
        centered = a - a.mean(-1, keepdims=True)
        variance = np.square(centered).mean(-1, keepdims=True)
        return centered / np.sqrt(variance + np.float32(1e-5)) * gamma + beta

    def sum_rows(self, a: Any) -> Any:
        return a.sum(-1)


def _erf(x: Any) -> Any:
    """The error function to 1.5e-7 (Abramowitz and Stegun, 7.1.26): numpy has none."""
    t = 1 / (1 + np.float32(0.3275911) * np.abs(x))
    coefficients = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
    total = np.zeros_like(x)
    for c in coefficients:
        total = (total + np.float32(c)) * t
    return np.sign(x) * (1 - total * np.exp(-x * x))
