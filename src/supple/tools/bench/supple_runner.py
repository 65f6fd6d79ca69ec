"""Cases in Supple: built with a `BlockBuilder`, compiled once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from supple import relax
from supple.driver import compile as compile_program
from supple.ir.expr import Var
from supple.ir.graph import ShapeExpr
from supple.ir.module import IRModule
from supple.ir.types import TensorType, prim_type
from supple.script import from_source
from supple.tools.bench.cases import Case

PAGE_LOOPS = """
from supple.script import ir as I, relax as R, tirx as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def linear(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
        M, N, K = T.int64(), T.int64(), T.int64()
        X = T.match_buffer(x, (M, K), "float32")
        W = T.match_buffer(w, (K, N), "float32")
        B = T.match_buffer(b, (N,), "float32")
        Z = T.match_buffer(z, (M, N), "float32")
        Y = T.alloc_buffer((M, N), "float32")
        for i, j, k in T.grid(M, N, K):
            with T.sblock("Y"):
                v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[v_i, v_j] = T.float32(0)
                Y[v_i, v_j] = Y[v_i, v_j] + X[v_i, v_k] * W[v_k, v_j]
        for i, j in T.grid(M, N):
            with T.sblock("Z"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                Z[v_i, v_j] = Y[v_i, v_j] + B[v_j]

    @T.prim_func(private=True)
    def relu(x: T.handle, y: T.handle):
        M, N = T.int64(), T.int64()
        X = T.match_buffer(x, (M, N), "float32")
        Y = T.match_buffer(y, (M, N), "float32")
        for i, j in T.grid(M, N):
            with T.sblock("Y"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                Y[v_i, v_j] = T.max(X[v_i, v_j], T.float32(0))

    @R.function
    def main(
        x: R.Tensor(("n", 784), "float32"),
        w0: R.Tensor((784, 256), "float32"),
        b0: R.Tensor((256,), "float32"),
        w1: R.Tensor((256, 10), "float32"),
        b1: R.Tensor((10,), "float32"),
    ):
        cls = Module
        n = T.int64()
        with R.dataflow():
            lv0 = R.call_tir(cls.linear, (x, w0, b0), out_ty=R.Tensor((n, 256), "float32"))
            lv1 = R.call_tir(cls.relu, (lv0,), out_ty=R.Tensor((n, 256), "float32"))
            out = R.call_tir(cls.linear, (lv1, w1, b1), out_ty=R.Tensor((n, 10), "float32"))
            R.output(out)
        return out
"""
"""The network of hand-written loop functions."""


class RelaxOps:
    """The operators of cases as calls of Relax."""

    def matmul(self, a: Any, b: Any, out_dtype: str | None = None) -> Any:
        return relax.op.matmul(a, b, out_dtype=out_dtype)

    def transpose(self, a: Any) -> Any:
        return relax.op.permute_dims(a)

    def add(self, a: Any, b: Any) -> Any:
        return relax.op.add(a, b)

    def multiply(self, a: Any, b: Any) -> Any:
        return relax.op.multiply(a, b)

    def exp(self, a: Any) -> Any:
        return relax.op.exp(a)

    def tanh(self, a: Any) -> Any:
        return relax.op.tanh(a)

    def sigmoid(self, a: Any) -> Any:
        return relax.op.sigmoid(a)

    def relu(self, a: Any) -> Any:
        return relax.op.nn.relu(a)

    def gelu(self, a: Any) -> Any:
        return relax.op.nn.gelu(a)

    def softmax(self, a: Any) -> Any:
        return relax.op.nn.softmax(a)

    def layer_norm(self, a: Any, gamma: Any, beta: Any) -> Any:
        return relax.op.nn.layer_norm(a, gamma, beta, axes=[-1])

    def sum_rows(self, a: Any) -> Any:
        return relax.op.sum(a, axis=-1)


def module_of(case: Case, arrays: list[Any]) -> IRModule:
    """The case's program; bound operands are constants in it."""
    if case.form == "loops":
        mod = from_source(PAGE_LOOPS)
        assert isinstance(mod, IRModule)
        bound = {f"{'wb'[i % 2]}{i // 2}": a for i, a in enumerate(arrays[1:]) if case.inputs[i + 1].bound}
        return relax.transform.BindParams("main", bound)(mod) if bound else mod
    builder = relax.BlockBuilder()
    operands: list[Any] = []
    params: list[Var] = []
    for position, (item, array) in enumerate(zip(case.inputs, arrays, strict=True)):
        if item.bound:
            operands.append(relax.const(array))
            continue
        shape: list[Any] = list(item.shape)
        if position == 0 and case.symbolic_rows:
            shape[0] = Var("n", prim_type("int64"))
        params.append(Var(f"x{position}", TensorType(ShapeExpr(tuple(shape)), item.dtype)))
        operands.append(params[-1])
    with builder.function("main", params):
        with builder.dataflow():
            result = builder.emit_output(case.build(RelaxOps(), *operands))
        builder.emit_func_output(result)
    return builder.get()


def prepare(case: Case, arrays: list[Any]) -> Callable[[], Any]:
    """The compiled case as a function without arguments."""
    run = compile_program(module_of(case, arrays))["main"]
    given = case.given(arrays)
    return lambda: run(*given)
