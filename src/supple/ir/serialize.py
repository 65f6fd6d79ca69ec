"""Modules and nodes as JSON text, versioned; constants and floats are exact to the bit. Also pickle and deepcopy.

The text lists every node once, operands before users, so shared nodes stay shared and depth is no limit::

    {"supple_json": 1, "nodes": [["Var", {"name": "n", "ty": 0}], ...], "root": 7}

A value inside a node is a plain JSON value or an object that says what it is: ``{"n": 3}`` a node, ``{"op": name}`` an
operator, ``{"t": [...]}`` a tuple, ``{"l": [...]}`` a list, ``{"d": [[key, value], ...]}`` a mapping, ``{"f": hex}`` a
float, ``{"e": [kind, name]}`` an enumeration's member, ``{"a": [dtype, shape, base64]}`` an array, ``{"s": [...]}`` a
span, ``{"target": text}`` a target, ``{"device": [kind, index]}`` a device.
"""

from __future__ import annotations

import base64
import copyreg
import dataclasses
import enum
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from supple.base.errors import SuppleError
from supple.base.named_target import NamedTarget
from supple.base.source import Span
from supple.ir import expr, graph, loop, types
from supple.ir.module import IRModule
from supple.ir.node import Node, is_node_class
from supple.ir.op import Op
from supple.runtime.device import Device

VERSION = 1


Encode = Callable[[Any, dict[int, int]], Any]


class FormatError(SuppleError, ValueError):
    """Text that is not a module saved by `save_json`, or of an unknown version."""


def save_json(root: Any) -> str:
    """A node, with all below it, as JSON text; so are plain values, and lists, tuples and mappings of nodes.

    Raises ``TypeError`` for a value of any other kind.
    """
    return _saved(root, lambda op: None)


def fingerprint(root: Node, check_op: Callable[[Op], None]) -> bytes:
    """32 bytes that differ wherever the text of two nodes does: names and places included. ``check_op`` is called with
    every operator and may raise."""
    return hashlib.blake2b(_saved(root, check_op, _digest_of_array).encode(), digest_size=32).digest()


def _saved(root: Any, check_op: Callable[[Op], None], encode_array: Encode | None = None) -> str:
    ids: dict[int, int] = {}
    rows: list[Any] = []
    stack: list[tuple[Node, bool]] = [(found, False) for found in _inside(root)]
    while stack:
        current, expanded = stack.pop()
        if isinstance(current, Op):
            check_op(current)
            continue
        if id(current) in ids:
            continue
        if not expanded:
            stack.append((current, True))
            stack.extend((child, False) for child in _inside(list(_slots(current).values())))
            continue
        row = {
            name: encode_array(value, ids) if encode_array and isinstance(value, np.ndarray) else _encode(value, ids)
            for name, value in _slots(current).items()
            if value is not None
        }
        ids[id(current)] = len(rows)
        rows.append([type(current).__name__, row])
    return json.dumps({"supple_json": VERSION, "nodes": rows, "root": _encode(root, ids)}, separators=(",", ":"))


def load_json(text: str) -> Any:
    """The node that `save_json` wrote. Raises `FormatError` for anything else."""
    try:
        data = json.loads(text)
        version = data["supple_json"]
        rows, root = data["nodes"], data["root"]
    except (json.JSONDecodeError, KeyError, TypeError) as error:
        raise FormatError(f"not a module saved by save_json: {error}") from None
    if version != VERSION:
        raise FormatError(f"saved in version {version!r} of the format; this Supple reads version {VERSION}")
    nodes: list[Node] = []
    try:
        for kind, fields in rows:
            nodes.append(_build(kind, {name: _decode(value, nodes) for name, value in fields.items()}))
        return _decode(root, nodes)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError) as error:
        raise FormatError(f"the saved module is damaged: {error}") from None


def _slots(node: Node) -> dict[str, Any]:
    if isinstance(node, IRModule):
        functions = {var.name_hint: func for var, func in node.functions.items()}
        return {"functions": functions, "attrs": node.attrs, "global_infos": node.global_infos}
    return {f.name: getattr(node, f.name) for f in dataclasses.fields(node) if f.init}


def _inside(value: Any) -> Iterator[Node]:
    """The nodes in a field's value, through tuples and mappings."""
    stack = [value]
    while stack:
        current = stack.pop()
        if isinstance(current, Node):
            yield current
        elif isinstance(current, (tuple, list)):
            stack.extend(current)
        elif isinstance(current, dict):
            stack.extend(current.values())


