"""Types and attributes as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supple.base.errors import TextTooLongError
from supple.base.named_target import NamedTarget
from supple.ir import graph as G
from supple.ir import types as Ty
from supple.ir.expr import FloatImm, IntImm, Var
from supple.ir.loop import CommReducer, IndexMap
from supple.ir.node import Expr, Type, children
from supple.ir.print_marks import wrap
from supple.ir.print_names import Names, float_text, quote
from supple.ir.print_style import PrintOptions, PrintStyle
from supple.ir.structural import structural_equal
from supple.ir.types import BufferType
from supple.ir.walk import post_order
from supple.runtime.device import Device

LONG_TEXT = 1 << 16
"""Characters from which on it is asked whether a text would have an end."""
_MOST_PARTS = 1 << 20


def check_length(whole: Expr | Type) -> None:
    """Raise `TextTooLongError` for an expression or type that shares parts which text would have to repeat without
    end."""
    written: dict[int, int] = {}  # how many parts each part is when nothing is shared
    for part in post_order(whole):
        written[id(part)] = 1 + sum(written[id(child)] for child in children(part))
    if written[id(whole)] > _MOST_PARTS:
        raise TextTooLongError(
            f"this {type(whole).__name__} would be written out with {written[id(whole)]} parts: it uses the same ones "
            "again and again, which text has to repeat; bind them to variables, or save the program as JSON"
        )


class TypePrinter:
    """Prints types and attributes; expressions in them are printed by the subclass."""

    names: Names
    infos: dict[str, Any]
    options: PrintOptions
    style: PrintStyle
    int_dtype: str  # of integers that do not say theirs
    loop_dims: bool = False  # dimensions say their dtype as numbers of the loop level do
    owner: Any  # the statement, binding or expression that is being printed, for marks

    def marked(self, text: str, value: Any, count: int = 0) -> str:
        """The text of a part of what is being printed, with its mark if it has one."""
        marks = self.options.marks
        if marks is None:
            return text
        number = marks.find(value, self.owner, count)
        return wrap(text, marks.find(value, None) if number is None else number)

    def step(self, text: str, holder: Any, key: str) -> str:
        """The text of a field or key that is no node, with its mark if it has one."""
        marks = self.options.marks
        return text if marks is None else wrap(text, marks.step(holder, key))

    def expr(self, root: Expr, minimum: int = 0) -> str:
        raise NotImplementedError

    def value(self, e: Expr) -> str:
        raise NotImplementedError

    def dim(self, e: Expr, default: str = "int64") -> str:
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------- attributes

    def attr(self, value: Any) -> str:
        """An attribute's value: Python literals, containers, and nodes."""
        if isinstance(value, (IntImm, FloatImm)):
            return self.literal(value, said=True)
        if isinstance(value, Type):
            return self.type(value)
        special = _ATTRIBUTES.get(type(value))
        if special is not None:
            return special(self, value)
        if isinstance(value, Expr):
            return self.value(value)
        if isinstance(value, str):
            return quote(value)
        if isinstance(value, dict):
            items = sorted(value.items(), key=_key_text) if self.style.sorted_keys else value.items()
            return "{" + ", ".join(f"{self.attr(k)}: {self.attr(v)}" for k, v in items) + "}"
        if isinstance(value, list) or (self.style.lists and isinstance(value, tuple)):
            return "[" + ", ".join(self.attr(v) for v in value) + "]"
        if isinstance(value, tuple):
            inner = ", ".join(self.attr(v) for v in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if value is None or isinstance(value, (bool, int, float)):
            return self.options.number(value)
        return f"<{type(value).__name__}>"

    def literal(self, value: IntImm | FloatImm, *, said: bool = False) -> str:
        """A literal with its dtype, unless that is the one that goes without saying (``said``: it is said anyway)."""
        if isinstance(value, FloatImm):
            text = float_text(value.value, value.dtype, self.style.float_digits)
            bare = value.dtype == self.options.float_dtype and not said and text[0] != '"'
            text = self.step(text, value, "value")
        elif value.dtype == "bool":
            return f"T.bool({bool(value.value)})"
        else:
            text = self.step(str(value.value), value, "value")
            bare = value.dtype == self.int_dtype and not said
        return text if bare else f"T.{value.dtype}({text})"

    # --------------------------------------------------------------------------------------------------------- types

    def type(self, ty: Type | None) -> str:
        """A type's text."""
        if ty is None:
            return "None"
        method = _TYPES.get(type(ty))
        if isinstance(ty, Ty.TupleType) and any(isinstance(field, Ty.TupleType) for field in ty.fields):
            check_length(ty)
        return self.marked(method(self, ty) if method is not None else f"<{type(ty).__name__}>", ty)

    def lone_type(self, ty: Type) -> str:
        """A type by itself, in Relax's layout: a tuple is one of the loop level's."""
        if not isinstance(ty, Ty.TupleType):
            return self.type(ty)
        if not ty.fields:
            return self.marked("None", ty)
        graph_ints, self.int_dtype = self.int_dtype, "int32"
        self.loop_dims = True
        fields = [self.lone_type(f) for f in ty.fields]
        self.int_dtype, self.loop_dims = graph_ints, False
        return self.marked(f"T.Tuple({', '.join(fields)})", ty)

    def _dims(self, values: tuple[Expr, ...], default: str = "int64") -> str:
        inner = ", ".join(self.dim(v, default) for v in values)
        return f"({inner},)" if len(values) == 1 else f"({inner})"

    def _tensor_type(self, ty: Ty.TensorType) -> str:
        parts: list[str] = []
        if isinstance(ty.shape, G.ShapeExpr):
            parts.append(self._dims(ty.shape.values))
        elif ty.shape is not None:
            parts.append(self.expr(ty.shape))
        if ty.dtype is not None:
            parts.append(f"dtype={self.step(quote(ty.dtype), ty, 'dtype')}")
        if ty.shape is None and ty.ndim != -1:
            parts.append(f"ndim={ty.ndim}")
        if ty.vdevice is not None:
            parts.append(f"vdevice={self._vdevice(ty.vdevice)}")
        return f"R.Tensor({', '.join(parts)})" if parts else "R.Tensor"

    def _vdevice(self, device: Any) -> str:
        """A virtual device by its kind and place among the module's of that kind, else spelled out."""
        same_kind = [d for d in self.infos.get("vdevice", ()) if getattr(d, "kind", None) == device.kind]
        for index, known in enumerate(same_kind):
            if known is device or structural_equal(known, device):
                return quote(f"{device.kind}:{index}:{device.memory_scope}")
        target = "None" if device.target is None else self._target_config(device.target)
        return f"I.vdevice({target}, {device.vdevice_id}, {quote(device.memory_scope)})"

    def _mesh(self, mesh: Ty.DeviceMesh) -> str:
        """A device mesh by its place among the module's, else spelled out."""
        for index, known in enumerate(self.infos.get("mesh", ())):
            if known is mesh or structural_equal(known, mesh):
                return quote(f"mesh[{index}]")
        ids = mesh.device_ids
        shape = ", ".join(str(extent) for extent in mesh.shape)
        shape = f"({shape},)" if len(mesh.shape) == 1 else f"({shape})"
        if mesh.device_range is not None and ids:
            return f"R.device_mesh({shape}, I.Range({ids[0]}, {ids[0] + len(ids)}))"
        return f"R.device_mesh({shape}, {self.attr(ids)})"

    def _device(self, device: Device) -> str:
        return self.style.device.format(device.type, device.device_type, device.index)

    def _lambda(self, params: tuple[Var, ...], results: tuple[Expr, ...], single: str = "{}") -> str:
        """A function of scalars; ``single`` is how one result is written."""
        self.names.open_scope()
        names = ", ".join(self.names.define(p) for p in params)
        inner = ", ".join(self.expr(r) for r in results)
        self.names.close_scope()
        return f"lambda {names}: {single.format(inner) if len(results) == 1 else f'({inner})'}"

    def _reducer(self, e: CommReducer) -> str:
        identity = ", ".join(self.expr(i) for i in e.identity_element)
        return f"T.comm_reducer({self._lambda((*e.lhs, *e.rhs), e.result)}, [{identity}])"

    def _index_map(self, e: IndexMap) -> str:
        parts = [self._lambda(e.initial_indices, e.final_indices, "({},)")]
        if e.inverse_index_map is not None:
            inverse = e.inverse_index_map
            parts.append(f"inverse_index_map={self._lambda(inverse.initial_indices, inverse.final_indices, '({},)')}")
        dtype = e.initial_indices[0].dtype if e.initial_indices else "int64"
        if dtype != "int64":
            parts.append(f"index_dtype={quote(dtype)}")
        return f"T.index_map({', '.join(parts)})"

    def _target(self, target: NamedTarget) -> str:
        return f"T.target({self._target_config(target)})"

    def _target_config(self, target: NamedTarget) -> str:
        given = target.export() if self.style.all_attributes else target.given()
        return quote(target.kind.name) if set(given) == {"kind"} else self._config(given)

    def _config(self, value: Any) -> str:
        """A target's dict as Relax writes it: sorted keys, lists."""
        if isinstance(value, dict):
            return "{" + ", ".join(f"{quote(k)}: {self._config(v)}" for k, v in sorted(value.items())) + "}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(self._config(v) for v in value) + "]"
        return quote(value) if isinstance(value, str) else str(value)

    def _distributed_type(self, ty: Ty.DTensorType) -> str:
        tensor = ty.tensor_ty
        parts = [self._dims(tensor.shape.values)] if isinstance(tensor.shape, G.ShapeExpr) else []
        if tensor.shape is not None and tensor.dtype is not None:
            where = (quote(tensor.dtype), self._mesh(ty.device_mesh), quote(ty.placement))
            return f"R.DTensor({', '.join([*parts, self.style.distributed.format(*where)])})"
        if tensor.dtype is not None:
            parts.append(f"dtype={quote(tensor.dtype)}")
        parts += [f"device_mesh={self._mesh(ty.device_mesh)}", f"placement={quote(ty.placement)}"]
        if tensor.shape is None and tensor.ndim != -1:
            parts.append(f"ndim={tensor.ndim}")
        return f"R.DTensor({', '.join(parts)})"

    def _tuple_type(self, ty: Ty.TupleType) -> str:
        return f"R.Tuple({', '.join(self.type(f) for f in ty.fields)})" if ty.fields else self.style.unit_type

    def _shape_type(self, ty: Ty.ShapeType) -> str:
        if ty.values is not None:
            return f"R.Shape([{', '.join(self.dim(v) for v in ty.values)}])"
        return f"R.Shape(ndim={ty.ndim})" if ty.ndim != -1 else self.style.unknown_rank

    def _prim_type(self, ty: Ty.PrimType) -> str:
        return self.style.prim_type.format(ty.dtype)

    def _func_type(self, ty: Ty.FuncType) -> str:
        parts: list[str] = []
        if ty.params is None:
            if not isinstance(ty.ret, Ty.AnyType):
                parts.append(f"ret={self.type(ty.ret)}")
        else:
            inner = ", ".join(self.type(p) for p in ty.params)
            parts += [f"({inner},)" if len(ty.params) == 1 else f"({inner})", self.type(ty.ret)]
        purity = self.style.purity(ty)
        if purity:
            parts.append(purity)
        return f"R.Callable({', '.join(parts)})" if parts else self.style.opaque_function

    def _any_type(self, ty: Ty.AnyType) -> str:
        return "R.Any"

    def _string_type(self, ty: Ty.StringType) -> str:
        return self.style.string_type

    def _buffer_type(self, ty: BufferType) -> str:
        return f"T.Buffer({', '.join(self.buffer_arguments(ty, parameter=True))})"

    def _pointer_type(self, ty: Ty.PointerType) -> str:
        return f"T.handle({quote(ty.element)}, {quote(ty.scope)})" if ty.element else "T.handle"

    def _void_type(self, ty: Ty.VoidType) -> str:
        return "None"

    def buffer_arguments(self, ty: BufferType, *, parameter: bool = False) -> list[str]:
        """The arguments of ``T.Buffer`` and its relatives; a ``parameter`` always says its dtype."""
        ints = self.options.int_dtype if self.style.typed_numbers else "int32"
        parts = [self._dims(ty.shape, ints)]
        if parameter or ty.dtype != self.style.default_dtype:
            parts.append(quote(ty.dtype))
        if ty.data is not None:
            parts.append(f"data={self.expr(ty.data)}")
        if ty.strides:
            parts.append(f"strides={self._dims(ty.strides, ints)}")
        if ty.elem_offset is not None:
            parts.append(f"elem_offset={self.dim(ty.elem_offset, ints)}")
        if ty.scope != "global":
            parts.append(f"scope={quote(ty.scope)}")
        if ty.align != 64:
            parts.append(f"align={ty.align}")
        if ty.offset_factor > (0 if ty.elem_offset is None else 1):  # 1 says that there is an offset
            parts.append(f"offset_factor={ty.offset_factor}")
        return parts


