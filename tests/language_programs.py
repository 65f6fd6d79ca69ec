"""A program for every name of the language: what the table of `docs/language.md` and its test are made of.

Run as a script it writes the table: ``python tests/language_programs.py docs/language.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Program:
    """One small program. ``interp`` and ``native`` say whether it runs so: True, or why not (a text)."""

    names: tuple[str, ...]
    text: str
    args: Callable[[], list[Any]] = list
    interp: bool | str = True
    native: bool | str = True
    entry: str = "main"


PROGRAMS: list[Program] = []
NO_VALUE = "nothing to compute"
GPU = "GPU threads: refused by name"
HOST = "native code does not know it yet"


def tensor(*shape: int, dtype: str = "float32") -> Any:
    return (np.arange(int(np.prod(shape))).reshape(shape) % 7 + 1).astype(dtype)


def _two() -> list[Any]:
    return [tensor(4, 4), tensor(4, 4) + 1]


def program(names: str, text: str, args: Callable[[], list[Any]] = _two, **rest: Any) -> None:
    PROGRAMS.append(Program(tuple(names.split()), text, args, **rest))


def graph(names: str, body: str, *, params: str | None = None, returns: str = "", deco: str = "", **rest: Any) -> None:
    """A graph function of two (4, 4) tensors ``x`` and ``y``, or of other parameters."""
    given = params or 'x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")'
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    program(names, f"@R.function{deco}\ndef main({given}){returns}:\n{lines}\n", **rest)


_LOOP = """
    @T.prim_func
    def double(A: T.Buffer((4, 4), "float32"), B: T.Buffer((4, 4), "float32")):
        for i, j in T.grid(4, 4):
            with T.sblock("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
"""


def module(names: str, body: str, functions: str = _LOOP, *, deco: str = "", head: str = "", **rest: Any) -> None:
    """A module with the loop function ``double`` and a graph function of ``x`` and ``y``."""
    lines = "\n".join(f"        {line}" for line in body.strip("\n").split("\n"))
    params = 'x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")'
    main = f"    @R.function{deco}\n    def main({params}):\n{lines}\n"
    program(names, f"@I.ir_module\nclass Module:\n{head}{functions}\n{main}", **rest)


def loop(names: str, body: str, *, params: str | None = None, **rest: Any) -> None:
    """A loop function that writes ``B`` (16 numbers) from ``A`` (16 numbers)."""
    given = params or 'A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")'
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    rest.setdefault("args", lambda: [tensor(16), np.zeros(16, "float32")])
    program(names, f"@T.prim_func\ndef main({given}):\n{lines}\n", **rest)


# --------------------------------------------------------------------------------------------------------- graph level

graph("R.function R.Tensor R.dataflow R.output R.add", """
with R.dataflow():
    a = R.add(x, y)
    b = R.multiply(a, x)
    R.output(b)
return b
""")  # fmt: skip
graph("R.Tuple R.tuple R.TupleGetItem", "t = R.tuple(x, y)\na = R.TupleGetItem(t, 0)\nreturn R.add(a, t[1])",
      returns=' -> R.Tensor((4, 4), "float32")')  # fmt: skip
graph("R.const", 'a = R.add(x, R.const(2.5, "float32"))\nreturn a')
graph("R.func_attr", 'R.func_attr({"a": 1, "b": "s", "c": [1, 2], "d": {"e": 1.5}, "g": True})\nreturn x')
graph("R.ShapeExpr R.reshape", "s = R.ShapeExpr([2, 8])\na = R.reshape(x, s)\nreturn a")
graph("R.shape R.Shape", "s = R.shape([2, 8])\nreturn s", returns=" -> R.Shape([2, 8])")
graph("R.prim_value R.Prim", "a = R.prim_value(n + 1)\nreturn a", params='n: R.Prim("int64")', args=lambda: [5])
graph("R.Any", "return x", params="x: R.Any", args=lambda: [tensor(4)])
graph("R.Object", "return x", params="x: R.Object", args=lambda: [tensor(4)])
program("R.Callable", """
@I.ir_module
class Module:
    @R.function(private=True)
    def double(a: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        return R.add(a, a)

    @R.function(private=True)
    def twice(
        f: R.Callable((R.Tensor((4, 4), "float32"),), R.Tensor((4, 4), "float32")), a: R.Tensor((4, 4), "float32")
    ) -> R.Tensor((4, 4), "float32"):
        g = f
        b = g(a)
        return f(b)

    @R.function
    def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        a = Module.twice(Module.double, x)
        return R.add(a, y)
""")  # fmt: skip
module(
    "R.call_tir",
    'a = R.call_tir(cls.double, (x,), out_ty=R.Tensor((4, 4), "float32"))\nreturn R.add(a, y)'.replace("cls", "Module"),
)
module("R.call_tir_inplace", """
a = R.add(x, y)
b = R.call_tir_inplace(Module.double, (x, a), [1], out_ty=R.Tensor((4, 4), "float32"))
return b
""", deco="(pure=False)")  # fmt: skip
module("R.call_tir_with_grad", """
a = R.call_tir_with_grad(Module.double, (x,), out_ty=R.Tensor((4, 4), "float32"), te_grad_name="g",
                         te_grad_kwargs={"k": 1.0})
return a
""")  # fmt: skip
graph("R.call_dps_packed", 'a = R.call_dps_packed("lang.add_one", (x,), out_ty=R.Tensor((4, 4), "float32"))\nreturn a')
graph("R.call_packed R.str R.dtype", """
a = R.call_packed("lang.first", x, R.str("a"), R.dtype("float32"), R.prim_value(3), ty_args=R.Tensor((4, 4), "float32"))
return a
""", deco="(pure=False)")  # fmt: skip
graph("R.call_pure_packed", 'a = R.call_pure_packed("lang.first", x, ty_args=R.Tensor((4, 4), "float32"))\nreturn a')
graph("R.call_inplace_packed", """
a = R.add(x, y)
b = R.call_inplace_packed("lang.increment", a, inplace_indices=0, ty_args=R.Tensor((4, 4), "float32"))
return b
""", deco="(pure=False)")  # fmt: skip
graph("R.call_builtin_with_ctx", """
a = R.call_builtin_with_ctx("lang.second", (x,), ty_args=R.Tensor((4, 4), "float32"))
return a
""", deco="(pure=False)")  # fmt: skip
graph("R.match_cast", """
n = T.int64()
a = R.match_cast(x, R.Tensor((n, 4), "float32"))
return R.add(a, a)
""", params='x: R.Tensor(ndim=2, dtype="float32")', args=lambda: [tensor(3, 4)])  # fmt: skip
graph("R.shape_of", "s = R.shape_of(x)\nreturn s", params='x: R.Tensor(("n", 4), "float32")',
      args=lambda: [tensor(3, 4)])  # fmt: skip
graph("R.tensor_to_shape", "s = R.tensor_to_shape(x)\nreturn s", params='x: R.Tensor((2,), "int64")',
      args=lambda: [np.array([3, 4])])  # fmt: skip
graph("R.shape_to_tensor", "s = R.shape_to_tensor(R.shape([n, 4]))\nreturn s",
      params='x: R.Tensor(("n", 4), "float32"), n: R.Prim("int64")', args=lambda: [tensor(3, 4), 3])  # fmt: skip
graph("R.size", "s = R.size(x)\nreturn s")
graph("R.print", "_ = R.print(x, format='{}')\nreturn x", deco="(pure=False)")
graph("R.assert_op", "_ = R.assert_op(R.const(True), x, format='x is {}')\nreturn x", deco="(pure=False)")
graph("R.null_value", "a = R.null_value()\nreturn a")
graph("R.wrap_param", 'a = R.wrap_param(R.const(1, "int32"), "float32")\nreturn a')
graph("R.hint_on_device R.device R.cpu", 'a = R.hint_on_device(x, R.device("cpu", 0))\nreturn R.add(a, y)')
module("R.to_vdevice I.vdevice I.module_global_infos", """
a = R.to_vdevice(x, "llvm:1")
b: R.Tensor((4, 4), "float32", "llvm:1") = R.add(a, a)
return b
""", head="    I.module_global_infos({'vdevice': [I.vdevice('llvm'), I.vdevice('llvm', 1, 'global')]})\n")  # fmt: skip
module("I.module_attrs I.ir_module", "return x", head='    I.module_attrs({"a": 10, "b": "text"})\n')
program("R.DTensor R.device_mesh I.Range", """
@I.ir_module
class Module:
    I.module_global_infos({"mesh": [R.device_mesh((2, 2), I.Range(0, 4)), R.device_mesh((1,), [5])]})
    @R.function
    def main(
        x: R.DTensor((128, 128), "float32", "mesh[0]", "S[0], R"),
    ) -> R.DTensor((128, 128), "float32", "mesh[0]", "S[0], R"):
        return x
""", interp=NO_VALUE, native=NO_VALUE)  # fmt: skip
program("R.ExternFunc", """
@I.ir_module
class Module:
    first = R.ExternFunc("lang.first")
    @R.function(pure=False)
    def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
        a = R.call_packed("lang.first", x, y, ty_args=R.Tensor((4, 4), "float32"))
        return a
""")  # fmt: skip
_CLOSURE = """
@I.ir_module
class Module:
    @R.function(private=True)
    def add(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        return R.add(x, y)

    @R.function(pure=False)
    def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        f = R.make_closure(Module.add, (x,))
        a = R.{name}(f, (y,), ty_args=R.Tensor((4, 4), "float32"))
        return a
"""
program("R.make_closure R.invoke_closure", _CLOSURE.replace("{name}", "invoke_closure"))
program("R.invoke_pure_closure", _CLOSURE.replace("{name}", "invoke_pure_closure"))
graph("R.builtin.alloc_tensor", """
a = R.builtin.alloc_tensor(R.shape([4, 4]), R.dtype("float32"), R.prim_value(0), R.str("global"))
return x
""")  # fmt: skip
graph("R.builtin.stop_lift_params", "a = R.builtin.stop_lift_params(x)\nreturn R.add(a, y)")
graph("R.memory.alloc_storage R.memory.alloc_tensor R.memory.kill_tensor R.memory.kill_storage", """
s = R.memory.alloc_storage(R.shape([64]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
a = R.memory.alloc_tensor(s, R.prim_value(0), R.shape([4, 4]), R.dtype("float32"))
_ = R.memory.kill_tensor(a)
_ = R.memory.kill_storage(s)
return x
""", deco="(pure=False)")  # fmt: skip
graph("R.memory.view R.memory.ensure_zero_offset", """
a = R.memory.view(x, R.shape([2, 4]), R.dtype("float32"), R.prim_value(32))
b = R.memory.ensure_zero_offset(a)
return b
""")  # fmt: skip
graph("R.vm.alloc_storage R.vm.alloc_tensor R.vm.kill_object", """
s = R.vm.alloc_storage(R.shape([64]), R.prim_value(0), R.dtype("uint8"), R.str("global"))
a = R.vm.alloc_tensor(s, R.prim_value(0), R.shape([4, 4]), R.dtype("float32"))
_ = R.vm.kill_object(s)
return x
""", deco="(pure=False)")  # fmt: skip
module("R.vm.call_tir_dyn", """
a = R.add(x, y)
_ = R.vm.call_tir_dyn(Module.double, (x, a))
return a
""", deco="(pure=False)")  # fmt: skip
program("R.macro", """
@R.macro
def twice(v):
    w = R.add(v, v)
    return w

@R.function
def main(x: R.Tensor((4, 4), "float32"), y: R.Tensor((4, 4), "float32")):
    a = twice(x)
    return R.add(a, y)
""")  # fmt: skip
graph("R.function", """
@R.function
def power(a: R.Tensor((4, 4), "float32"), n: R.Tensor((), "int32")) -> R.Tensor((4, 4), "float32"):
    c = R.less(n, R.const(1, "int32"))
    if c:
        r = a
    else:
        m = R.subtract(n, R.const(1, "int32"))
        b = power(a, m)
        r = R.add(b, a)
    return r
z = power(x, R.const(2, "int32"))
return z
""")  # fmt: skip
graph("R.dataflow", """
with R.dataflow():
    @R.function
    def inner(a: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        return R.add(a, x)
    z = inner(y)
    R.output(z)
return z
""")  # fmt: skip

# ---------------------------------------------------------------------------------------------------------- loop level

loop("T.prim_func T.Buffer T.serial T.float32", "for i in T.serial(16):\n    B[i] = A[i] + T.float32(1)")
loop("T.handle T.match_buffer T.func_attr", """
T.func_attr({"tirx.noalias": True})
A = T.match_buffer(a, (16,), "float32")
B = T.match_buffer(b, (16,), "float32")
for i in range(16):
    B[i] = A[i]
""", params="a: T.handle, b: T.handle")  # fmt: skip
loop("T.sblock T.axis.remap T.reads T.writes T.init T.grid T.axis.spatial T.axis.S T.axis.reduce T.axis.R", """
for i, k in T.grid(4, 4):
    with T.sblock("sum"):
        vi = T.axis.spatial(4, i)
        vk = T.axis.reduce(4, k)
        T.reads(A[vi * 4 + vk])
        T.writes(B[vi])
        with T.init():
            B[vi] = T.float32(0)
        B[vi] = B[vi] + A[vi * 4 + vk]
for i, k in T.grid(4, 4):
    with T.sblock("remapped"):
        vi, vk = T.axis.remap("SS", [i, k])
        B[4 + vi] = A[vk]
for i in range(4):
    with T.sblock("short"):
        vi = T.axis.S(4, i)
        vk = T.axis.R(1, 0)
        B[8 + vi] = A[vi]
""")  # fmt: skip
loop("T.sblock_alloc_buffer T.alloc_buffer", """
C = T.sblock_alloc_buffer((16,), "float32")
D = T.alloc_buffer((16,), "float32")
for i in range(16):
    with T.sblock("c"):
        vi = T.axis.spatial(16, i)
        C[vi] = A[vi] * T.float32(3)
for i in range(16):
    with T.sblock("d"):
        vi = T.axis.spatial(16, i)
        D[vi] = C[vi]
for i in range(16):
    with T.sblock("e"):
        vi = T.axis.spatial(16, i)
        B[vi] = D[vi]
""")  # fmt: skip
loop("T.decl_buffer", """
C = T.decl_buffer((4, 4), "float32", data=A.data)
for i, j in T.grid(4, 4):
    B[i * 4 + j] = C[j, i]
""")  # fmt: skip
loop("T.evaluate T.int64 T.int32 T.int8 T.int16 T.uint8 T.uint16 T.uint32 T.uint64 T.Cast T.cast T.float64 T.float16 "
     "T.bool T.boolean", """
T.evaluate(0)
for i in T.serial(T.int64(16)):
    B[i] = T.Cast("float32", T.int8(3)) + T.cast(T.uint8(4), "float32") + T.Cast("float32", T.float64(0.5))
B[0] = T.Cast("float32", T.Cast("float16", A[0])) + T.Cast("float32", T.int16(1) + T.Cast("int16", T.uint16(2)))
B[1] = T.Cast("float32", T.uint32(7)) + T.Cast("float32", T.uint64(8)) + T.Cast("float32", T.bool(True))
B[2] = T.Cast("float32", T.boolean(False)) + T.Cast("float32", T.int32(2))
""")  # fmt: skip
loop("T.max T.min T.Select T.if_then_else T.abs T.fabs T.min_value T.max_value", """
for i in range(16):
    B[i] = T.max(A[i], T.float32(2)) + T.min(A[i], T.float32(4)) + T.Select(i < 3, A[i], T.float32(1))
B[0] = T.if_then_else(A[0] < T.float32(2), A[1], T.fabs(A[2])) + T.abs(A[3])
B[1] = T.Cast("float32", T.min_value("int32")) + T.Cast("float32", T.max_value("int8"))
""")  # fmt: skip
loop("T.let T.bind T.Let", """
x: T.let = A[0] + T.float32(1)
y = T.bind(x * x)
z = T.float32()
B[0] = T.Let(z + y, where={z: x})
""")  # fmt: skip
loop("T.floordiv T.floormod T.Div T.FloorDiv T.truncmod T.ceildiv T.shift_left T.shift_right T.bitwise_and "
     "T.bitwise_or", """
for i in range(16):
    B[i] = T.Cast("float32", T.floordiv(i, 3) + T.floormod(i, 3) + T.Div(i, 4) + T.FloorDiv(i, 5) + T.truncmod(i, 3))
B[0] = T.Cast("float32", T.ceildiv(7, T.int32(2)) + T.shift_left(T.int32(1), 3) + T.shift_right(T.int32(16), 2))
B[1] = T.Cast("float32", T.bitwise_and(T.int32(12), 10) + T.bitwise_or(T.int32(12), 3))
""")  # fmt: skip
loop("T.exp T.exp2 T.exp10 T.log T.log2 T.log1p T.sqrt T.rsqrt T.tanh T.sigmoid T.erf T.pow T.round T.floor T.ceil", """
for i in range(16):
    B[i] = T.exp(A[i]) + T.exp2(A[i]) + T.log(A[i]) + T.sqrt(A[i]) + T.rsqrt(A[i]) + T.tanh(A[i]) + T.sigmoid(A[i])
B[0] = T.erf(A[0]) + T.pow(A[1], T.float32(2)) + T.round(A[2]) + T.floor(A[3]) + T.ceil(A[4])
B[1] = T.exp10(A[0]) + T.log2(A[1]) + T.log1p(A[2])
""")  # fmt: skip
loop("T.sin T.cos T.tan T.asin T.acos T.atan T.sinh T.asinh T.acosh T.atanh T.atan2", """
B[0] = T.sin(A[0]) + T.cos(A[1]) + T.tan(A[2]) + T.atan(A[3]) + T.sinh(A[0]) + T.asinh(A[2]) + T.acosh(A[3])
B[1] = T.asin(T.float32(0.5)) + T.acos(T.float32(0.25)) + T.atanh(T.float32(0.5)) + T.atan2(A[0], A[1])
""")  # fmt: skip
loop("T.fmod T.hypot T.copysign T.nextafter T.popcount T.isnan", """
B[0] = T.fmod(A[6], A[1]) + T.hypot(A[2], A[3]) + T.copysign(A[0], T.float32(-1)) + T.nextafter(A[0], A[1])
B[1] = T.Cast("float32", T.popcount(T.int32(255))) + T.Cast("float32", T.isnan(A[0]))
""")  # fmt: skip
loop("T.thread_binding", 'for i in T.thread_binding(16, thread="threadIdx.x"):\n    B[i] = A[i]', native=GPU)
loop("T.launch_thread T.env_thread", """
bx = T.env_thread("blockIdx.x")
T.launch_thread(bx, 4)
tx = T.launch_thread("threadIdx.x", 4)
B[bx * 4 + tx] = A[bx * 4 + tx]
""", native=GPU)  # fmt: skip
loop("T.sblock_attr T.index_map T.where", """
for i in range(32):
    with T.sblock("b"):
        vi = T.axis.spatial(16, i)
        T.where(i < 16)
        T.sblock_attr({"m": T.index_map(lambda i: (i // 4, i % 4)), "k": [1, 2]})
        B[vi] = A[vi]
""")  # fmt: skip
loop("T.meta_var I.meta_var", "n = T.meta_var(16)\nfor i in range(n):\n    B[i] = A[i]")
loop("T.unroll T.parallel T.vectorized", """
for i in T.parallel(4):
    for j in T.unroll(2):
        for k in T.vectorized(2):
            B[i * 4 + j * 2 + k] = A[i * 4 + j * 2 + k]
""")  # fmt: skip
loop("T.attr T.comm_reducer", """
with T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", 0):
    B[0] = A[0]
T.attr("key", "value", 1)
B[1] = A[1]
""")  # fmt: skip
loop("T.assume", "T.assume(A[0] > T.float32(0))\nB[0] = A[0]")
loop("T.reinterpret", 'B[0] = T.reinterpret("float32", T.reinterpret("int32", A[0]))')
loop("T.Broadcast T.broadcast T.Ramp T.ramp", """
B[T.Ramp(0, 1, 4)] = A[T.ramp(4, 1, 4)] + T.Broadcast(T.float32(1), 4)
B[4:8] = A[0:4] * T.broadcast(T.float32(2), 4)
""")  # fmt: skip
loop("T.Shuffle", """
B[0:8] = T.Shuffle([A[0:4], A[4:8]], [0, 4, 1, 5, 2, 6, 3, 7])
B[8:11] = T.Shuffle([A[0], A[4:6], T.float32(2)], [3, 1, 0])
B[11] = T.Shuffle([A[8:12]], [3])
""")  # fmt: skip
loop("T.buffer_store T.BufferLoad T.FloatImm", """
T.buffer_store(B, T.BufferLoad(A, [1]) + T.FloatImm("float32", 1.0), [0])
""")  # fmt: skip
loop("T.Assert T.break_loop T.continue_loop", """
assert A[0] > T.float32(0), "A must be positive"
T.Assert(A[1] > T.float32(0), "A must be positive")
for i in range(16):
    if i == 3:
        T.continue_loop()
    if i == 9:
        T.break_loop()
    B[i] = A[i]
""")  # fmt: skip
loop("T.Return", "if A[2] > T.float32(0):\n    T.Return(0)\nB[0] = A[0]")
program("T.inline T.macro", """
@T.inline
def copy(B, A, i):
    B[i] = A[i] + T.float32(1)

@T.prim_func
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        copy(B, A, i)
""", args=lambda: [tensor(16), np.zeros(16, "float32")])  # fmt: skip
loop("T.target", 'T.func_attr({"target": T.target("llvm")})\nB[0] = A[0]')
_SYSTEM = "for backends: kept as written"
loop("T.address_of T.isnullptr T.call_extern T.call_packed T.call_cpacked T.tvm_call_cpacked "
     "T.call_llvm_pure_intrin", """
T.evaluate(T.address_of(A[0]))
T.evaluate(T.isnullptr(A.data))
T.evaluate(T.call_extern("int32", "f", A.data, 3))
T.evaluate(T.call_packed("lang.nothing", 3))
T.evaluate(T.call_cpacked("f", A.data, 1))
T.evaluate(T.tvm_call_cpacked("f", A.data, 1))
T.evaluate(T.call_llvm_pure_intrin("float32", "llvm.fabs", T.uint32(1), T.float32(1)))
""", interp=_SYSTEM, native=_SYSTEM)  # fmt: skip
loop("T.tvm_struct_get T.tvm_struct_set T.anylist_getitem T.anylist_setitem_call_packed T.tvm_access_ptr "
     "T.type_annotation T.tvm_stack_alloca T.tvm_stack_make_shape T.tvm_stack_make_array T.vscale "
     "T.tvm_thread_invariant T.tvm_storage_sync T.tvm_thread_allreduce T.get_active_lane_mask "
     "T.tvm_call_packed_lowered T.ptr", """
T.evaluate(T.tvm_struct_get(A.data, 0, 1, "handle"))
T.evaluate(T.tvm_struct_set(A.data, 0, 1, 3))
T.evaluate(T.anylist_getitem(A.data, 0))
T.evaluate(T.anylist_setitem_call_packed(A.data, 0, "f", 3))
T.evaluate(T.tvm_access_ptr(T.type_annotation("float32"), A.data, 0, 16, 1))
T.evaluate(T.tvm_stack_alloca("shape", 4))
T.evaluate(T.tvm_stack_make_array(A.data, T.tvm_stack_make_shape(1, 2), 0, 2, T.float32(0), 0))
T.evaluate(T.vscale())
T.evaluate(T.tvm_thread_invariant(A[0] > T.float32(0)))
T.evaluate(T.tvm_storage_sync("shared"))
T.evaluate(T.tvm_thread_allreduce(T.uint32(1), A[0], T.bool(True), B[0], 0))
T.evaluate(T.get_active_lane_mask("boolx4", 0, 4))
T.evaluate(T.tvm_call_packed_lowered("f", A.data, 0, 1))
""", interp=_SYSTEM, native=_SYSTEM)  # fmt: skip

# ------------------------------------------------------------------------------------- names that are not in the table

REFUSED: dict[str, str] = {
    "T.realize": "not a name of Relax any more",
    "T.const_range": "not a name of Relax any more",
    "T.llvm_lookup_intrinsic_id": "LLVM's numbering of intrinsics; name them in call_llvm_pure_intrin",
    "T.call_kernel": "for GPU kernels given as text",
    "R.opencl": "a device that is not supported",
    **dict.fromkeys(
        ("T.tvm_fill_fragment", "T.tvm_mma_sync", "T.tvm_store_matrix_sync", "T.tvm_load_matrix_sync",
         "T.tvm_warp_shuffle", "T.tvm_warp_shuffle_up", "T.tvm_warp_shuffle_down", "T.tvm_warp_activemask",
         "T.device_entry", "T.cuda.mbarrier_wait", "T.tile.memset"), "the CUDA tile dialect"),
}  # fmt: skip
"""Names of the surface lists that are refused by name, with the reason."""

ELSEWHERE: dict[str, str] = {
    "R.rewriter": "tests/test_language_relax.py",
    "R.call_py_func": "tests/test_language_relax.py",
    **dict.fromkeys(("R.entry.TypeProxy", "R.entry.AnyProxy", "R.entry.TensorProxy", "R.entry.CallableProxy",
                     "R.entry.TupleProxy", "R.entry.ShapeProxy"), "internal classes of Relax's parser"),
    **dict.fromkeys(
        ("R.emit", "R.emit_te", "R.emit_with_ty", "R.emit_match_cast", "R.emit_var_binding", "R.arg", "R.func_name",
         "R.func_ret_value", "R.func_ret_ty"), "supple.script.ir_builder: tests/test_language_relax.py"),
    **dict.fromkeys(("T.Var", "T.Call", "T.StringImm"), "classes of nodes"),
    **dict.fromkeys(("T.func_name", "T.buffer", "T.If", "T.Then", "T.While"),
                    "supple.script.ir_builder: tests/test_ir_builder_loops.py"),
}  # fmt: skip
"""Names that need more than a program's text, or that are no part of programs."""


def table() -> str:
    """The text of ``docs/language.md``."""
    rows: dict[str, list[Program]] = {}
    for item in PROGRAMS:
        for name in item.names:
            rows.setdefault(name, []).append(item)
    lines = [
        "# The language, name by name",
        "",
        "Made by `python tests/language_programs.py docs/language.md`; `tests/test_language_surface.py` runs every",
        "program behind it: it parses, prints, reads back to the same program, runs in the interpreter and as native",
        "code where the table says so. Operators (`R.matmul`, `R.nn.relu`, ...) are not listed here.",
        "",
        "| name | interpreter | native code |",
        "|---|---|---|",
    ]
    for name in sorted(rows):
        lines.append(f"| `{name}` | {_cell(rows[name], 'interp')} | {_cell(rows[name], 'native')} |")
    lines += [
        "",
        "## Spellings of Supple's own",
        "",
        "Printed text always reads back to the same program. Where Relax has no spelling, Supple has one:",
        "",
        "- `with R.seq():` is a block of bindings that follows another block of bindings directly.",
        "- `@T.prim_func(root_block=False)`: blocks without a root block around them.",
        '- `T.serial(n, dtype="int32")`: a loop variable whose dtype is not the extent\'s.',
        '- `@R.function(name="a.b")`, `@T.prim_func(name=...)`: a function whose name is no identifier.',
        "- `part = T.meta_var(...)`: a part of an expression that would nest too deep for Python's parser,\n"
        "  or that is long and occurs again.",
        "- A scalar that a loop or a branch assigns again, or that `+=` changes, is a buffer of one element.",
        "",
        '`tx = T.launch_thread("threadIdx.x", 8)` is read as `for tx in T.thread_binding(8, thread="threadIdx.x")`',
        "around what follows, and prints so. `x: T.handle` with `T.match_buffer` at the head becomes a buffer",
        "parameter.",
        "",
        "Programs that run under the alias are read as Relax reads them: in a loop function a number is an",
        "int32 (int64 where it does not fit) or a float32, so `A[i] + 1` of int8 is an int32; `x = value` outside",
        "of blocks is a buffer of one element, and `x: T.let = value` a binding; `T.alloc_buffer` stands where it",
        "is written; blocks with iteration variables name no loops around them; a value that is bound to no name",
        "is refused.",
    ]
    lines += ["", "## Refused by name", "", "| name | why |", "|---|---|"]
    lines += [f"| `{name}` | {why} |" for name, why in sorted(REFUSED.items())]
    lines += ["", "## Shown elsewhere", "", "| name | where |", "|---|---|"]
    lines += [f"| `{name}` | {why} |" for name, why in sorted(ELSEWHERE.items())]
    return "\n".join(lines) + "\n"


def _cell(programs: list[Program], field: str) -> str:
    values = [getattr(p, field) for p in programs]
    return "yes" if any(v is True for v in values) else str(values[0])


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(table())
