"""``tvm.testing.env``: what the machine has. Code is built for CPUs alone, so every other device is absent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm

from supple.base.target import Target


def has_llvm() -> bool:
    """Always: LLVM comes with Supple."""
    return True


def has_llvm_min_version(major: int) -> bool:
    """Whether the LLVM in use is at least of that version."""
    return bool(llvm.llvm_version_info[0] >= major)


def has_cpu_feature(features: str | Sequence[str]) -> bool:
    """Whether the processor has all of LLVM's features, such as ``"avx2"``."""
    wanted = [features] if isinstance(features, str) else features
    have = Target.parse("llvm").features.split(",")
    return all(f"+{f.removeprefix('+')}" in have for f in wanted)


def has_x86_avx512() -> bool:
    """Whether the processor has the AVX-512 subsets F, BW, CD, DQ and VL."""
    return has_cpu_feature(["avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"])


def has_x86_vnni() -> bool:
    """Whether the processor multiplies and adds bytes in one step (AVX-512 or AVX VNNI)."""
    return has_cpu_feature("avx512vnni") or has_cpu_feature("avxvnni")


def __getattr__(name: str) -> Callable[..., bool]:
    """Every other ``has_...``: no such device, library or compiler."""
    if not name.startswith("has_"):
        raise AttributeError(f"tvm.testing.env has no name {name!r}")

    def absent(*_: Any, **__: Any) -> bool:
        return False

    absent.__name__ = name
    return absent
