"""What is measured: computations written once over abstract operators, which every peer and Supple give a meaning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from supple.base import dtypes


class Ops(Protocol):
    """The operators that cases are written in."""

    def matmul(self, a: Any, b: Any, out_dtype: str | None = None) -> Any: ...
    def transpose(self, a: Any) -> Any: ...
    def add(self, a: Any, b: Any) -> Any: ...
    def multiply(self, a: Any, b: Any) -> Any: ...
    def exp(self, a: Any) -> Any: ...
    def tanh(self, a: Any) -> Any: ...
    def sigmoid(self, a: Any) -> Any: ...
    def relu(self, a: Any) -> Any: ...
    def gelu(self, a: Any) -> Any: ...
    def softmax(self, a: Any) -> Any: ...
    def layer_norm(self, a: Any, gamma: Any, beta: Any) -> Any: ...
    def sum_rows(self, a: Any) -> Any: ...


@dataclass(frozen=True)
class Input:
    """One operand: ``bound`` ones are weights, known when the program is compiled."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    bound: bool = False


@dataclass(frozen=True)
class Case:
    """One measurement. ``build(ops, *operands)`` is the computation; ``flops`` and ``bytes`` (read and written once)
    place it under the roofline; ``form`` ``"loops"`` is the page's module of hand-written loop functions."""

    name: str
    group: str
    inputs: tuple[Input, ...]
    build: Callable[..., Any]
    flops: float
    bytes: float
    tolerance: float = 1e-3
    form: str = "operators"
    symbolic_rows: bool = False  # the first input's first extent is a symbol of the compiled program

    def given(self, operands: list[Any]) -> list[Any]:
        """The operands that are arguments of the compiled case: those that are not bound."""
        return [a for a, item in zip(operands, self.inputs, strict=True) if not item.bound]

    def arrays(self) -> list[Any]:
        """The operands: floats from the standard normal distribution, integers over their whole range."""
        rng = np.random.default_rng(len(self.name))
        made = []
        for item in self.inputs:
            if dtypes.is_int(item.dtype):
                info = np.iinfo(item.dtype)
                made.append(rng.integers(info.min, info.max + 1, item.shape).astype(item.dtype))
            else:
                made.append(rng.standard_normal(item.shape).astype(dtypes.to_numpy(item.dtype)))
        return made


def _moved(inputs: Sequence[Input], results: Sequence[tuple[int, ...]], result_dtype: str = "float32") -> float:
    read = sum(np.prod(i.shape, dtype=float) * dtypes.nbytes(i.dtype) for i in inputs)
    return float(read + sum(np.prod(r, dtype=float) * dtypes.nbytes(result_dtype) for r in results))


def _mlp(ops: Ops, x: Any, w0: Any, b0: Any, w1: Any, b1: Any) -> Any:
    hidden = ops.relu(ops.add(ops.matmul(x, w0), b0))
    return ops.add(ops.matmul(hidden, w1), b1)


def mlp(n: int, bound: bool, form: str) -> Case:
    """The page's network, 784-256-10 (its operator form has 128 hidden units; both are measured at 256)."""
    inputs = (Input((n, 784)), *(Input(s, bound=bound) for s in ((784, 256), (256,), (256, 10), (10,))))
    flops = 2.0 * n * (784 * 256 + 256 * 10)
    what = "bound" if bound else "parameters"
    return Case(f"mlp-{form}-{what}-{n}", "mlp", inputs, _mlp, flops, _moved(inputs, [(n, 10)]), 1e-3, form, True)


def _product(
    name: str,
    group: str,
    a: tuple[int, ...],
    b: tuple[int, ...],
    build: Callable[..., Any],
    extra: tuple[Input, ...] = (),
    dtype: str = "float32",
    out: str | None = None,
    bound: bool = False,
    tolerance: float = 1e-3,
) -> Case:
    inputs = (Input(a, dtype), Input(b, dtype, bound), *extra)
    m, k = a[-2:]
    n = b[-1] if b[-2] == k else b[-2]
    batch = float(np.prod(a[:-2], dtype=float))
    result = (*a[:-2], m, n)
    moved = _moved(inputs, [result], out or dtype)
    return Case(name, group, inputs, build, 2.0 * batch * m * n * k, moved, tolerance)


def _matmul(ops: Ops, a: Any, b: Any) -> Any:
    return ops.matmul(a, b)


