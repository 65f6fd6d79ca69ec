"""Helpers that build graph functions in a line or two, for tests of the runtime and of host code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import supple
import supple.ops
from supple.build.block_builder import BlockBuilder
from supple.ir.expr import Var, as_expr
from supple.ir.graph import ShapeExpr
from supple.ir.module import IRModule
from supple.ir.op import OPS
from supple.ir.types import TensorType, prim_type
from supple.runtime import VirtualMachine


def sym(name: str) -> Var:
    """An int64 symbol."""
    return Var(name, prim_type("int64"))


def tensor(*dims: Any, dtype: str = "float32") -> TensorType:
    """``R.Tensor(dims, dtype)``."""
    return TensorType(ShapeExpr(tuple(as_expr(d, "int64") for d in dims)), dtype)


def op(name: str, *args: Any, **attrs: Any) -> Any:
    """A call of a Relax operator."""
    return OPS.get(f"relax.{name}")(*args, **attrs)


def build(
    params: Sequence[Var], body: Callable[..., Any], name: str = "main", mod: IRModule | None = None, **options: Any
) -> IRModule:
    """A module with one more function: ``body(bb, *params)`` emits it and returns the result."""
    bb = BlockBuilder(mod)
    with bb.function(name, list(params), **options):
        bb.emit_func_output(body(bb, *params))
    return bb.get()


def machine(mod: Any, **options: Any) -> VirtualMachine:
    """Compile and load."""
    return VirtualMachine(supple.compile(mod, **options), supple.cpu())


def mlp(layers: int = 2, width: int = 16) -> IRModule:
    """``x @ w + b`` and relu, ``layers`` times."""
    n = sym("n")
    params = [Var("x", tensor(n, width))]
    for i in range(layers):
        params += [Var(f"w{i}", tensor(width, width)), Var(f"b{i}", tensor(width))]

    def body(bb: BlockBuilder, x: Var, *weights: Var) -> Var:
        value: Any = x
        for i in range(layers):
            value = bb.emit(op("matmul", value, weights[2 * i]))
            value = bb.emit(op("add", value, weights[2 * i + 1]))
            value = bb.emit(op("nn.relu", value))
        return value

    return build(params, body)


def mlp_arguments(n: int, layers: int = 2, width: int = 16, seed: int = 0) -> list[np.ndarray]:
    """Arguments of `mlp`."""
    rng = np.random.default_rng(seed)
    arrays = [rng.standard_normal((n, width)).astype("f4")]
    for _ in range(layers):
        arrays += [rng.standard_normal((width, width)).astype("f4"), rng.standard_normal(width).astype("f4")]
    return arrays


def mlp_reference(x: np.ndarray, *weights: np.ndarray) -> np.ndarray:
    """`mlp` in numpy."""
    for i in range(0, len(weights), 2):
        x = np.maximum(x @ weights[i] + weights[i + 1], 0)
    return x


def python_frames(function: Any, *args: Any) -> int:
    """How many Python functions a call enters."""
    count = 0

    def hook(frame: Any, event: str, arg: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(hook)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return count
