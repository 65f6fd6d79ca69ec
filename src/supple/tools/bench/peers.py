"""The libraries that Supple is compared with: each takes what is installed, with the threads it is told.

A peer prepares a case once and returns a function without arguments. What a peer cannot express, or refuses, is no
result of that peer; the report says so.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from supple.tools.bench.cases import Case
from supple.tools.bench.numpy_ops import NumpyOps

Runner = Callable[[], Any]


@dataclass(frozen=True)
class Peer:
    """A library: the module to look for, its distribution, and how it prepares a case (threads given)."""

    name: str
    module: str
    distribution: str
    prepare: Callable[[Case, list[Any], int], Runner]

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.module) is not None

    @property
    def version(self) -> str:
        return version(self.distribution)


def _numpy(case: Case, arrays: list[Any], threads: int) -> Runner:
    ops = NumpyOps()
    return lambda: case.build(ops, *arrays)


# ------------------------------------------------------------------------------------------------------------- PyTorch


class _TorchOps(NumpyOps):
    def __init__(self, torch: Any) -> None:
        self.torch, self.functional = torch, torch.nn.functional

    def matmul(self, a: Any, b: Any, out_dtype: str | None = None) -> Any:
        if out_dtype == "int32":
            return self.torch._int_mm(a, b)
        return (a @ b) if out_dtype is None else (a @ b).to(getattr(self.torch, out_dtype))

    def exp(self, a: Any) -> Any:
        return self.torch.exp(a)

    def tanh(self, a: Any) -> Any:
        return self.torch.tanh(a)

    def sigmoid(self, a: Any) -> Any:
        return self.torch.sigmoid(a)

    def relu(self, a: Any) -> Any:
        return self.torch.relu(a)

    def gelu(self, a: Any) -> Any:
        return self.functional.gelu(a)

    def softmax(self, a: Any) -> Any:
        return self.torch.softmax(a, -1)

    def layer_norm(self, a: Any, gamma: Any, beta: Any) -> Any:
        return self.functional.layer_norm(a, (a.shape[-1],), gamma, beta, 1e-5)


def _as_torch(torch: Any, array: Any) -> Any:
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array)


def _torch(case: Case, arrays: list[Any], threads: int) -> Runner:
    torch = importlib.import_module("torch")
    torch.set_num_threads(threads)
    ops, values = _TorchOps(torch), [_as_torch(torch, a) for a in arrays]

    def run() -> Any:
        with torch.inference_mode():
            return case.build(ops, *values)

    return run


# ----------------------------------------------------------------------------------------------------------------- JAX


class _JaxOps(NumpyOps):
    def __init__(self, jax: Any) -> None:
        self.jax, self.np = jax, jax.numpy

    def matmul(self, a: Any, b: Any, out_dtype: str | None = None) -> Any:
        return self.np.matmul(a, b, preferred_element_type=out_dtype)

    def exp(self, a: Any) -> Any:
        return self.np.exp(a)

    def tanh(self, a: Any) -> Any:
        return self.np.tanh(a)

    def sigmoid(self, a: Any) -> Any:
        return self.jax.nn.sigmoid(a)

    def relu(self, a: Any) -> Any:
        return self.jax.nn.relu(a)

    def gelu(self, a: Any) -> Any:
        return self.jax.nn.gelu(a, approximate=False)

    def softmax(self, a: Any) -> Any:
        return self.jax.nn.softmax(a, axis=-1)

    def layer_norm(self, a: Any, gamma: Any, beta: Any) -> Any:
        centered = a - a.mean(-1, keepdims=True)
        return centered / self.np.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * gamma + beta


def _jax(case: Case, arrays: list[Any], threads: int) -> Runner:
    jax = importlib.import_module("jax")
    ops = _JaxOps(jax)
    bound = [item.bound for item in case.inputs]
    values = [jax.numpy.asarray(a) for a in arrays]
    free = case.given(values)

    def function(*given: Any) -> Any:
        rest = iter(given)
        return case.build(ops, *(v if b else next(rest) for v, b in zip(values, bound, strict=True)))

    compiled = jax.jit(function)
    return lambda: compiled(*free).block_until_ready()


# ---------------------------------------------------------------------------------------------------------------- ONNX


class _OnnxOps:
    """Builds an ONNX graph: values are names."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def matmul(self, a: str, b: str, out_dtype: str | None = None) -> str:
        if out_dtype == "int32":
            return self.node("MatMulInteger", a, b)
        made = self.node("MatMul", a, b)
        return made if out_dtype is None else self.node("Cast", made, to=self.onnx.TensorProto.FLOAT)

    def transpose(self, a: str) -> str:
        return self.node("Transpose", a)

    def add(self, a: str, b: str) -> str:
        return self.node("Add", a, b)

    def multiply(self, a: str, b: str) -> str:
        return self.node("Mul", a, b)

    def exp(self, a: str) -> str:
        return self.node("Exp", a)

    def tanh(self, a: str) -> str:
        return self.node("Tanh", a)

    def sigmoid(self, a: str) -> str:
        return self.node("Sigmoid", a)

    def relu(self, a: str) -> str:
        return self.node("Relu", a)

    def gelu(self, a: str) -> str:
        return self.node("Gelu", a)

    def softmax(self, a: str) -> str:
        return self.node("Softmax", a, axis=-1)

    def layer_norm(self, a: str, gamma: str, beta: str) -> str:
        return self.node("LayerNormalization", a, gamma, beta, axis=-1, epsilon=1e-5)

    def sum_rows(self, a: str) -> str:
        return self.node("ReduceSum", a, self.constant(np.array([-1], "int64")), keepdims=0)