def matmuls() -> list[Case]:
    """Products of float32 matrices."""
    found = [_product(f"cube-{n}", "matmul", (n, n), (n, n), _matmul) for n in (64, 128, 256, 512, 1024, 2048)]
    found += [_product(f"cube-{n}-bound", "matmul", (n, n), (n, n), _matmul, bound=True) for n in (64, 256, 1024)]
    for m, n, k in ((4096, 32, 64), (32, 4096, 64), (64, 64, 4096), (1000, 10, 784), (333, 77, 191)):
        found.append(_product(f"skinny-{m}x{n}x{k}", "matmul", (m, k), (k, n), _matmul))
    found.append(_product("batched-16x128", "matmul", (16, 128, 128), (16, 128, 128), _matmul))
    found.append(_product("batched-64x32x64", "matmul", (64, 32, 64), (64, 64, 32), _matmul))
    for n in (256, 1024):
        found.append(
            _product(f"right-transposed-{n}", "matmul", (n, n), (n, n), lambda o, a, b: o.matmul(a, o.transpose(b)))
        )
        left = Case(
            f"left-transposed-{n}", "matmul", (Input((n, n)), Input((n, n))),
            lambda o, a, b: o.matmul(o.transpose(a), b), 2.0 * n**3, 12.0 * n * n,
        )  # fmt: skip
        found.append(left)
    for k, n in ((784, 256), (1024, 1024), (4096, 4096)):
        found.append(_product(f"gemv-{k}x{n}", "gemv", (1, k), (k, n), _matmul, bound=True))
        found.append(_product(f"gemv-{k}x{n}-parameter", "gemv", (1, k), (k, n), _matmul))
    for m in (32, 512):
        bias = (Input((1024,), bound=True),)
        shape, weights = (m, 1024), (1024, 1024)
        found.append(
            _product(
                f"bias-relu-{m}",
                "epilogue",
                shape,
                weights,
                lambda o, a, b, c: o.relu(o.add(o.matmul(a, b), c)),
                bias,
                bound=True,
            )
        )
        found.append(
            _product(
                f"bias-gelu-{m}",
                "epilogue",
                shape,
                weights,
                lambda o, a, b, c: o.gelu(o.add(o.matmul(a, b), c)),
                bias,
                bound=True,
            )
        )
    return found


def low_precision() -> list[Case]:
    """int8 products summed in int32; float16 and bfloat16 storage summed in float32."""
    found = []
    for n in (256, 1024):
        found.append(
            _product(
                f"int8-{n}",
                "int8",
                (n, n),
                (n, n),
                lambda o, a, b: o.matmul(a, b, "int32"),
                dtype="int8",
                out="int32",
                bound=True,
                tolerance=0.0,
            )
        )
        for dtype in ("float16", "bfloat16"):
            found.append(
                _product(
                    f"{dtype}-{n}",
                    "half",
                    (n, n),
                    (n, n),
                    lambda o, a, b: o.matmul(a, b, "float32"),
                    dtype=dtype,
                    out="float32",
                    bound=True,
                    tolerance=2e-2,
                )
            )
    return found


def memory_bound() -> list[Case]:
    """Elementwise chains and row reductions."""
    found = []
    for rows, columns in ((64, 256), (1024, 1024), (4096, 1024)):
        x = Input((rows, columns))
        size = float(rows * columns)
        found.append(
            Case(f"chain-{rows}x{columns}", "elementwise", (x, x),
                 lambda o, a, b: o.relu(o.add(o.multiply(a, b), a)), 3 * size, 12 * size))  # fmt: skip
        found.append(
            Case(f"silu-{rows}x{columns}", "elementwise", (x,),
                 lambda o, a: o.multiply(a, o.sigmoid(a)), 2 * size, 8 * size))  # fmt: skip
        found.append(
            Case(f"gelu-{rows}x{columns}", "elementwise", (x,), lambda o, a: o.gelu(a), size, 8 * size))  # fmt: skip
        found.append(
            Case(f"tanh-exp-{rows}x{columns}", "elementwise", (x,), lambda o, a: o.tanh(o.exp(a)), 2 * size, 8 * size)
        )
        found.append(
            Case(f"softmax-{rows}x{columns}", "rows", (x,), lambda o, a: o.softmax(a), 4 * size, 8 * size))  # fmt: skip
        found.append(
            Case(f"layer-norm-{rows}x{columns}", "rows", (x, Input((columns,)), Input((columns,))),
                 lambda o, a, g, b: o.layer_norm(a, g, b), 6 * size, 8 * size))  # fmt: skip
        found.append(
            Case(f"row-sum-{rows}x{columns}", "rows", (x,), lambda o, a: o.sum_rows(a), size, 4 * size + 4 * rows)
        )
    return found


def all_cases() -> list[Case]:
    """Every case, in the order of the report."""
    sizes = (1, 16, 64, 256, 1024, 4096)
    networks = [mlp(n, bound, form) for form in ("operators", "loops") for bound in (True, False) for n in sizes]
    return [*networks, *matmuls(), *low_precision(), *memory_bound()]