def _encode(value: Any, ids: dict[int, int]) -> Any:
    if value is None or isinstance(value, (bool, str)) or type(value) is int:
        return value
    for kind, encode in _ENCODERS:
        if isinstance(value, kind):
            return encode(value, ids)
    raise TypeError(f"cannot save a {type(value).__name__}: {value!r}")


def _encode_array(value: Any, _: dict[int, int]) -> Any:
    array = np.asarray(value, order="C")
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return {"a": [array.dtype.name, list(array.shape), base64.b64encode(little.tobytes()).decode("ascii")]}


def _digest_of_array(value: Any, _: dict[int, int]) -> Any:
    array = np.ascontiguousarray(value)
    return [array.dtype.name, list(array.shape), hashlib.blake2b(array.view(np.uint8).data, digest_size=16).hexdigest()]


_ENCODERS: tuple[tuple[Any, Encode], ...] = (
    (Op, lambda v, ids: {"op": v.name}),
    (Node, lambda v, ids: {"n": ids[id(v)]}),
    (tuple, lambda v, ids: {"t": [_encode(x, ids) for x in v]}),
    (list, lambda v, ids: {"l": [_encode(x, ids) for x in v]}),
    (dict, lambda v, ids: {"d": [[_encode(k, ids), _encode(x, ids)] for k, x in v.items()]}),
    (float, lambda v, ids: {"f": v.hex() if v == v else "nan"}),
    (enum.Enum, lambda v, ids: {"e": [type(v).__name__, v.name]}),
    (NamedTarget, lambda v, ids: {"target": v.given()}),
    (Device, lambda v, ids: {"device": [v.device_type, v.index]}),
    (Span, lambda v, ids: {"s": [v.file, v.line, v.column, v.end_line, v.end_column]}),
    ((np.ndarray, np.generic), _encode_array),
)


def _decode(value: Any, nodes: list[Node]) -> Any:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    return _DECODERS[kind](content, nodes)


def _decode_array(content: Any, _: list[Node]) -> Any:
    name, shape, text = content
    dtype = np.dtype(name)
    array = np.frombuffer(base64.b64decode(text), dtype.newbyteorder("<")).reshape(shape).astype(dtype)
    array.flags.writeable = False
    return array


_ENUMS = {kind.__name__: kind for kind in (loop.ForKind, loop.IterType)}
_DECODERS: dict[str, Callable[[Any, list[Node]], Any]] = {
    "op": lambda content, nodes: Op.get(content),
    "n": lambda content, nodes: nodes[content],
    "t": lambda content, nodes: tuple(_decode(x, nodes) for x in content),
    "l": lambda content, nodes: [_decode(x, nodes) for x in content],
    "d": lambda content, nodes: {_decode(k, nodes): _decode(x, nodes) for k, x in content},
    "f": lambda content, nodes: float("nan") if content == "nan" else float.fromhex(content),
    "e": lambda content, nodes: _ENUMS[content[0]][content[1]],
    "s": lambda content, nodes: Span(*content),
    "target": lambda content, nodes: NamedTarget(content),
    "device": lambda content, nodes: Device(*content),
    "a": _decode_array,
}


def _node_kinds() -> dict[str, type[Node]]:
    members = (item for module in (types, expr, graph, loop) for item in vars(module).values())
    kinds = (m for m in members if isinstance(m, type) and issubclass(m, Node) and is_node_class(m))
    return {kind.__name__: kind for kind in kinds}


_KINDS = _node_kinds()


def _build(kind: str, fields: dict[str, Any]) -> Node:
    if kind == "IRModule":
        return IRModule(fields["functions"], fields["attrs"], fields.get("global_infos"))
    cls: Any = _KINDS[kind]
    absent = {f.name: None for f in dataclasses.fields(cls) if _is_required(f) and f.name not in fields}
    return cls(**absent, **fields)  # type: ignore[no-any-return]


def _is_required(f: dataclasses.Field[Any]) -> bool:
    return f.init and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING


def _reduce(node: Node) -> tuple[Callable[[str], Any], tuple[str]]:
    return load_json, (save_json(node),)


for _root in (IRModule, graph.Function, loop.PrimFunc):
    copyreg.pickle(_root, _reduce)  # also what copy.deepcopy uses
copyreg.pickle(Op, lambda op: (Op.get, (op.name,)))
