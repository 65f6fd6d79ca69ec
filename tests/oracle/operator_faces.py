"""Compare how operators look to Python with Apache TVM: ``python tests/oracle/operator_faces.py /path/to/python``.

The argument is a Python that has the apache-tvm wheel. Compared are the signatures of the functions of ``relax.op`` and
``R`` (names of parameters, their order, defaults where they are plain values, and what is taken by name only), and the
attributes of the call of every operator sample and of every expression of `calls`: their names and values as
``call.attrs.axis`` reads them. What differs is listed, with the counts. Not part of the ordinary tests.
"""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import calls
import operator_types
from forked import IN_CHILDREN, evaluated

import supple.relax
from supple.base.errors import NotSupportedError
from supple.script import relax as names

SIGNATURES = """
import inspect, json
import tvm
from tvm import relax
from tvm.script import relax as R

def plain(default):
    return None if default is inspect.Parameter.empty else repr(default)

GROUPS = ("nn", "image", "grad", "ccl", "vision", "builtin", "memory", "vm", "dist", "distributed")

def of(function):
    try:
        return [(p.name, p.kind.name, plain(p.default)) for p in inspect.signature(function).parameters.values()]
    except ValueError:
        return None

def walk(module, prefix, found, depth=0):
    for key in dir(module):
        value = getattr(module, key)
        if key.startswith("_") or inspect.isclass(value):
            continue
        if inspect.ismodule(value):
            if key in GROUPS and depth == 0:
                walk(value, prefix + key + ".", found, 1)
        elif callable(value):
            found[prefix + key] = of(value)
    return found

print(json.dumps({"op": walk(relax.op, "", {}), "R": walk(R, "", {})}))
"""

ATTRIBUTES = (
    IN_CHILDREN
    + """
setting, texts, expressions = json.load(sys.stdin)
import tvm
from tvm import relax, tirx
from tvm.ir import Attrs
from tvm.script import from_source

def plain(value):
    if value is None or isinstance(value, (bool, int, str)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, float):
        return repr(value)
    if hasattr(value, "items"):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)) or type(value).__name__ == "Array":
        return [plain(v) for v in value]
    if type(value).__name__ in ("IntImm", "FloatImm", "StringImm"):
        return plain(value.value)
    return type(value).__name__

def attributes(attrs):
    if attrs is None:
        return {}
    if isinstance(attrs, dict):
        return {k: plain(v) for k, v in attrs.items()}
    if hasattr(attrs, "__dict__") and hasattr(attrs.__dict__, "items") and type(attrs).__name__ == "DictAttrs":
        return {k: plain(v) for k, v in dict(attrs).items()}
    fields = [k for k in dir(type(attrs)) if not k.startswith("_") and k not in dir(Attrs)]
    return {k: plain(getattr(attrs, k)) for k in fields}

def first_call(func):
    for block in func.body.blocks:
        for binding in block.bindings:
            if isinstance(binding.value, relax.Call):
                return binding.value

def found_by(make):
    try:
        call = make()
        return [call.op.name, attributes(call.attrs)]
    except BaseException as error:
        return ["refused: " + type(error).__name__, {}]

env = {}
exec(setting, env)
found = [found_by(lambda t=t: first_call(from_source(t))) for t in texts]
found += in_children(expressions, lambda e: found_by(lambda: eval(e, env)), ["died", {}], alone=True)
with open(sys.argv[1], "w") as out:
    json.dump(found, out)
"""
)


ONLY_HERE = {"out_sinfo", "sinfo_args", "tir_vars", "more", "axis_separators", "input_axis_separators"}
"""Parameters with defaults that Relax has in other releases, or that only Supple has."""


def _plain(default: Any) -> str | None:
    return None if default is inspect.Parameter.empty else repr(default)


def signature(function: Any) -> list[tuple[str, str, str | None]] | None:
    """Name, kind and default of each parameter; None where a form of the language stands for it."""
    try:
        found = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    return [(p.name, p.kind.name, _plain(p.default)) for p in found.parameters.values()]


def resolved(root: Any, dotted: str) -> Any:
    """The value of a dotted name, or None."""
    for part in dotted.split("."):
        try:
            root = getattr(root, part)
        except (AttributeError, NotSupportedError):
            return None
    return root


def compare_signatures(python: str) -> None:
    """List what differs between the signatures of both faces."""
    done = subprocess.run([python, "-c", SIGNATURES], capture_output=True, text=True, check=True)
    wanted = json.loads(done.stdout.splitlines()[-1])
    for face, root in (("op", supple.relax.op), ("R", names)):
        same, missing = 0, []
        for name, theirs in sorted(wanted[face].items()):
            function = resolved(root, name)
            if function is None:
                missing.append(name)
                continue
            ours = signature(function)
            if theirs is None or comparable(ours) == comparable(theirs):
                same += 1
            else:
                print(f"{face}.{name}:\n    theirs {shown(theirs)}\n    ours   {shown(ours)}")
        print(f"{face}: {same} of {len(wanted[face])} signatures are the same; missing: {', '.join(missing)}")


def comparable(parameters: Any) -> Any:
    """Parameters with windows' defaults in their shortest form: ``(1, 1)`` and ``1`` as ``(1,)``; without spellings
    that only Supple has."""
    if parameters is None:
        return None
    return [(n, k, _short(d)) for n, k, d in parameters if n not in ONLY_HERE]


def _short(default: str | None) -> Any:
    if default is None or default[:1] not in "(-0123456789":
        return default
    value = ast.literal_eval(default)
    items = tuple(float(v) for v in value) if isinstance(value, tuple) else (float(value),)
    return items[:1] if len(set(items)) == 1 else items


def shown(parameters: Any) -> str:
    """Parameters as text."""
    if parameters is None:
        return "a form"
    marks = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**", "KEYWORD_ONLY": "by name: "}
    return ", ".join(marks.get(k, "") + n + ("" if d is None else f"={d}") for n, k, d in parameters)


def compare_attributes(python: str) -> None:
    """List calls whose attributes differ."""
    texts = [text for _, text, _ in operator_types.programs()]
    given = [calls.CALLS_PRELUDE, texts, list(calls.CALLS)]
    theirs = evaluated([python], ATTRIBUTES, given)
    ours = evaluated([sys.executable, "-m", "supple", "run", "--as-tvm"], ATTRIBUTES, given)
    same = 0
    for what, a, b in zip([*texts, *calls.CALLS], theirs, ours, strict=True):
        if a == b:
            same += 1
            continue
        line = next((t for t in what.splitlines() if "gv" in t or "lv" in t), what).strip()
        print(f"{line}\n    theirs {a}\n    ours   {b}")
    print(f"attributes: {same} of {len(theirs)} calls are the same")


if __name__ == "__main__":
    compare_signatures(sys.argv[1])
    compare_attributes(sys.argv[1])