def _key_text(item: tuple[Any, Any]) -> str:
    return str(item[0])


_ATTRIBUTES: dict[type, Callable[[TypePrinter, Any], str]] = {
    Ty.VDevice: TypePrinter._vdevice,
    Ty.DummyGlobalInfo: lambda *_: "I.dummy_global_info()",
    Ty.DeviceMesh: TypePrinter._mesh,
    Device: TypePrinter._device,
    CommReducer: TypePrinter._reducer,
    IndexMap: TypePrinter._index_map,
    NamedTarget: TypePrinter._target,
}
_TYPES: dict[type[Type], Callable[[TypePrinter, Any], str]] = {
    Ty.TensorType: TypePrinter._tensor_type,
    Ty.DTensorType: TypePrinter._distributed_type,
    Ty.TupleType: TypePrinter._tuple_type,
    Ty.ShapeType: TypePrinter._shape_type,
    Ty.PrimType: TypePrinter._prim_type,
    Ty.FuncType: TypePrinter._func_type,
    Ty.AnyType: TypePrinter._any_type,
    Ty.StringType: TypePrinter._string_type,
    BufferType: TypePrinter._buffer_type,
    Ty.PointerType: TypePrinter._pointer_type,
    Ty.VoidType: TypePrinter._void_type,
}
