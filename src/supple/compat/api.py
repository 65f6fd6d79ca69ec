"""Functions of the alias that differ from Supple's own in a default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from supple import driver
from supple.base.errors import NotSupportedError
from supple.base.named_target import NamedTarget
from supple.ir.access_path import AccessPath
from supple.ir.module import IRModule
from supple.ir.node import Node
from supple.ir.structural import find_mismatch
from supple.relax.pipeline import get_pipeline
from supple.runtime.device import Device, device
from supple.runtime.tensor import tensor
from supple.transform import BindParams


def compile(
    mod: Any, target: Any = None, *, relax_pipeline: Any = "default", tir_pipeline: Any = "default", **options: Any
) -> Any:
    """`supple.compile` with results of `supple.runtime.Tensor`, as scripts written for TVM expect.

    ``relax_pipeline`` and ``tir_pipeline`` are passes, or names of `relax.get_pipeline`, that run on the module before
    it is compiled; ``"default"`` and None add nothing to what compiling does.
    """
    for pipeline in (relax_pipeline, tir_pipeline):
        if pipeline in (None, "default"):
            continue
        mod = (get_pipeline(pipeline) if isinstance(pipeline, str) else pipeline)(_as_module(mod))
    return driver.compile(mod, target, results="tensor", **options)


def _as_module(mod: Any) -> IRModule:
    return mod if isinstance(mod, IRModule) else IRModule.from_expr(mod)


def build(
    mod: Any,
    target: Any = None,
    params: Mapping[str, Any] | None = None,
    relax_pipeline: Any = "default",
    tir_pipeline: Any = "default",
    exec_mode: str = "bytecode",
    *,
    system_lib: bool | None = None,
) -> Any:
    """``relax.build``: `compile`, with ``params`` of ``main`` (by name) fixed to arrays.

    Both values of ``exec_mode`` give native code here. Raises ``ValueError`` for any other, and `NotSupportedError` for
    a system library.
    """
    if exec_mode not in ("bytecode", "compiled"):
        raise ValueError(f"relax.build: exec_mode is 'bytecode' or 'compiled', got {exec_mode!r}")
    if system_lib:
        raise NotSupportedError("relax.build: system libraries are not supported", hint="executable.save(path)")
    if params:
        mod = BindParams("main", params)(_as_module(mod))
    return compile(mod, target, relax_pipeline=relax_pipeline, tir_pipeline=tir_pipeline)


def convert(value: Any) -> Any:
    """A Python value as compiled functions take it: arrays become tensors, sequences lists, the rest stays."""
    if hasattr(value, "__array__") and not hasattr(value, "numpy") and not isinstance(value, Node):
        return tensor(value)
    return [convert(v) for v in value] if isinstance(value, (list, tuple)) else value


def make_node(type_key: str, **fields: Any) -> dict[str, Any]:
    """Attributes (``ir.DictAttrs``), which are plain dicts here. Raises `NotSupportedError` for other nodes."""
    if type_key.rpartition(".")[2] not in ("DictAttrs", "Attrs"):
        raise NotSupportedError(f"make_node: {type_key} is made by its own class")
    return fields


def device_from_target(target: Any, dev_id: int = 0) -> Device:
    """The device that code for a target runs on."""
    return device(NamedTarget(target).kind.device, dev_id)


def get_first_structural_mismatch(
    lhs: Any, rhs: Any, map_free_vars: bool = False, skip_tensor_content: bool = False
) -> tuple[AccessPath, AccessPath] | None:
    """The path of the first difference on both sides, or None for equal values."""
    found = find_mismatch(lhs, rhs, map_free_vars, skip_tensor_content)
    return None if found is None else (found.path, found.other_path)


def expr_deep_equal(lhs: Any, rhs: Any) -> bool:
    """Whether two scalar expressions are written alike, of the same variables."""
    return find_mismatch(lhs, rhs) is None
