"""Compare public names and members with Apache TVM's: ``python tests/oracle/names.py /path/to/python``.

The argument is a Python that has the apache-tvm wheel. Of every module there the public names that come from the
package itself are looked for under the alias, and of every class that both sides have the public members. The counts by
module and by class are printed, with what is missing; ``LATER`` says which modules belong to later work and why. Not
part of the ordinary tests.
"""

from __future__ import annotations

import importlib
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from forked import evaluated

from supple.compat import install_as_tvm

LATER = {
    "tvm.relax.transform": "passes beyond those that there are; with the issue on transforms",
    "tvm.tirx.transform": "the same at the loop level",
    "tvm.relax.backend": "dispatch to vendor libraries",
    "tvm.relax.training": "with gradients",
    "tvm.relax.op._op_gradient": "with gradients",
    "tvm.relax.op.op_attrs": "attributes are one class here",
    "tvm.s_tir": "schedules, their search and tensor intrinsics",
    "tvm.tirx.lang": "the CUDA tile dialect, which is refused",
    "tvm.tirx.layout": "the same",
    "tvm.tirx.operator": "the same",
    "tvm.topi": "compute definitions for one device, and those that no operator needs",
    "tvm.support": "compilers and tools of other platforms",
    "tvm.target": "code generators and tags of other devices",
    "tvm.runtime.disco": "several processes",
    "tvm.backend": "code generators of other devices",
}
"""Modules (with those below them) whose missing names are counted apart."""

NAMES = """
import contextlib, importlib, inspect, io, json, pkgutil, sys
import tvm
json.load(sys.stdin)
SKIPPED = (".contrib.", "tile", "exec", ".rpc", "micro", "_ffi_api", "s_tir.meta", "frontend", "libinfo")
names, members = {}, {}
for name in ["tvm"] + [m.name for m in pkgutil.walk_packages(tvm.__path__, "tvm.", onerror=lambda n: None)]:
    if any(part in name for part in SKIPPED):
        continue
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            module = importlib.import_module(name)
    except BaseException:
        continue
    names[name] = []
    for key in dir(module):
        value = getattr(module, key)
        own = str(getattr(value, "__module__", "")).startswith("tvm")
        if key.startswith("_") or inspect.ismodule(value) or not own:
            continue
        names[name].append(key)
        if inspect.isclass(value):
            members.setdefault(value.__module__ + "." + value.__qualname__, (f"{name}.{key}", [
                a for a in dir(value) if not a.startswith("_")]))
with open(sys.argv[1], "w") as out:
    json.dump([names, list(members.values())], out)
"""

OF_OBJECTS = {
    "same_as",
    "id_",
    "is_",
    "handle",
    "asobject",
    "get_handle",
    "Missing",
    "missing",
    "is_missing",
    "expr_ty",
}
"""Members of the wheel's object system, which every class there has."""


def missing_names(names: dict[str, list[str]]) -> tuple[Counter[str], dict[str, list[str]]]:
    """How many names are found, missing, and missing for later; the missing ones by module."""
    counts: Counter[str] = Counter()
    missing: dict[str, list[str]] = {}
    for module, keys in names.items():
        try:
            ours: Any = importlib.import_module(module)
        except ImportError:
            ours = None
        lacking = [key for key in keys if ours is None or not hasattr(ours, key)]
        later = any(module == m or module.startswith(m + ".") for m in LATER)
        counts["found"] += len(keys) - len(lacking)
        counts["later" if later else "missing"] += len(lacking)
        if lacking and not later:
            missing[module] = lacking
    return counts, missing


def missing_members(classes: list[tuple[str, list[str]]]) -> tuple[Counter[str], dict[str, list[str]]]:
    """The same for the members of classes. Fields that only instances have are not seen, and count as missing."""
    counts: Counter[str] = Counter()
    missing: dict[str, list[str]] = {}
    for path, keys in classes:
        module, _, name = path.rpartition(".")
        try:
            ours = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            continue
        if not isinstance(ours, type):
            continue
        wanted = [key for key in keys if key not in OF_OBJECTS]
        lacking = [key for key in wanted if not hasattr(ours, key)]
        counts["found"] += len(wanted) - len(lacking)
        counts["missing"] += len(lacking)
        if lacking:
            missing[path] = lacking
    return counts, missing


def main(python: str) -> int:
    """Print both comparisons."""
    names, classes = evaluated([python], NAMES, None)
    install_as_tvm()
    for title, (counts, missing) in (("names", missing_names(names)), ("members", missing_members(classes))):
        for place, keys in missing.items():
            print(f"{place}: {len(keys)} missing: {' '.join(keys)}")
        print(f"{title}: " + ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
