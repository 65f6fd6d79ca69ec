"""Large constants beside a program's text, as JSON: Supple's form, and the graph of nodes of Relax's printer."""

from __future__ import annotations

import base64
import json
import math
import struct
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.ir.graph import Constant, constant

RELAX_KEY = "ir.GenericConst"
_TENSOR = struct.Struct("<QQiiiBBH")  # magic, reserved, device type and index, dimensions, dtype's code, bits, lanes
_MAGIC = 0xDD5E40F096B4A13F
_CPU = 1


def _little(data: Any) -> bytes:
    array = np.ascontiguousarray(data)
    return array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()


def metadata_text(constants: list[Constant]) -> str:
    """The constants of a program as JSON: dtype, shape and bytes (base64, little-endian)."""
    rows = []
    for item in constants:
        rows.append(
            {
                "dtype": dtypes.from_numpy(np.asarray(item.data).dtype),
                "shape": list(np.shape(item.data)),
                "data": base64.b64encode(_little(item.data)).decode("ascii"),
            }
        )
    return json.dumps({"supple.Constant": rows})


# ------------------------------------------------------------------------------------------------------- Relax's form


class _Nodes:
    """The table of nodes; what a node refers to stands before it."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._shared: dict[tuple[str, Any], int] = {}

    def add(self, kind: str, data: Any = None) -> int:
        """Another node; its index."""
        self.rows.append({"type": kind} if data is None else {"type": kind, "data": data})
        return len(self.rows) - 1

    def shared(self, kind: str, data: Any = None) -> int:
        """A value that the table holds once."""
        key = kind, repr(data)
        if key not in self._shared:
            self._shared[key] = self.add(kind, data)
        return self._shared[key]

    def node(self, kind: str, **fields: int) -> int:
        """A node with fields, without a place in a source."""
        return self.add(kind, {"span": self.shared("None"), **fields})

    def prim(self, dtype: str) -> int:
        return self.shared("ir.PrimType", {"span": self.shared("None"), "dtype": dtype})

    def extent(self, value: int) -> int:
        none, ty = self.shared("None"), self.prim("int64")
        return self.add("ir.IntImm", {"span": none, "ty": ty, "value": self.shared("int", value)})

    def constant(self, data: Any) -> int:
        array = np.asarray(data)
        self.shared("None")
        values = self.add("ffi.Array", [self.extent(extent) for extent in array.shape])
        ty = self.node("relax.ShapeType", values=values, ndim=array.ndim)
        shape = self.node("relax.expr.ShapeExpr", ty=ty, values=values)
        dtype = self.prim(dtypes.from_numpy(array.dtype))
        tensor = self.node("relax.TensorType", shape=shape, dtype=dtype, vdevice=self.shared("None"), ndim=array.ndim)
        return self.node(RELAX_KEY, ty=tensor, value=self.add("ffi.Tensor", _tensor_text(array)))


def _tensor_text(array: Any) -> str:
    row = dtypes.row(dtypes.from_numpy(array.dtype))
    raw = _little(array)
    head = _TENSOR.pack(_MAGIC, 0, _CPU, 0, array.ndim, row.dlpack, row.nbytes * 8, 1)
    extents = struct.pack(f"<{array.ndim + 1}q", *array.shape, len(raw))
    return base64.b64encode(head + extents + raw).decode("ascii")


def relax_metadata(constants: list[Constant]) -> str:
    """The expression that Relax's printer writes for the constants of a program."""
    nodes = _Nodes()
    key = nodes.shared("ffi.String", RELAX_KEY)
    items = nodes.add("ffi.Array", [nodes.constant(item.data) for item in constants])
    root = nodes.add("ffi.Map", [key, items])
    graph = {"root_index": root, "nodes": nodes.rows, "metadata": {"tvm_version": "0.27.0.post1"}}
    text = json.dumps(graph, indent=2).replace('"data": []', '"data": [\n      ]')
    text = text.replace("/", "\\\\/").replace('"', '\\"')
    return f'tvm.ir.load_json("""{text}""")'


def read_relax_metadata(text: str) -> dict[str, list[Constant]]:
    """The constants in a graph of nodes that Relax's printer wrote, by their key.

    Raises ``ValueError`` for text that is no such graph, or holds anything but constants.
    """
    try:
        graph = json.loads(text)
        nodes = graph["nodes"]
        kind, pairs = _node(nodes, graph["root_index"])
        if kind != "ffi.Map" or not isinstance(pairs, list) or len(pairs) % 2:
            raise ValueError("the root is no map")
        found: dict[str, list[Constant]] = {}
        for key, items in zip(pairs[::2], pairs[1::2]):
            name, rows = _node(nodes, key)[1], _node(nodes, items)[1]
            if name != RELAX_KEY or not isinstance(rows, list):
                raise ValueError(f"only {RELAX_KEY} can be read")
            found[name] = [_constant(nodes, row) for row in rows]
    except (ValueError, KeyError, TypeError, IndexError, struct.error) as error:
        raise ValueError(f"metadata: not a graph of constants ({error})") from None
    return found


def _node(nodes: list[Any], index: Any) -> tuple[str, Any]:
    if not isinstance(index, int) or index < 0:
        raise ValueError(f"no node {index!r}")
    row = nodes[index]
    return row["type"], row.get("data")


def _constant(nodes: list[Any], index: Any) -> Constant:
    kind, data = _node(nodes, index)
    if kind != RELAX_KEY:
        raise ValueError(f"expected a constant, got {kind}")
    raw = base64.b64decode(_node(nodes, data["value"])[1], validate=True)
    magic, _, device, _, rank, code, bits, lanes = _TENSOR.unpack_from(raw)
    row = next((r for r in dtypes.DTYPES.values() if (r.dlpack, r.nbytes * 8) == (code, bits) and r.numpy), None)
    if magic != _MAGIC or device != _CPU or row is None or lanes != 1 or not 0 <= rank <= 64:
        raise ValueError("no tensor that Supple has")
    *shape, size = struct.unpack_from(f"<{rank + 1}q", raw, _TENSOR.size)
    content = raw[_TENSOR.size + 8 * (rank + 1) :]
    count = math.prod(shape)
    if len(content) != size or size != count * row.nbytes:  # reshape refuses what is negative twice
        raise ValueError("the data does not fit the shape")
    dtype = dtypes.to_numpy(row.name)
    return constant(np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype, copy=False).reshape(shape))
