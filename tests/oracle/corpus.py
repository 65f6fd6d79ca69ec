"""More programs for `compare.py`: bodies as users write them, beside those of `language_programs`."""

from __future__ import annotations

_UNARY = [
    "exp",
    "log",
    "sqrt",
    "tanh",
    "abs",
    "negative",
    "sin",
    "cos",
    "sigmoid",
    "erf",
    "floor",
    "ceil",
    "round",
    "square",
    "rsqrt",
    "nn.relu",
    "nn.gelu",
    "nn.silu",
]
_BINARY = ["add", "subtract", "multiply", "divide", "power", "maximum", "minimum", "floor_divide"]
_COMPARE = ["less", "less_equal", "greater", "greater_equal", "equal", "not_equal"]
_REDUCE = ["sum", "mean", "max", "min", "prod", "variance", "std"]
CODED = [
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu",
]  # fmt: skip
_T_UNARY = [
    "exp",
    "exp2",
    "log",
    "sqrt",
    "rsqrt",
    "tanh",
    "sigmoid",
    "erf",
    "sin",
    "cos",
    "floor",
    "ceil",
    "round",
    "trunc",
    "fabs",
]
_LOOP_VALUES = (
    "A[i] + B[i]", "A[i] - T.float32(1)", "A[i] * A[15 - i]", "A[i // 2]", "A[i % 4 + 1]", "T.max(A[i], B[i])",
    "T.min(A[i], T.float32(0))", "T.Select(i < 8, A[i], B[i])", "T.if_then_else(i > 2, A[i], T.float32(3))",
    "T.Cast('float32', i)", "T.Cast('float32', T.Cast('int8', i))", "A[T.min(i + 1, 15)]", "A[(i * 3 + 2) % 16]",
    "T.if_then_else(i < 3 and i > 1, A[i], B[i])", "T.if_then_else(i < 3 or i > 9, A[i], B[i])",
    "T.Select(not (i < 3), A[i], B[i])", "A[i] / T.float32(3)", "T.Cast('float32', T.truncmod(i, 3))",
    "T.Cast('float32', T.bitwise_and(i, 7))", "T.Cast('float32', T.shift_left(i, 2))", "T.pow(A[i], T.float32(2))",
    "T.Cast('float32', i * 2 - 3 + i // 4 * 4)", "-A[i] + T.float32(2)", "A[i + 0]", "T.fabs(A[i])",
)  # fmt: skip


_BLOCK = """    with T.sblock("b"):
        vi = T.axis.spatial(16, i)
        C[vi] = """


def _graph(body: str, params: str = 'x: R.Tensor((4, 8), "float32"), y: R.Tensor((4, 8), "float32")') -> str:
    lines = "\n".join(f"        {line}" for line in body.strip("\n").split("\n"))
    return f"@R.function\ndef main({params}):\n    with R.dataflow():\n{lines}\n        R.output(out)\n    return out\n"


def _loop(body: str) -> str:
    lines = "\n".join(f"    {line}" for line in body.strip("\n").split("\n"))
    params = 'A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")'
    return f"@T.prim_func\ndef main({params}):\n{lines}\n"


