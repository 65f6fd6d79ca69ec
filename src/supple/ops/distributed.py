"""Collective operators (``ccl.*``) and placement of distributed tensors (``dist.*``), with their meaning on one device:
one worker holds everything, so nothing moves. What needs more workers has a type, and is refused when it is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from supple.base.errors import NotSupportedError
from supple.build import te
from supple.build.infer import infer
from supple.ir import expr as E
from supple.ir.expr import Call
from supple.ir.graph import GlobalVar, ShapeExpr
from supple.ir.node import Expr, Type
from supple.ir.op import OPS, Op, Param
from supple.ir.types import DTensorType, TensorType
from supple.ops.calls import CALL_TIR, destination_call, destination_result
from supple.ops.declare import Mesh, fail, operator, sample
from supple.sym.relate import tensor_dims
from supple.sym.simplify import SHAPES, exact_quotient

_REDUCTIONS = ("sum", "prod", "min", "max", "avg")


def _copy(data: te.TensorValue, **_: Any) -> te.TensorValue:
    """One worker's value is everybody's."""
    return te.compute(data.shape, lambda *i: data[i], "collective")


def _one_worker(name: str) -> Callable[..., te.TensorValue]:
    def lower(data: te.TensorValue, num_workers: int, **attrs: Any) -> te.TensorValue:
        _check_workers(name, num_workers)
        return _copy(data)

    return lower


def _check_workers(name: str, num_workers: int) -> None:
    if num_workers != 1:
        raise NotSupportedError(f"{name} of {num_workers} workers cannot run on one device")


def _one_worker_ref(name: str) -> Callable[..., Any]:
    def ref(data: Any, num_workers: int, **attrs: Any) -> Any:
        _check_workers(name, num_workers)
        return np.asarray(data)

    return ref


@operator(
    "ccl.allreduce",
    lower=_copy,
    ref=lambda x, **_: np.asarray(x),
    samples=lambda: [sample((3, 4), op_type=kind) for kind in _REDUCTIONS],
)
def allreduce(x: TensorType, op_type: str = "sum", in_group: bool = True) -> Type:
    """The sum, product, minimum, maximum or mean (``op_type``) of all workers' tensors, at every worker."""
    if op_type not in _REDUCTIONS:
        fail("ccl.allreduce: unknown reduction", ", ".join(_REDUCTIONS), op_type)
    return x


@operator(
    "ccl.allgather",
    lower=_one_worker("ccl.allgather"),
    ref=_one_worker_ref("ccl.allgather"),
    samples=lambda: [sample((3, 4), num_workers=1)],
)
def allgather(x: TensorType, num_workers: int, in_group: bool = True) -> Type:
    """The tensors of all workers one after the other along the first axis, at every worker."""
    _positive("ccl.allgather", num_workers)
    dims = tensor_dims(x)
    if x.ndim == 0:
        fail("ccl.allgather needs an axis to gather along", "at least one dimension", "0 dimensions")
    if dims is None:
        return TensorType(None, x.dtype, x.ndim)
    first = SHAPES.simplify(E.Mul(dims[0], E.const(num_workers, E.scalar_dtype(dims[0]))))
    return TensorType(ShapeExpr((first, *dims[1:])), x.dtype)


@operator(
    "ccl.broadcast_from_worker0",
    lower=_copy,
    ref=lambda x: np.asarray(x),
    samples=lambda: [sample((3, 4))],
)
def broadcast_from_worker0(x: TensorType) -> Type:
    """The tensor of worker 0, at every worker."""
    return x


