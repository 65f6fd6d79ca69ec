"""Layers that emit into the builder whose function is being built (``BlockBuilder.current()``), compute definitions as
in Relax."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from supple import topi
from supple.base import dtypes
from supple.base.errors import DiagnosticError
from supple.build.block_builder import BlockBuilder
from supple.ir.expr import IntImm, Var
from supple.ir.graph import Function, ShapeExpr
from supple.ir.module import IRModule
from supple.ir.node import Expr
from supple.ir.types import TensorType
from supple.relax import op
from supple.runtime.tensor import Tensor, tensor

_topi: Any = topi  # some names are made in a loop


def _builder() -> BlockBuilder:
    found = BlockBuilder.current()
    if found is None:
        raise DiagnosticError("no function is being built", hint='with bb.function("main"): ...', rule="builder")
    return found


def emit(expr: Expr, name_hint: str = "") -> Var:
    """Emit into the current builder."""
    return _builder().emit(expr, name_hint)


def emit_te(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Var:
    """Emit a compute definition into the current builder."""
    return _builder().emit_te(func, *args, **kwargs)


def checkpoint(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """``func`` between ``start_checkpoint`` of its arguments and ``end_checkpoint`` of its results, which a gradient
    reads as: compute again what stands between instead of keeping it."""
    return _marked(lambda value: value, func, args, kwargs)


def emit_checkpoint(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`checkpoint` with each mark emitted into the current builder."""
    return _marked(emit, func, args, kwargs)


def _marked(place: Callable[[Expr], Any], func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    def start(value: Any) -> Any:
        return place(op.grad.start_checkpoint(value)) if isinstance(value, Expr) else value

    def end(value: Any) -> Any:
        return place(op.grad.end_checkpoint(value)) if isinstance(value, Expr) else value

    result = func(*(start(a) for a in args), **{key: start(value) for key, value in kwargs.items()})
    return type(result)(end(r) for r in result) if isinstance(result, (list, tuple)) else end(result)


def emit_checkpoint_sequential(
    functions: Sequence[Callable[..., Any]],
    segments: int | Sequence[int],
    input: Var,
    checkpoint_last: bool = False,
) -> Any:
    """Functions one after the other, in ``segments`` groups (or groups that end before each of ``segments``), each a
    checkpoint; the last group is one only with ``checkpoint_last``. Raises ``ValueError`` for impossible groups."""
    count = len(functions)
    if isinstance(segments, int):
        if not 1 <= segments <= count:
            raise ValueError(f"emit_checkpoint_sequential: {segments} groups of {count} functions")
        ends = [count // segments * (i + 1) for i in range(segments - 1)] + [count]
    else:
        ends = [*segments, *([] if segments and segments[-1] == count else [count])]
        if ends[0] <= 0 or sorted(set(ends)) != ends:
            raise ValueError(f"emit_checkpoint_sequential: groups end at rising places, got {list(segments)}")

    def row(begin: int, stop: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for func in functions[begin:stop]:
                value = func(value)
            return value

        return run

    value: Any = input
    for begin, stop in zip([0, *ends], ends, strict=False):
        last = stop == count
        value = row(begin, stop)(value) if last and not checkpoint_last else emit_checkpoint(row(begin, stop), value)
    return value


def Placeholder(shape: Sequence[Any], dtype: str = "float32", name: str = "data") -> Var:
    """An input of a model; while a function is built its name gets a number where it is taken."""
    return _variable("Placeholder", shape, dtype, name)


def Parameter(shape: Sequence[Any], dtype: str = "float32", name: str = "param") -> Var:
    """A weight of a model, named as a `Placeholder` is."""
    return _variable("Parameter", shape, dtype, name)


def _variable(what: str, shape: Sequence[Any], dtype: str, name: str) -> Var:
    if not isinstance(shape, (list, tuple)):
        raise TypeError(f"{what}: expected the shape as a list or tuple, got {type(shape).__name__}")
    builder = BlockBuilder.current()
    unique = name if builder is None else builder.get_unique_name(name)
    return Var(unique, TensorType(ShapeExpr(tuple(shape)), dtype))


class Module:
    """Base of layers: calling one calls its ``forward``; its parameters are found in its fields."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the layer computes."""
        raise NotImplementedError(f"{type(self).__name__} does not define forward")

    def parameters(self) -> list[Var]:
        """The variables in its fields, in lists and in layers of its own, each once, in order."""
        found: list[Var] = []
        stack: list[Any] = [self]
        while stack:
            current = stack.pop()
            if isinstance(current, Var):
                if not any(current is p for p in found):
                    found.append(current)
            elif isinstance(current, Module):
                stack.extend(reversed(list(vars(current).values())))
            elif isinstance(current, dict):
                stack.extend(reversed(list(current.values())))
            elif isinstance(current, (list, tuple)):
                stack.extend(reversed(current))
        return found


class Sequential(Module):
    """Layers one after the other."""

    def __init__(self, *modules: Module) -> None:
        self.modules = list(modules)

    def forward(self, input: Expr) -> Expr:
        """The last layer's value."""
        for module in self.modules:
            input = module(input)
        return input


class ReLU(Module):
    """``max(x, 0)``."""

    def forward(self, input: Expr) -> Var:
        """The activation of the input."""
        return emit_te(_topi.nn.relu, input)


class LogSoftmax(Module):
    """The logarithm of softmax over the last axis."""

    def forward(self, input: Expr) -> Var:
        """The activation of the input."""
        return emit_te(_topi.nn.log_softmax, input)


class Linear(Module):
    """``x @ weight + bias``: weight ``(in_features, out_features)``, bias ``(out_features,)``."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter((in_features, out_features), name="linear_weight")
        self.bias = Parameter((out_features,), name="linear_bias") if bias else None

    def forward(self, input: Expr) -> Var:
        """The layer's value."""
        product = emit_te(_topi.matmul, input, self.weight)
        return product if self.bias is None else emit_te(_topi.add, product, self.bias)


def init_params(mod: IRModule) -> list[Tensor]:
    """A random tensor for each parameter of ``main``: uniform in [0, 1). Raises ``ValueError`` for unknown sizes."""
    main = mod["main"]
    if not isinstance(main, Function):
        raise ValueError("init_params: main is not a graph function")
    rng = np.random.default_rng()
    made = []
    for param in main.params:
        shape = getattr(param.ty, "shape", None)
        values = getattr(shape, "values", None)
        if values is None or not all(isinstance(v, IntImm) for v in values):
            raise ValueError(f"init_params: the shape of parameter {param.name} is not known")
        dtype = dtypes.to_numpy(param.ty.dtype)  # type: ignore[union-attr]
        made.append(tensor(rng.uniform(size=[v.value for v in values]).astype(dtype)))
    return made
