"""Types. Graph values have `TensorType`, `TupleType`, `ShapeType`, `PrimType`, `FuncType` or `AnyType`;
loop-level buffers have `BufferType`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from supple.base.dtypes import check_dtype, is_int, lanes, row
from supple.base.named_target import NamedTarget
from supple.ir.node import METHODS, Expr, Node, Type, as_tuple, ignored, node, set_field

SHAPE_OF: dict[str, Callable[[Any], Any]] = {}
"""``"expr"`` makes a shape value of a sequence of ints and scalars, ``"values"`` the tuple of its values.
Filled by the graph level, whose nodes these are."""


@node
class PrimType(Type):
    """A scalar of one dtype: ``R.Prim("int64")``, loop variables, symbols."""

    dtype: str

    def __post_init__(self) -> None:
        if type(self.dtype) is not str:
            set_field(self, "dtype", str(self.dtype))

    def is_scalar(self) -> bool:
        """Whether it is the dtype of one number, not of a vector."""
        return lanes(self.dtype) == 1

    def matches_code(self, *codes: int) -> bool:
        """Whether the dtype's kind, by DLPack's number, is one of those."""
        return row(self.dtype).dlpack in codes

    def matches_element_type(self, code: int, bits: int) -> bool:
        """Whether an element is of that kind, by DLPack's number, and of that many bits."""
        found = row(self.dtype)
        return found.dlpack == code and found.bits == bits

    def __str__(self) -> str:
        return str(METHODS["prim_text"](self))


@functools.lru_cache(maxsize=1024)
def prim_type(dtype: str) -> PrimType:
    """The shared `PrimType` of a dtype."""
    return PrimType(check_dtype(dtype))


class GlobalInfo(Node):
    """What a module says of all its functions: ``I.module_global_infos({"vdevice": [...]})``."""

    __slots__ = ()


@node
class DummyGlobalInfo(GlobalInfo):
    """A global info without content: ``I.dummy_global_info()``."""


@node
class VDevice(GlobalInfo):
    """A virtual device: where a tensor lives. ``target`` may be given as text or as a dict."""

    target: Any = None  # a NamedTarget, or None
    vdevice_id: int = 0
    memory_scope: str = "global"

    def __post_init__(self) -> None:
        if self.target is not None and not isinstance(self.target, NamedTarget):
            set_field(self, "target", NamedTarget(self.target))

    @property
    def kind(self) -> str:
        """The target's kind: ``"llvm"``, ``"cuda"``..."""
        return "" if self.target is None else str(self.target.kind)

    @staticmethod
    def parse(text: str) -> VDevice:
        """The device of its own that ``"llvm:1"`` names."""
        return VDevice(*VDevice.parts(text))

    @staticmethod
    def parts(text: str) -> tuple[str, int, str]:
        """What ``"llvm"``, ``"llvm:1"``, ``"llvm:0:global"`` name a device by: kind, index and scope."""
        kind, _, rest = text.partition(":")
        index, _, scope = rest.partition(":")
        if not kind or (index and not index.isdigit()):
            raise ValueError(f"vdevice: expected 'kind', 'kind:index' or 'kind:index:scope', got {text!r}")
        return kind, int(index or 0), scope or "global"


@node
class TensorType(Type):
    """A tensor: ``R.Tensor((n, 784), "float32")``.

    ``shape`` is a `ShapeExpr` (or a sequence of ints and scalars), a variable of `ShapeType`, or None when unknown;
    ``dtype`` is None when unknown (not said it is float32, as in Relax); ``ndim`` is -1 when unknown.
    Positions 3 and 4 are taken in either order: ``ndim, vdevice`` or Relax's ``vdevice, ndim``.
    """

    shape: Expr | None = None
    dtype: str | None = "float32"
    ndim: int = -1
    vdevice: object = None

    def __post_init__(self) -> None:
        if self.shape is not None and not isinstance(self.shape, Expr):
            set_field(self, "shape", SHAPE_OF["expr"](self.shape))
        if isinstance(self.dtype, PrimType):
            set_field(self, "dtype", self.dtype.dtype)
        elif self.dtype in ("", "void"):
            set_field(self, "dtype", None)
        if self.dtype is not None:
            check_dtype(self.dtype)
        if not isinstance(self.ndim, int) or isinstance(self.vdevice, int):  # Relax's order: vdevice, ndim
            device, rank = self.ndim, self.vdevice
            set_field(self, "ndim", -1 if rank is None else rank)
            set_field(self, "vdevice", device)
        if isinstance(self.vdevice, str):
            set_field(self, "vdevice", VDevice.parse(self.vdevice))
        values = getattr(self.shape, "values", None)
        negative = next(
            (v.value for v in values or () if isinstance(getattr(v, "value", None), int) and v.value < 0), None
        )
        if negative is not None:
            raise ValueError(f"a tensor's dimension cannot be negative: {negative}")
        rank = len(values) if values is not None else getattr(getattr(self.shape, "ty", None), "ndim", -1)
        if rank not in (-1, self.ndim):
            if self.ndim != -1:
                raise ValueError(f"TensorType: ndim={self.ndim} contradicts the shape of {rank} dimensions")
            set_field(self, "ndim", rank)


