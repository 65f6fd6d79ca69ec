"""Targets as users write them: ``Target("llvm")``, ``Target({"kind": "llvm", "mcpu": "znver3"})``, ``with target:``.

A target names a machine; what code generation knows of it is `NamedTarget.machine`, which only CPUs have.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Any

from supple.base.device_types import DEVICE_TYPES
from supple.base.errors import NotSupportedError
from supple.base.registry import did_you_mean
from supple.base.target import Target, host


@dataclass(frozen=True, slots=True)
class TargetKind:
    """A kind of machine: its name, the keys of its targets, and the name of its devices."""

    name: str
    default_keys: tuple[str, ...]
    device: str

    def __str__(self) -> str:
        return self.name


KINDS: Mapping[str, TargetKind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            TargetKind("llvm", ("cpu",), "cpu"),
            TargetKind("c", ("cpu",), "cpu"),
            TargetKind("cuda", ("cuda", "gpu"), "cuda"),
            TargetKind("nvptx", ("cuda", "gpu"), "cuda"),
            TargetKind("rocm", ("rocm", "gpu"), "rocm"),
            TargetKind("opencl", ("opencl", "gpu"), "opencl"),
            TargetKind("vulkan", ("vulkan", "gpu"), "vulkan"),
            TargetKind("metal", ("metal", "gpu"), "metal"),
            TargetKind("webgpu", ("webgpu", "gpu"), "webgpu"),
            TargetKind("hexagon", ("hexagon", "cpu"), "hexagon"),
            TargetKind("ext_dev", (), "ext_dev"),
        )
    }
)
"""The kinds that programs name. Code is generated for ``llvm`` alone."""

_OF_LLVM = (
    "mcpu", "mattr", "mtriple", "mabi", "mfloat-abi", "num-cores", "opt-level", "fast-math", "jit", "cl-opt",
    "vector-width",
)  # fmt: skip
_OF_ALL = ("kind", "tag", "keys", "host", "device", "model", "libs")


class NamedTarget:
    """A machine that code is for, by its kind and attributes.

    ``target`` is text (``"llvm"``, ``"llvm -mcpu=znver3"``), a dict with the ``kind`` and attributes, or a target;
    ``host`` is the target of code that runs beside it. Raises ``ValueError`` for what it does not know.
    """

    _stack: list[NamedTarget] = []

    def __init__(self, target: str | Mapping[str, Any] | NamedTarget, host: Any = None) -> None:
        config = _config_of(target)
        kind = config.get("kind")
        if not isinstance(kind, str):
            raise ValueError(f"target: the field 'kind' is missing in {dict(config)}")
        if kind not in KINDS:
            raise ValueError(f"target: the kind {kind!r} is not defined{did_you_mean(kind, KINDS)}")
        self.kind = KINDS[kind]
        self.tag = str(config.get("tag", ""))
        given = {k: v for k, v in config.items() if k not in _OF_ALL}
        if kind == "llvm":
            for name in given:
                if name not in _OF_LLVM:
                    known = f"unknown option {name!r}{did_you_mean(name, (*_OF_ALL, *_OF_LLVM))}"
                    raise ValueError(f"target: {known} of the kind 'llvm'")
        self._given = given
        keys = config.get("keys", self.kind.default_keys)
        if not isinstance(keys, (list, tuple)) or any(not isinstance(key, str) for key in keys):
            raise ValueError(f"target: keys are a list of names, got {keys!r}")
        self.keys = list(keys)
        inner = host if host is not None else config.get("host")
        self.host = None if inner is None else NamedTarget(inner)
        self.attrs = dict(given)
        if kind == "llvm":
            machine = self.machine
            if not {"mcpu", "mtriple"} & set(given):
                self.attrs["mtriple"] = machine.triple

    @property
    def machine(self) -> Target:
        """What code generation knows of the machine; raises `NotSupportedError` for anything but a CPU by LLVM."""
        if self.kind.name != "llvm":
            raise NotSupportedError(
                f"target kind {self.kind.name!r} is not supported: there is code for CPUs only",
                hint="name the kind 'llvm'",
            )
        return Target.parse(self.spec)

    @property
    def spec(self) -> str:
        """The target as one line, as `Target.parse` reads it."""
        options = {k: v for k, v in self._given.items() if k in ("mcpu", "mattr", "mtriple", "num-cores")}
        words = [f"-{k}={','.join(v) if isinstance(v, (list, tuple)) else v}" for k, v in options.items()]
        return " ".join([self.kind.name, *words])

    @property
    def features(self) -> str:
        """LLVM's list of the machine's features."""
        return self.machine.features

    def export(self) -> dict[str, Any]:
        """The target as a dict, which `Target` takes."""
        inner = {} if self.host is None else {"host": self.host.export()}
        return {"kind": self.kind.name, "tag": self.tag, "keys": tuple(self.keys), **inner, **self.attrs}

    def given(self) -> dict[str, Any]:
        """The target as a dict of what was said, without what follows from the kind."""
        config: dict[str, Any] = {"kind": self.kind.name}
        if self.tag:
            config["tag"] = self.tag
        if tuple(self.keys) != self.kind.default_keys:
            config["keys"] = list(self.keys)
        if self.host is not None:
            config["host"] = self.host.given()
        return {**config, **self._given}

    def with_host(self, host: Any) -> NamedTarget:
        """The same target with another host."""
        return NamedTarget(self, host)

    @staticmethod
    def current(allow_none: bool = True) -> NamedTarget | None:
        """The target of the innermost ``with``; without one None, or ``ValueError`` unless ``allow_none``."""
        if NamedTarget._stack:
            return NamedTarget._stack[-1]
        if not allow_none:
            raise ValueError("no target is set here: write `with Target(...):` around")
        return None

    @staticmethod
    def from_device(device: Any) -> NamedTarget:
        """The target of a device (or of its name); for the CPU, with this machine's processor."""
        name = str(getattr(device, "type", device)).partition(":")[0]
        kinds = [k for k in KINDS.values() if k.device == name]
        if not kinds:
            raise ValueError(f"target: no kind of target runs on the device {name!r}")
        if kinds[0].name != "llvm":
            return NamedTarget(kinds[0].name)
        mine = host()
        return NamedTarget({"kind": "llvm", "mtriple": mine.triple, "mcpu": mine.cpu})

    @staticmethod
    def list_kinds() -> list[str]:
        """The names of the kinds."""
        return list(KINDS)

    def get_target_device_type(self) -> int:
        """DLPack's number of the devices that it runs on."""
        return DEVICE_TYPES[self.kind.device]

    def __enter__(self) -> NamedTarget:
        self._stack.append(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._stack.pop()

    def __getattr__(self, name: str) -> Any:
        """An attribute by its name, with underscores for dashes."""
        attrs = self.__dict__.get("attrs", {})
        for key in (name, name.replace("_", "-")):
            if key in attrs:
                return attrs[key]
        raise AttributeError(f"the target has no attribute {name!r}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedTarget) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return json.dumps(self.export(), separators=(",", ":"))

    __repr__ = __str__


def machine_of(target: object) -> Target:
    """The machine of what a user gives as a target; for None that of `NamedTarget.current`, else this machine.

    Raises ``ValueError`` for a target that is not known, `NotSupportedError` for one that is no CPU.
    """
    if target is None:
        target = NamedTarget.current() or "llvm"
    return Target.parse(target) if isinstance(target, (str, Target)) else NamedTarget(target).machine  # type: ignore[arg-type]


def _config_of(target: Any) -> Mapping[str, Any]:
    if isinstance(target, NamedTarget):
        return target.given()
    if isinstance(target, Target):
        return _config_of(target.spec)
    if isinstance(target, Mapping):
        return target
    if not isinstance(target, str):
        raise TypeError(f"target: expected text, a dict or a target, got {type(target).__name__}")
    words = shlex.split(target)
    if not words:
        raise ValueError("empty target; write 'llvm'")
    config: dict[str, Any] = {"kind": words[0]}
    for word in words[1:]:
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not equals:
            raise ValueError(f"target {target!r}: cannot read {word!r}; options are written -name=value")
        if name in ("mattr", "keys", "libs"):
            config[name] = value.split(",")
        else:
            config[name] = int(value) if value.isdigit() and name == "num-cores" else value
    return config
