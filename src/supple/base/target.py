"""Machines to generate code for, one row each, and ``Target("llvm -mcpu=znver3 -mattr=+avx2")``.

Everything that depends on the machine (tile sizes, cache blocks, which conversions are native) reads the numbers of a
`Target`; nothing else in Supple knows a processor's name.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import platform
import shlex
from dataclasses import dataclass
from pathlib import Path

import llvmlite.binding as llvm

from supple.base.registry import did_you_mean


@dataclass(frozen=True, slots=True)
class Level:
    """What a family of processors has: vector width in bits, number of vector registers, LLVM features it implies."""

    vector_bits: int
    vector_registers: int
    features: tuple[str, ...]


_V1 = ("sse2",)
_V2 = (*_V1, "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt")
_V3 = (*_V2, "avx", "avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe")
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
X86_V1 = Level(128, 16, _V1)
X86_V2 = Level(128, 16, _V2)
X86_V3 = Level(256, 16, _V3)
X86_V4 = Level(512, 32, _V4)
NEON = Level(128, 32, ("neon", "fp-armv8", "fma"))

CPUS: dict[str, tuple[str, Level]] = {
    "x86-64": ("x86_64", X86_V1),
    "x86-64-v2": ("x86_64", X86_V2),
    "x86-64-v3": ("x86_64", X86_V3),
    "x86-64-v4": ("x86_64", X86_V4),
    "nehalem": ("x86_64", X86_V2),
    "haswell": ("x86_64", X86_V3),
    "broadwell": ("x86_64", X86_V3),
    "skylake": ("x86_64", X86_V3),
    "alderlake": ("x86_64", X86_V3),
    "znver1": ("x86_64", X86_V3),
    "znver2": ("x86_64", X86_V3),
    "znver3": ("x86_64", X86_V3),
    "znver4": ("x86_64", X86_V4),
    "znver5": ("x86_64", X86_V4),
    "skylake-avx512": ("x86_64", X86_V4),
    "cascadelake": ("x86_64", X86_V4),
    "icelake-server": ("x86_64", X86_V4),
    "sapphirerapids": ("x86_64", X86_V4),
    "graniterapids": ("x86_64", X86_V4),
    "generic": ("aarch64", NEON),
    "cortex-a72": ("aarch64", NEON),
    "neoverse-n1": ("aarch64", NEON),
    "neoverse-v1": ("aarch64", NEON),
    "apple-m1": ("aarch64", NEON),
}
"""LLVM's processor name -> architecture and level. A processor that is not here is named by its level
(``-mcpu=x86-64-v3``) or described with ``-mattr``."""

_OTHER_NAMES = {
    "core-avx2": "haswell", "corei7": "nehalem", "skx": "skylake-avx512", "cooperlake": "cascadelake",
    "icelake-client": "icelake-server", "rocketlake": "icelake-server", "tigerlake": "icelake-server",
    "emeraldrapids": "sapphirerapids", "raptorlake": "alderlake",
}  # fmt: skip
"""Other names for processors, and processors that are used as an older one of the same level."""

_DEFAULT_CPU = {"x86_64": "x86-64", "aarch64": "generic"}
_ARCH = {"amd64": "x86_64", "x86-64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True, slots=True)
class Target:
    """One machine. Build it with `Target.parse`; ``target("llvm")`` is the machine Supple runs on.

    ``features`` is LLVM's list (``"+avx2,+fma"``); cache sizes are bytes a core can count on for itself.
    """

    spec: str
    triple: str
    arch: str
    cpu: str
    features: str
    vector_bits: int
    vector_registers: int
    l1_bytes: int = 32 << 10
    l2_bytes: int = 512 << 10
    l3_bytes: int = 8 << 20
    cores: int = 1
    kind: str = "llvm"

    def has(self, feature: str) -> bool:
        """Whether an LLVM feature (``"fma"``, ``"f16c"``) is available."""
        return f"+{feature}" in self.features.split(",")

    @property
    def has_fma(self) -> bool:
        """Whether a fused multiply-add is one instruction."""
        return self.has("fma") or self.arch == "aarch64"

    @property
    def has_half_conversion(self) -> bool:
        """Whether float16 <-> float32 conversion is an instruction."""
        return self.has("f16c") or self.arch == "aarch64"

    @property
    def has_rounding(self) -> bool:
        """Whether floor, ceil, trunc and round-to-even are instructions."""
        return self.has("sse4.1") or self.arch == "aarch64"

    @property
    def has_maximum(self) -> bool:
        """Whether a maximum and a minimum that pass on NaN are instructions."""
        return self.arch == "aarch64"

    @property
    def pair_products(self) -> str | None:
        """LLVM's intrinsic that multiplies 16-bit numbers in a full vector register and adds neighbours, if any."""
        if self.arch != "x86_64":
            return None
        if self.vector_bits == 512:
            return "llvm.x86.avx512.pmaddw.d.512" if self.has("avx512bw") else None
        return "llvm.x86.avx2.pmadd.wd" if self.vector_bits == 256 else "llvm.x86.sse2.pmadd.wd"

    def lanes(self, bits: int) -> int:
        """How many elements of that many bits one vector register holds."""
        return max(1, self.vector_bits // bits)

    @property
    def is_host(self) -> bool:
        """Whether code for this target runs on this machine."""
        mine = host()
        enabled = set(filter(None, self.features.split(",")))
        have = set(mine.features.split(","))
        return self.arch == mine.arch and all(f in have for f in enabled if f.startswith("+"))

    def __str__(self) -> str:
        return self.spec

    @staticmethod
    def parse(spec: str | Target) -> Target:
        """Read ``"llvm"``, ``"llvm -mcpu=NAME -mattr=+f,-g -mtriple=T -num-cores=N"``.

        Plain ``"llvm"`` is the host; with ``-mcpu`` (or ``-mtriple``) the machine is that one, its caches the
        defaults unless it is the host's own processor. Raises ``ValueError`` for what is not understood.
        """
        return spec if isinstance(spec, Target) else _parse(spec)


def target(spec: str | Target = "llvm") -> Target:
    """Same as `Target.parse`; raises ``TypeError`` for what is not text (a dict, say)."""
    if not isinstance(spec, (str, Target)):
        raise TypeError(f"target: expected text such as 'llvm -mcpu=znver3', got {type(spec).__name__}")
    return Target.parse(spec)


@functools.lru_cache(maxsize=256)
def _parse(spec: str) -> Target:
    words = shlex.split(spec)
    if not words:
        raise ValueError("empty target; write 'llvm'")
    if words[0] != "llvm":
        raise ValueError(f"target kind {words[0]!r} is not supported; only 'llvm' (a CPU) is")
    options: dict[str, str] = {}
    known = ("mcpu", "mattr", "mtriple", "num-cores", "keys", "opt-level")
    for word in words[1:]:
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not equals or name not in known:
            raise ValueError(f"target {spec!r}: cannot read {word!r}{did_you_mean(name, known)}")
        options[name] = value
    mine = host()
    if "mcpu" not in options and "mtriple" not in options:
        base = mine
    else:
        base = _named(spec, options.get("mcpu"), options.get("mtriple"), mine)
    features = _merge(base.features, options.get("mattr", ""), spec)
    cores = base.cores
    if "num-cores" in options:
        if not options["num-cores"].isdigit() or int(options["num-cores"]) < 1:
            raise ValueError(f"target {spec!r}: -num-cores takes a positive integer")
        cores = int(options["num-cores"])
    made = dataclasses.replace(base, spec=spec, features=features, cores=cores)
    return _with_vectors(made) if "mattr" in options else made


def _named(spec: str, cpu: str | None, triple: str | None, mine: Target) -> Target:
    arch = architecture(triple) if triple else None
    if cpu is None:
        cpu = mine.cpu if arch == mine.arch else _DEFAULT_CPU.get(arch or "", "")
    if cpu in (mine.cpu, "native") and arch in (None, mine.arch):
        return dataclasses.replace(mine, triple=triple or mine.triple)
    cpu = _OTHER_NAMES.get(cpu, cpu)
    row = CPUS.get(cpu)
    if row is None:
        raise ValueError(f"target {spec!r}: unknown processor {cpu!r}{did_you_mean(cpu, CPUS)}")
    cpu_arch, level = row
    if arch is not None and arch != cpu_arch:
        raise ValueError(f"target {spec!r}: {cpu} is a {cpu_arch} processor, the triple says {arch}")
    if triple is None:
        triple = mine.triple if cpu_arch == mine.arch else f"{cpu_arch}-unknown-linux-gnu"
    features = ",".join(f"+{f}" for f in level.features) if cpu_arch == "x86_64" else "+neon"
    return Target(spec, triple, cpu_arch, cpu, features, level.vector_bits, level.vector_registers)


def architecture(triple: str) -> str:
    """``x86_64`` or ``aarch64`` of a triple; raises ``ValueError`` for any other."""
    first = triple.partition("-")[0].lower()
    arch = _ARCH.get(first, first)
    if arch not in _DEFAULT_CPU:
        raise ValueError(f"triple {triple!r}: architecture {first!r} is not supported; x86_64 and aarch64 are")
    return arch


def _merge(base: str, extra: str, spec: str) -> str:
    enabled = {f[1:]: f[0] for f in base.split(",") if f}
    for feature in filter(None, extra.split(",")):
        if feature[0] not in "+-" or len(feature) < 2:
            raise ValueError(f"target {spec!r}: -mattr takes +feature or -feature, got {feature!r}")
        enabled[feature[1:]] = feature[0]
    return ",".join(f"{sign}{name}" for name, sign in enabled.items())


def _with_vectors(t: Target) -> Target:
    """Vector width and register count that follow from the features."""
    if t.arch == "aarch64":
        return t
    if t.has("avx512f") and t.has("avx512vl"):
        return dataclasses.replace(t, vector_bits=512, vector_registers=32)
    return dataclasses.replace(t, vector_bits=256 if t.has("avx") else 128, vector_registers=16)


@functools.lru_cache(maxsize=1)
def host() -> Target:
    """The machine this process runs on."""
    triple = llvm.get_process_triple()
    arch = architecture(triple)
    try:
        features: str = llvm.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM cannot tell on this system: keep to what every such processor has
        features = ""
    caches = _caches()
    cpu = llvm.get_host_cpu_name()
    made = Target(
        "llvm", triple, arch, cpu, features, 128, 32 if arch == "aarch64" else 16,
        caches.get(1, 32 << 10), caches.get(2, 512 << 10), caches.get(3, 8 << 20), available_processors(),
    )  # fmt: skip
    return _with_vectors(made)


def available_processors() -> int:
    """How many processors this process may run on, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        return max(1, len(os.sched_getaffinity(0)))
    return max(1, os.cpu_count() or 1)


def _caches() -> dict[int, int]:
    """Data cache sizes by level, as Linux tells them; empty elsewhere."""
    found: dict[int, int] = {}
    if platform.system() != "Linux":
        return found
    for entry in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            level = int((entry / "level").read_text())
            kind = (entry / "type").read_text().strip()
            text = (entry / "size").read_text().strip()
            size = int(text.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(text[-1:], 0)
        except (OSError, ValueError):  # containers may hide these files; the defaults stand
            continue
        if kind in ("Data", "Unified") and size > 0:
            found[level] = size
    return found