@node
class DeviceMesh(Node):
    """A grid of devices for distributed tensors: ``R.device_mesh((2, 2), I.Range(0, 4))``."""

    shape: tuple[int, ...]
    device_ids: tuple[int, ...]
    device_range: Any = ignored(default=None)
    """The `Range` that the devices were given as, if they were: it is how they are written."""

    def __post_init__(self) -> None:
        ids: Any = self.device_ids
        if hasattr(ids, "extent"):
            set_field(self, "device_range", ids)
            set_field(self, "device_ids", range(int(ids.min), int(ids.min) + int(ids.extent)))
        set_field(self, "shape", tuple(int(extent) for extent in self.shape))
        set_field(self, "device_ids", tuple(int(device) for device in self.device_ids))
        count = 1
        for extent in self.shape:
            count *= extent
        if count != len(self.device_ids):
            raise ValueError(f"device_mesh: shape {self.shape} has {count} places, but {len(self.device_ids)} devices")


@dataclass(frozen=True, slots=True)
class PlacementSpec:
    """What one axis of a mesh does with a tensor: splits it along the tensor's ``axis``, or (-1) replicates it.
    Make it with `sharding` or `replica`."""

    axis: int = -1

    @property
    def kind(self) -> int:
        """Relax's number: 0 splits, 1 replicates."""
        return 1 if self.axis < 0 else 0

    @staticmethod
    def sharding(axis: int) -> PlacementSpec:
        """Split along an axis of the tensor."""
        if axis < 0:
            raise ValueError(f"placement: an axis of the tensor counts from 0, got {axis}")
        return PlacementSpec(axis)

    @staticmethod
    def replica() -> PlacementSpec:
        """The whole tensor on each device."""
        return PlacementSpec()

    def __str__(self) -> str:
        return "R" if self.axis < 0 else f"S[{self.axis}]"


class Placement(str):
    """How a tensor lies on a mesh, one `PlacementSpec` an axis of the mesh; it is its own text (``"S[0], R"``)."""

    __slots__ = ()

    def __new__(cls, dim_specs: Sequence[PlacementSpec] | str) -> Placement:
        specs = cls.from_text(dim_specs).dim_specs if isinstance(dim_specs, str) else dim_specs
        return super().__new__(cls, ", ".join(map(str, specs)))

    @property
    def dim_specs(self) -> tuple[PlacementSpec, ...]:
        """One entry an axis of the mesh."""
        return tuple(PlacementSpec(-1 if part == "R" else int(part[2:-1])) for part in str(self).split(", "))

    @staticmethod
    def from_text(text: str) -> Placement:
        """The placement that a text such as ``"S[0], R"`` says. Raises ``ValueError`` for any other text."""
        specs: list[PlacementSpec] = []
        for part in (part.strip() for part in str(text).split(",")):
            if part != "R" and not (part.startswith("S[") and part.endswith("]") and part[2:-1].isdecimal()):
                raise ValueError(f"placement: expected 'R' or 'S[axis]' for each axis of the mesh, got {part!r}")
            specs.append(PlacementSpec.replica() if part == "R" else PlacementSpec.sharding(int(part[2:-1])))
        return Placement(specs)


@node
class DTensorType(Type):
    """A tensor that is spread over a `DeviceMesh`. ``placement`` (a `Placement` or its text) says how, one entry an
    axis of the mesh: ``"S[0], R"`` (split along the tensor's axis 0, replicated)."""

    tensor_ty: TensorType
    device_mesh: DeviceMesh
    placement: Placement | str

    def __post_init__(self) -> None:
        if not isinstance(self.device_mesh, DeviceMesh):
            raise TypeError(f"DTensorType: expected a device mesh, got {self.device_mesh!r}")
        placement = Placement.from_text(self.placement)
        if len(placement.dim_specs) != len(self.device_mesh.shape):
            count = len(placement.dim_specs)
            raise ValueError(f"placement: {count} entries for a mesh of {len(self.device_mesh.shape)} axes")
        for spec in placement.dim_specs:
            if self.tensor_ty.ndim != -1 and spec.axis >= self.tensor_ty.ndim:
                raise ValueError(f"placement: {spec} splits an axis that a tensor of {self.tensor_ty.ndim} has not")
        set_field(self, "placement", placement)

    @property
    def dtype(self) -> str | None:
        return self.tensor_ty.dtype

    @property
    def ndim(self) -> int:
        return self.tensor_ty.ndim

    @property
    def shape(self) -> Expr | None:
        return self.tensor_ty.shape


@node
class TupleType(Type):
    """A tuple of known length."""

    fields: tuple[Type, ...] = ()

    def __post_init__(self) -> None:
        as_tuple(self, "fields")


def declared_type(types: Sequence[Type]) -> tuple[Type, ...]:
    """How a call by destination passing keeps the types of its results, as Relax does: several are one tuple."""
    return (TupleType(tuple(types)),) if len(types) > 1 else tuple(types)