def _scattered(name: str, x: TensorType, num_workers: int, axis: int) -> Type:
    _positive(name, num_workers)
    dims = tensor_dims(x)
    if x.ndim != -1 and not -x.ndim <= axis < x.ndim:
        fail(f"{name}: the axis is out of range", f"{-x.ndim} to {x.ndim - 1}", str(axis))
    if dims is None:
        hint = "R.match_cast(x, R.Tensor((...))) names the sizes of x"
        fail(f"{name}: needs the sizes of the tensor", "a known shape", str(x), hint=hint)
    axis %= len(dims)
    parts = E.const(num_workers, E.scalar_dtype(dims[axis]))
    share = exact_quotient(dims[axis], parts)
    if share is None:
        if isinstance(dims[axis], E.IntImm):
            fail(f"{name}: the axis cannot be divided evenly", f"a multiple of {num_workers}", str(dims[axis]))
        share = SHAPES.simplify(E.FloorDiv(dims[axis], parts))
    return TensorType(ShapeExpr((*dims[:axis], share, *dims[axis + 1 :])), x.dtype)


def _positive(name: str, num_workers: int) -> None:
    if num_workers < 1:
        fail(f"{name}: there is at least one worker", "num_workers >= 1", str(num_workers))


@operator(
    "ccl.scatter_from_worker0",
    lower=_one_worker("ccl.scatter_from_worker0"),
    ref=_one_worker_ref("ccl.scatter_from_worker0"),
    samples=lambda: [sample((3, 4), num_workers=1), sample((3, 4), num_workers=1, axis=-1)],
)
def scatter_from_worker0(x: TensorType, num_workers: int, axis: int = 0) -> Type:
    """The tensor of worker 0 in equal parts along an axis, one for each worker."""
    return _scattered("ccl.scatter_from_worker0", x, num_workers, axis)


@operator(
    "dist.redistribute_replica_to_shard",
    lower=_one_worker("dist.redistribute_replica_to_shard"),
    ref=_one_worker_ref("dist.redistribute_replica_to_shard"),
    samples=lambda: [sample((3, 4), num_workers=1, axis=1)],
)
def redistribute_replica_to_shard(input: TensorType, num_workers: int, axis: int) -> Type:
    """Each worker's own part along an axis of a tensor that all of them hold."""
    return _scattered("dist.redistribute_replica_to_shard", input, num_workers, axis)


@operator("dist.annotate_sharding")
def annotate_sharding(input: Expr, device_mesh: Mesh, placement: str) -> Type:
    """The same tensor, with a hint how it should be placed: ``"S[0], R"``, one entry an axis of the mesh."""
    ty = infer(input)
    if isinstance(ty, TensorType):
        DTensorType(ty, device_mesh, placement)  # checks the placement
    return ty


@operator("dist.redistribute")
def redistribute(input: Expr, device_mesh: Mesh, placement: str) -> Type:
    """A distributed tensor placed in another way."""
    ty = infer(input)
    if not isinstance(ty, DTensorType):
        fail("dist.redistribute takes a distributed tensor", "R.DTensor", str(ty), input)
    return DTensorType(ty.tensor_ty, device_mesh, placement)


annotate_sharding.facts["value"] = redistribute.facts["value"] = "argument"


CALL_TIR_LOCAL_VIEW = OPS.register(
    "relax.dist.call_tir_local_view",
    Op(
        "relax.dist.call_tir_local_view",
        "Like ``call_tir``, with a loop function that works on one worker's part of distributed tensors.",
        (Param("func", "expr"), Param("args", "varargs", ())),
        destination_result,
        facts={"prints": "destination"},
    ),
)


def call_tir_local_view(gvar: GlobalVar, args: Any, out_ty: Any) -> Call:
    """``R.dist.call_tir_local_view(cls.f, (x,), out_ty=R.DTensor(...))``."""
    return destination_call(CALL_TIR_LOCAL_VIEW, gvar, args, out_ty, None)


def dist_call_tir(gvar: GlobalVar, args: Any, out_ty: Any, tir_vars: Any = None) -> Call:
    """``R.dist.call_tir(cls.f, (x,), out_ty=R.DTensor(...))``: ``call_tir`` of a function of the whole tensors."""
    return destination_call(CALL_TIR, gvar, args, out_ty, tir_vars)


BUILDERS: dict[str, Callable[..., Call]] = {
    "dist.call_tir": dist_call_tir,
    "dist.call_tir_local_view": call_tir_local_view,
}
"""What the names of ``R`` call where a call takes more than the operator's arguments and attributes."""
