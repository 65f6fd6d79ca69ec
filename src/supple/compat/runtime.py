"""Names of ``tvm.runtime`` and of the printer that differ from Supple's own."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from supple.base.errors import NotSupportedError, SuppleError
from supple.compat.api import convert
from supple.ir.expr import const
from supple.ir.node import Node
from supple.runtime.device import Device
from supple.runtime.tensor import Tensor, tensor

_KINDS = ("cpu", "llvm", "c")

Scriptable = Node
"""What prints as a program (``script``, ``show``): every node."""


def array(arr: Any, device: Device | None = None, mem_scope: str | None = None) -> Tensor:
    """`supple.runtime.tensor`, but of lists and numbers with the dtype that numpy gives them (floats are float64).

    Raises `NotSupportedError` for a scope other than ``"global"``."""
    if mem_scope not in (None, "global"):
        raise NotSupportedError(f"tensor: the memory scope {mem_scope!r} is not supported")
    known = hasattr(arr, "__dlpack__") or isinstance(arr, (np.ndarray, Tensor))
    return tensor(arr if known else np.array(arr), device=device)


def enabled(target: str) -> bool:
    """Whether code for a kind of target can be made here. Raises `SuppleError` for a name that is no target."""
    if target in _KINDS:
        return target != "c"
    if target in ("cuda", "gpu", "rocm", "opencl", "vulkan", "metal", "vpi", "hexagon", "webgpu", "ext_dev", "rpc"):
        return False
    raise SuppleError(f"unknown optional runtime {target!r}")


def save_param_dict(params: Mapping[str, Any]) -> bytes:
    """Named arrays as bytes that `load_param_dict` reads: a numpy archive (TVM's own format is not read)."""
    file = io.BytesIO()
    np.savez(file, **{name: np.asarray(_array(value)) for name, value in params.items()})  # type: ignore[arg-type]
    return file.getvalue()


def _array(value: Any) -> Any:
    return value.numpy() if isinstance(value, Tensor) else value


def load_param_dict(param_bytes: bytes) -> dict[str, Tensor]:
    """The named arrays that `save_param_dict` wrote. Raises ``ValueError`` for other bytes."""
    try:
        with np.load(io.BytesIO(bytes(param_bytes)), allow_pickle=False) as found:
            return {name: tensor(found[name]) for name in found.files}
    except (OSError, EOFError, ValueError) as error:
        raise ValueError("load_param_dict: not what save_param_dict writes") from error


def save_param_dict_to_file(params: Mapping[str, Any], path: str | Path) -> None:
    """`save_param_dict` into a file."""
    Path(path).write_bytes(save_param_dict(params))


def load_param_dict_from_file(path: str | Path) -> dict[str, Tensor]:
    """`load_param_dict` of a file."""
    return load_param_dict(Path(path).read_bytes())


def system_lib(symbol_prefix: str = "") -> Any:
    """Refused: modules are not linked into the process. Raises `NotSupportedError`."""
    raise NotSupportedError("system_lib is not supported", hint="runtime.load_module(path)")


def load_static_library(path: str, func_names: Sequence[str]) -> Any:
    """Refused. Raises `NotSupportedError`."""
    raise NotSupportedError("load_static_library is not supported", hint="runtime.load_module(path)")


def cprint(printable: Any, style: str | None = None, black_format: bool = False) -> None:
    """Print a node as a program, or a text as it is; ``style`` and ``black_format`` as ``show`` takes them."""
    if isinstance(printable, str):
        print(printable)
    else:
        printable.show(style, black_format)


__all__ = [
    "Scriptable",
    "const",
    "convert",
    "cprint",
    "enabled",
    "load_param_dict",
    "load_param_dict_from_file",
    "load_static_library",
    "save_param_dict",
    "save_param_dict_to_file",
    "system_lib",
]