def _onnx_model(case: Case, arrays: list[Any]) -> bytes:
    onnx = importlib.import_module("onnx")
    importlib.import_module("onnx.numpy_helper")
    ops = _OnnxOps(onnx)
    operands, inputs = [], []
    for position, (item, array) in enumerate(zip(case.inputs, arrays, strict=True)):
        if item.bound:
            operands.append(ops.constant(array))
            continue
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        shape: list[Any] = list(item.shape)
        if position == 0 and case.symbolic_rows:
            shape[0] = "n"
        operands.append(f"x{position}")
        inputs.append(onnx.helper.make_tensor_value_info(f"x{position}", kind, shape))
    result = case.build(ops, *operands)
    kind = onnx.TensorProto.INT32 if case.group == "int8" else onnx.TensorProto.FLOAT
    output = onnx.helper.make_tensor_value_info(result, kind, None)
    graph = onnx.helper.make_graph(ops.nodes, "case", inputs, [output], ops.constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=9)
    text: bytes = model.SerializeToString()
    return text


def _fed(case: Case, arrays: list[Any]) -> dict[str, Any]:
    return {f"x{i}": a for i, (a, item) in enumerate(zip(arrays, case.inputs, strict=True)) if not item.bound}


def _onnxruntime(case: Case, arrays: list[Any], threads: int) -> Runner:
    runtime = importlib.import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = runtime.InferenceSession(_onnx_model(case, arrays), options, providers=["CPUExecutionProvider"])
    fed = _fed(case, arrays)
    return lambda: session.run(None, fed)[0]


def _openvino(case: Case, arrays: list[Any], threads: int) -> Runner:
    openvino = importlib.import_module("openvino")
    core = openvino.Core()
    model = core.read_model(io.BytesIO(_onnx_model(case, arrays)))
    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(model, "CPU", settings).create_infer_request()
    fed = _fed(case, arrays)
    return lambda: request.infer(fed, share_inputs=True, share_outputs=True)[0]


# ----------------------------------------------------------------------------------------------------------------- TVM


def _tvm(case: Case, arrays: list[Any], threads: int) -> Runner:
    tvm = importlib.import_module("tvm")
    runner = importlib.import_module("supple.tools.bench.supple_runner")
    text = runner.module_of(case, arrays).script(show_meta=True)
    lines = [line for line in text.split("\n") if not line.startswith(("from ", "import "))]
    source = "\n".join(lines).replace("@T.prim_func(private=True)", "@T.prim_func(private=True, s_tir=True)")
    vm = tvm.relax.VirtualMachine(tvm.compile(tvm.script.from_source(source), "llvm"), tvm.cpu())
    given = [tvm.runtime.tensor(a) for a in case.given(arrays)]
    main = vm["main"]
    return lambda: main(*given)


PEERS = (
    Peer("numpy", "numpy", "numpy", _numpy),
    Peer("torch", "torch", "torch", _torch),
    Peer("onnxruntime", "onnxruntime", "onnxruntime", _onnxruntime),
    Peer("openvino", "openvino", "openvino", _openvino),
    Peer("jax", "jax", "jax", _jax),
    Peer("tvm", "tvm", "apache-tvm", _tvm),
)