PROGRAMS: list[str] = [
    *(_graph(f"out = R.{name}(x)") for name in _UNARY),
    *(_graph(f"out = R.{name}(x, y)") for name in (*_BINARY, *_COMPARE)),
    *(_graph(f"out = R.{name}(x, R.const(2.0, 'float32'))") for name in _BINARY),
    *(_graph(f"out = R.{name}(x, axis=1)") for name in _REDUCE),
    *(_graph(f"out = R.{name}(x, axis=[0, 1], keepdims=True)") for name in _REDUCE),
    *(_graph(f"a = R.{name}(x)\nout = R.add(a, y)") for name in _UNARY),
    *(_graph(f"out = R.{a}(R.{b}(x), y)") for a in ("add", "multiply", "subtract") for b in ("exp", "nn.relu", "tanh")),
    *(_graph(f"a, b = x, y\nt = (a, R.{name}(b))\nout = t") for name in ("exp", "sqrt")),
    *(_graph(f'out = R.{name}(x, y)', f'x: R.Tensor(("n", {k}), "float32"), y: R.Tensor(("n", {k}), "float32")')
      for name in _BINARY for k in (1, 4)),
    *(_graph(f"out = R.{name}(x)", f'x: R.Tensor(("n", "m", {k}), "float16")') for name in _UNARY[:8] for k in (1, 3)),
    *(_graph("out = R.matmul(x, y)", f'x: R.Tensor({a}, "float32"), y: R.Tensor({b}, "float32")') for a, b in (
        ("(2, 3)", "(3, 4)"), ('("n", 3)', '(3, "m")'), ("(5, 2, 3)", "(3, 4)"), ('("b", "n", 3)', '("b", 3, 7)'))),
    _graph("out = R.reshape(x, R.shape([8, 4]))"), _graph("out = R.reshape(x, (32,))"),
    _graph("out = R.permute_dims(x, axes=[1, 0])"), _graph("out = R.permute_dims(x)"),
    _graph("out = R.concat((x, y), axis=0)"), _graph("out = R.concat([x, y], axis=1)"),
    _graph("t = R.split(x, 2, axis=1)\nout = R.add(t[0], t[1])"), _graph("out = R.expand_dims(x, axis=[0, 2])"),
    _graph('out = R.astype(x, "float16")'), _graph("out = R.squeeze(R.expand_dims(x, axis=0), axis=[0])"),
    _graph("out = R.where(R.less(x, y), x, y)"), _graph("out = R.nn.softmax(x, axis=-1)"),
    _graph('out = R.full(R.shape([2, 3]), R.const(1.0, "float32"), dtype="float32")'),
    _graph('out = R.zeros((2, 3), dtype="float32")'), _graph("out = R.broadcast_to(x, (2, 4, 8))"),
    _graph('out = R.take(x, i, axis=0)', 'x: R.Tensor((4, 8), "float32"), i: R.Tensor((3,), "int64")'),
    *(_loop(f"for i in range(16):\n    C[i] = {value}") for value in _LOOP_VALUES),
    *(_loop(f"for i in T.{kind}(16):\n{_BLOCK}A[vi]")
      for kind in ("serial", "parallel", "vectorized", "unroll")),
    *(_loop(f"for i in range(16):\n{_BLOCK}T.{f}(A[vi])")
      for f in _T_UNARY),
    *(_loop(f"""
for i, j in T.grid({n}, {m}):
    with T.sblock("sum"):
        vi, vj = T.axis.remap("SR", [i, j])
        with T.init():
            C[vi] = T.float32({start})
        C[vi] = {update}
""") for n, m in ((4, 4), (8, 2), (2, 8)) for start, update in (
        ("0", "C[vi] + A[vi * 2 + vj]"), ("1", "C[vi] * A[vj]"), ("-3", "T.max(C[vi], A[vj])"))),
    *(f'''
@T.prim_func
def main(a: T.handle, b: T.handle):
    {decl}
    A = T.match_buffer(a, {shape}, "{dtype}")
    B = T.match_buffer(b, {shape}, "{dtype}")
    for i, j in T.grid({loops}):
        with T.sblock("copy"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj]
''' for decl, shape, loops in (("n = T.int64()", "(n, 4)", "n, 4"), ("m, n = T.int32(), T.int32()", "(m, n)", "m, n"),
                               ("n = T.int64()", "(n, n * 2)", "n, n * 2"))
      for dtype in ("float32", "int8", "float16", "bool", "uint8", "int64")),
    *(_graph(f"out = R.{name}(x)", 'x: R.Tensor(("n", 8), "bfloat16")') for name in _UNARY),
    *(_graph(f"out = R.{name}(x, y)", 'x: R.Tensor(("n", 8), "bfloat16"), y: R.Tensor((8,), "bfloat16")')
      for name in (*_BINARY, *_COMPARE)),
    *(_graph(f"out = R.{name}(x, axis=1)", 'x: R.Tensor(("n", 8), "bfloat16")') for name in _REDUCE),
    *(_graph(f'out = R.matmul(x, y, out_dtype="{out}")',
             f'x: R.Tensor(("n", 3), "{dtype}"), y: R.Tensor((3, 4), "{dtype}")')
      for dtype in ("bfloat16", "float8_e4m3fn", "float8_e5m2") for out in ("float32", "bfloat16")),
    *(_graph("out = R.matmul(x, y)", f'x: R.Tensor((2, 3), "{dtype}"), y: R.Tensor((3, 4), "{dtype}")')
      for dtype in CODED),
    *(_graph(f'a = R.astype(x, "{dtype}")\nout = R.astype(a, "float32")') for dtype in CODED),
    *(_graph(f'out = R.{name}(x, y)', f'x: R.Tensor((4,), "{dtype}"), y: R.Tensor((4,), "{dtype}")')
      for dtype in CODED for name in ("add", "maximum", "less")),
    *(_graph(f'out = R.zeros(R.shape([2, 3]), dtype="{dtype}")') for dtype in CODED),
    *(_loop(f"for i in range(16):\n    C[i] = {value}") for dtype in CODED for value in (
        f'T.Cast("float32", T.Cast("{dtype}", A[i]))', f'T.Cast("float32", T.{dtype}(1.5))',
        f'T.Cast("float32", T.Cast("{dtype}", A[i]) + T.{dtype}(0.5) * T.Cast("{dtype}", B[i]))',
        f'T.Cast("float32", T.reinterpret("{dtype}", T.Cast("uint{16 if dtype == "bfloat16" else 8}", i)))')),
    *(f'''
@T.prim_func
def main(A: T.Buffer((16,), "{dtype}"), B: T.Buffer((16,), "{dtype}")):
    C = T.alloc_buffer((16,), "{dtype}")
    for i in range(16):
        C[i] = T.max(A[i], A[15 - i])
    for i in range(16):
        B[i] = T.exp(C[i])
''' for dtype in CODED),
]  # fmt: skip