def result_types(ty_args: tuple[Type, ...]) -> tuple[Type, ...]:
    """The types of a call's results one by one, from what it declares (`declared_type`)."""
    return ty_args[0].fields if len(ty_args) == 1 and isinstance(ty_args[0], TupleType) else ty_args


def on_device(ty: Type, device: object) -> Type:
    """A tensor's type, or a tuple's, with its tensors on a virtual device; None: their place is unknown."""
    if isinstance(ty, TupleType):
        return TupleType(tuple(on_device(f, device) for f in ty.fields))
    if isinstance(ty, TensorType) and ty.vdevice is not device:
        return TensorType(ty.shape, ty.dtype, ty.ndim, device)
    return ty


@node
class ShapeType(Type):
    """A shape value: ``R.Shape(["n", 4])`` with known ``values``, or ``R.Shape(ndim=2)``; ``ndim`` -1: unknown."""

    values: tuple[Expr, ...] | None = None
    ndim: int = -1

    def __post_init__(self) -> None:
        if self.values is not None and not _is_values(self.values):
            set_field(self, "values", SHAPE_OF["values"](self.values))
        if self.values is not None and self.ndim != len(self.values):
            if self.ndim != -1:
                raise ValueError(f"ShapeType: ndim={self.ndim} contradicts {len(self.values)} values")
            set_field(self, "ndim", len(self.values))


def _is_values(values: Any) -> bool:
    return type(values) is tuple and all(isinstance(v, Expr) for v in values)


@node
class FuncType(Type):
    """A function. ``params`` is None for an opaque callable (``R.Callable()``); then ``ret`` may be `AnyType`.

    The symbols in ``params`` are scoped to the type.
    """

    params: tuple[Type, ...] | None
    ret: Type
    purity: bool = True

    def __post_init__(self) -> None:
        if self.params is not None:
            as_tuple(self, "params")

    @property
    def derive_func(self) -> None:
        """The function that deduces the result from a call: there is none, `ret` says it."""
        return None

    @property
    def arg_types(self) -> tuple[Type, ...] | None:
        """Relax's other name for ``params``."""
        return self.params

    @property
    def ret_type(self) -> Type:
        """Relax's other name for ``ret``."""
        return self.ret

    @staticmethod
    def opaque_func(*, ret: Type | None = None, purity: bool = False) -> FuncType:
        """A function of unknown parameters; it returns ``ret``, or anything."""
        return FuncType(None, AnyType() if ret is None else ret, purity)


class _PackedFunctions(type):
    def __call__(cls, span: Any = None) -> FuncType:
        return FuncType.opaque_func()

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, FuncType) and instance.params is None


class PackedFuncType(metaclass=_PackedFunctions):
    """Functions of unknown parameters: ``PackedFuncType()`` makes the `FuncType` that takes and returns anything."""


@node
class AnyType(Type):
    """Any graph value at all: ``R.Any`` (``R.Object`` in older text)."""


@node
class StringType(Type):
    """A string value (``R.str("a")``) or a dtype value."""


@node
class BufferType(Type):
    """A loop-level buffer: the type of a `Var` that loads and stores index.

    ``strides`` (elements) is empty for a compact row-major buffer; ``elem_offset`` counts elements; ``data`` is the
    pointer variable of a view, or None when the buffer is its own storage; ``scope`` is ``"global"``, ``"local"``...
    """

    shape: tuple[Expr, ...]
    dtype: str
    scope: str = "global"
    strides: tuple[Expr, ...] = ()
    elem_offset: Expr | None = None
    data: Expr | None = None
    align: int = ignored(default=64)
    offset_factor: int = ignored(default=0)  # what divides the offset; 0: nothing was said, which means 1

    @property
    def storage_scope(self) -> str:
        """Relax's name for ``scope``."""
        return self.scope

    @property
    def data_alignment(self) -> int:
        """Relax's name for ``align``."""
        return self.align

    def __post_init__(self) -> None:
        check_dtype(self.dtype)
        for what, sizes in (("shape", self.shape), ("strides", self.strides)):
            for size in sizes:
                dtype = getattr(size, "dtype", None)
                if dtype is None or not is_int(dtype):
                    raise TypeError(f"a buffer's {what} must be integers, got {size}")
        literal = getattr(self.elem_offset, "value", None)
        if type(literal) is int and literal == 0:  # the same as to say nothing
            set_field(self, "elem_offset", None)


@node
class PointerType(Type):
    """A raw pointer (``T.handle("float32")``)."""

    element: str | None = None
    scope: str = "global"

    def __post_init__(self) -> None:
        if isinstance(self.element, PrimType):
            set_field(self, "element", self.element.dtype)

    @property
    def element_type(self) -> Type:
        """What is pointed at."""
        return VoidType() if self.element is None else PrimType(self.element)

    @property
    def storage_scope(self) -> str:
        """The storage scope."""
        return self.scope


@node
class VoidType(Type):
    """The type of an expression that is evaluated for its effect only."""
