"""Parts of programs, built in Python: the printed text of each is compared with the oracle's (``text.py``).

Every entry is an expression in the names that `PRELUDE` sets up; it means the same on both sides. It is evaluated where
``import tvm`` works: by the oracle, or under Supple's alias.
"""

PRELUDE = """
import numpy as np
import tvm
from tvm import relax, tirx
from tvm.script import ir as I, relax as R, tirx as T, from_source

PROGRAM = '''
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def scale(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 8), "float32")
        B = T.match_buffer(b, (n, 8), "float32")
        C = T.sblock_alloc_buffer((n, 8), "float32", scope="local")
        for i, j in T.grid(n, 8):
            with T.sblock("c"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * T.float32(2)
        for i in T.parallel(n):
            for j in range(8):
                with T.sblock("b"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = C[vi, vj] + T.float32(1)

    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            s = R.call_tir(cls.scale, (x,), out_ty=R.Tensor((n, 8), "float32"))
            h = R.matmul(s, w)
            y = R.nn.relu(h)
            R.output(y)
        return y
'''
mod = from_source(PROGRAM)
n, m = tirx.Var("n", "int64"), tirx.Var("m", "int64")
i, j = tirx.Var("i", "int32"), tirx.Var("j", "int32")
f, g = tirx.Var("f", "float32"), tirx.Var("g", "float32")
p = tirx.Var("p", "bool")
x = relax.Var("x", R.Tensor((n, 4), "float32"))
y = relax.Var("y", R.Tensor((4, 4), "float32"))
tup = relax.Var("t", relax.TupleType([x.ty, y.ty]))
A, C = tirx.decl_buffer((16, 16), "float32", "A"), tirx.decl_buffer((4,), "int8", "C", scope="local")
IM, ST = lambda value: tirx.IntImm("int32", value), tirx.BufferStore
"""

FRAGMENTS = (
    # scalars
    "tirx.IntImm('int32', 3)",
    "tirx.IntImm('int64', -3)",
    "tirx.IntImm('int8', 7)",
    "tirx.IntImm('bool', 1)",
    "tirx.FloatImm('float32', 1.0)",
    "tirx.FloatImm('float64', 0.1)",
    "tirx.FloatImm('float16', float('inf'))",
    "tirx.FloatImm('float32', float('nan'))",
    "tirx.FloatImm('float32', 1e-5)",
    "n",
    "n + 1",
    "n + 1 - (n - m)",
    "(n + m) * 2",
    "n * m // 4 + n % 4",
    "i + j * 2",
    "2 - i",
    "i < j",
    "tirx.all(i < j, j < 8)",
    "tirx.any(i < j, p)",
    "tirx.Not(p)",
    "tirx.Not(i < 4)",
    "tirx.Min(i, tirx.IntImm('int32', 4))",
    "tirx.Max(n, m)",
    "tirx.truncdiv(i, j)",
    "tirx.truncmod(i, j)",
    "i.astype('float32')",
    "tirx.Cast('int64', i) + n",
    "f / g",
    "f * f + g",
    "-f",
    "tirx.exp(f)",
    "tirx.sqrt(f) + tirx.Select(p, f, g)",
    "tirx.if_then_else(p, f, g)",
    "tirx.Ramp(i, tirx.IntImm('int32', 1), 4)",
    "tirx.Broadcast(f, 4)",
    "tirx.Let(i, j + 1, i * i)",
    "i & 3",
    "i << 2",
    "i | j ^ 1",
    "~i",
    "tirx.call_extern('int32', 'f', i, j)",
    "tirx.call_packed('f', i)",
    "tirx.reinterpret('int32', f)",
    "tirx.EQ(i, j)",
    "tirx.Var('x', 'handle')",
    "A[i, j]",
    "A[i, j] + A[i, 0]",
    "A",
    # types
    "relax.TensorType((n, 4), 'float32')",
    "relax.TensorType((4, 4), 'float32')",
    "relax.TensorType(dtype='float32', ndim=2)",
    "relax.TensorType(dtype='int8', ndim=0)",
    "relax.TensorType(None, 'float32')",
    "relax.TensorType(None, '')",
    "relax.TensorType((n + 1, n * 2), 'int8')",
    "relax.TensorType((), 'float16')",
    "relax.TupleType([])",
    "relax.TupleType([x.ty])",
    "relax.TupleType([x.ty, y.ty])",
    "relax.ShapeType([n, 4])",
    "relax.ShapeType(ndim=2)",
    "relax.ShapeType()",
    "relax.FuncType([x.ty], y.ty)",
    "relax.FuncType([x.ty, y.ty], y.ty, purity=False)",
    "relax.FuncType.opaque_func()",
    "relax.FuncType.opaque_func(ret=y.ty)",
    "tvm.ir.PrimType('int64')",
    "tvm.ir.PrimType('float32')",
    "tvm.ir.PointerType(tvm.ir.PrimType('float32'))",
    # graph values
    "x",
    "relax.const(1.0, 'float32')",
    "relax.const(1, 'int64')",
    "relax.const(True, 'bool')",
    "relax.const(np.arange(3, dtype='float32'))",
    "relax.const(np.ones((2, 2), 'int8'))",
    "relax.Tuple([x, y])",
    "relax.Tuple([x])",
    "relax.Tuple([])",
    "relax.TupleGetItem(tup, 1)",
    "relax.ShapeExpr([n, 4])",
    "relax.ShapeExpr([])",
    "relax.ExternFunc('f')",
    "relax.GlobalVar('main')",
    "relax.op.add(x, y)",
    "relax.op.add(relax.op.multiply(x, x), y)",
    "relax.op.nn.relu(x)",
    "relax.op.matmul(x, y)",
    "relax.op.permute_dims(y, [1, 0])",
    "relax.op.permute_dims(y)",
    "relax.op.reshape(y, (2, 8))",
    "relax.op.sum(y, axis=[0], keepdims=True)",
    "relax.op.concat([y, y], axis=1)",
    "relax.op.nn.softmax(y, axis=-1)",
    "relax.op.astype(y, 'float16')",
    "relax.op.zeros((2, 3), 'float32')",
    "relax.op.split(y, 2, axis=0)",
    "relax.op.take(y, relax.const([0, 1], 'int64'), axis=0)",
    "relax.op.arange(0, 10, 2, 'int64')",
    "relax.op.strided_slice(y, [0], [0], [2])",
    "relax.op.call_tir(relax.GlobalVar('f'), (x,), R.Tensor((n, 4), 'float32'))",
    "relax.op.call_dps_packed('f', (x,), R.Tensor((n, 4), 'float32'))",
    "relax.op.call_pure_packed('f', x, ty_args=x.ty)",
    "relax.op.shape_of(x)",
    "relax.op.print(x, format='{}')",
    "relax.VarBinding(relax.Var('z', y.ty), relax.op.add(y, y))",
    "relax.MatchCast(relax.Var('z', y.ty), x, y.ty)",
    "relax.BindingBlock([relax.VarBinding(relax.Var('z', y.ty), y)])",
    "relax.SeqExpr([], x)",
    "relax.If(relax.const(True, 'bool'), x, x)",
    "relax.Function([y], relax.op.add(y, y), y.ty)",
    "relax.Function([y], relax.op.add(y, y), y.ty, is_pure=False).with_attr('global_symbol', 'g')",
    # parts of a module
    "mod",
    "mod['main']",
    "mod['scale']",
    "mod['main'].body",
    "mod['main'].body.blocks[0]",
    "mod['main'].body.blocks[0].bindings[1]",
    "mod['main'].body.blocks[0].bindings[0].value",
    "mod['main'].body.blocks[0].bindings[1].var",
    "mod['main'].params[0]",
    "mod['main'].params[0].ty",
    "mod['main'].ty",
    "mod['scale'].params[0]",
    "mod['scale'].body",
    "mod['scale'].body.block",
    "mod['scale'].body.block.body.seq[0]",
    "mod['scale'].body.block.body.seq[0].body.body",
    "mod['scale'].body.block.body.seq[1]",
    "mod['scale'].body.block.body.seq[0].body.body.block.reads[0]",
    "mod['scale'].body.block.body.seq[0].body.body.block.iter_vars[0]",
    "mod['scale'].body.block.alloc_buffers[0]",
    "mod['scale'].body.block.body.seq[0].body.body.block.body",
    "mod.get_global_var('main')",
    "tvm.IRModule({})",
    "tvm.IRModule({'f': mod['main']})",
    "mod.with_attr('a', 1)",
    "mod['main'].with_attr('a', [1, 2.5, 'b'])",
    "mod['scale'].with_attr('tirx.noalias', True)",
    # statements
    "tirx.Evaluate(tirx.IntImm('int32', 0))",
    "tirx.Evaluate(i)",
    "tirx.BufferStore(A, f, [i, j])",
    "tirx.SeqStmt([tirx.BufferStore(A, f, [i, j]), tirx.BufferStore(A, g, [j, i])])",
    "tirx.For(i, 0, 8, tirx.ForKind.SERIAL, tirx.BufferStore(A, f, [i, i]))",
    "tirx.For(i, 2, 8, tirx.ForKind.UNROLLED, tirx.BufferStore(A, f, [i, i]))",
    "tirx.For(i, 0, 8, tirx.ForKind.VECTORIZED, tirx.BufferStore(A, f, [i, i]))",
    "tirx.IfThenElse(i < 3, tirx.BufferStore(A, f, [i, i]), None)",
    "tirx.IfThenElse(i < 3, tirx.BufferStore(A, f, [i, i]), tirx.BufferStore(A, g, [i, i]))",
    "tirx.While(i < 3, tirx.BufferStore(A, f, [i, i]))",
    "tirx.AttrStmt(n, 'key', tirx.IntImm('int32', 1), tirx.Evaluate(i))",
    "tirx.AllocBuffer(A)",
    "tirx.BufferRegion(A, [tvm.ir.Range.from_min_extent(0, 4), tvm.ir.Range.from_min_extent(i, 1)])",
    "tvm.ir.Range.from_min_extent(0, 4)",
    # loops and stores
    "tirx.For(i, IM(0), IM(4), tirx.ForKind.SERIAL, tirx.For(j, IM(0), IM(4), tirx.ForKind.SERIAL, ST(A, f, [i, j])))",
    "tirx.For(i, IM(0), IM(4), tirx.ForKind.PARALLEL, ST(A, f, [i, i]))",
    "tirx.SeqStmt([tirx.Bind(tirx.Var('q', 'float32'), f + f), ST(A, f, [i, i])])",
    "tirx.SeqStmt([tirx.AllocBuffer(C), ST(C, tirx.IntImm('int8', 1), [i])])",
    "tirx.PrimFunc([A, i, C], tirx.SeqStmt([ST(A, A[i, 0], [0, 0]), tirx.Evaluate(IM(0))]))",
    "tirx.PrimFunc([i], tirx.Evaluate(i)).with_attr('global_symbol', 'foo')",
    "tirx.While(A[i, 0] < f, ST(A, f, [i, i]))",
    "tirx.IfThenElse(i < 3, tirx.IfThenElse(j < 3, ST(A, f, [i, i]), None), ST(A, f, [j, j]))",
    "tirx.Evaluate(tirx.call_extern('int32', 'g', i, f))",
    "tirx.Evaluate(tirx.address_of(A[i, j]))",
    "ST(A, tirx.Broadcast(f, IM(4)), [i, tirx.Ramp(IM(0), IM(1), IM(4))])",
    "A[i, tirx.Ramp(j, IM(1), IM(4))]",
    "tirx.BufferRegion(A, [tvm.ir.Range.from_min_extent(i, IM(4)), tvm.ir.Range.from_min_extent(IM(0), j)])",
    "tirx.floor(f) + tirx.ceil(f) + tirx.round(f) + tirx.trunc(f) + tirx.abs(f)",
    "(i << j) + (i >> j) * ((i & j) | (i ^ j))",
    "tirx.And(tirx.Or(i < j, i >= j), tirx.Not(tirx.EQ(i, j)))",
    "tirx.FloatImm('bfloat16', 1.5)",
    "tirx.IntImm('int64', 2**40) + n",
    # functions and bindings
    "relax.Function([x], relax.op.add(x, x), x.ty).with_attr('global_symbol', 'f')",
    "relax.Function([relax.Var('t', relax.TupleType([x.ty, relax.ShapeType([n, n + 1])]))], x, x.ty)",
    "relax.If(relax.Var('c', relax.TensorType((), 'bool')), relax.SeqExpr([], x), relax.SeqExpr([], y))",
    "relax.DataflowBlock([relax.VarBinding(relax.DataflowVar('w', x.ty), x), relax.VarBinding(relax.Var('u', x.ty), x)])",
    "relax.Tuple([x, relax.Tuple([y, relax.ShapeExpr([n])]), relax.Tuple([])])",
    "relax.Call(relax.GlobalVar('g'), [x, relax.Tuple([y])])",
    "relax.Call(relax.ExternFunc('my.f'), [x], ty_args=[x.ty])",
    "relax.VarBinding(relax.Var('k', tvm.ir.PrimType('int64')), n + 1)",
    "relax.VarBinding(relax.Var('k', relax.ShapeType([n, n * 2])), relax.ShapeExpr([n, n * 2]))",
    "tvm.IRModule({'a': relax.ExternFunc('b.c'), 'main': relax.Function([y], y, y.ty).with_attr('global_symbol', 'main')})",
    "relax.op.where(y, y, relax.const(1.0, 'float32'))",
    "relax.op.clip(y, 0, 6)",
    "relax.op.full((2, n), relax.const(1, 'int32'), 'int32')",
    "relax.op.nn.layer_norm(y, y, y, axes=[-1])",
    "relax.op.strided_slice(y, [0, 1], [0, n], [4, n + 1], [1, 2])",
    "relax.op.broadcast_to(y, (n, 4, 4))",
    "relax.op.topk(y, 2)",
    "relax.op.einsum((y, y), 'ij,jk->ik')",
)  # fmt: skip

# Programs beside the corpus, for the layout.
# ruff: noqa: E501
PROGRAMS = (
    """
@I.ir_module
class Module:
    @R.function
    def zmain(x: R.Tensor(("n", "n * 2", "m"), "float32")) -> R.Tensor(("n", "n*2 + 1", "m"), "float32"):
        n = T.int64()
        m = T.int64()
        cls = Module
        y = R.call_tir(cls.f, (x,), out_ty=[R.Tensor((n, n*2+1, m), "float32"), R.Tensor((n,), "float32")])
        z = y[0]
        return z
    @T.prim_func(private=True, s_tir=True)
    def f(a: T.handle, b: T.handle, k: T.int32):
        n, q = T.int64(), T.int64()
        A = T.match_buffer(a, (n, q + 1, q), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            B[i] = A[i, 0, 0] + T.float32(0.1)
    @R.function(private=True)
    def amain(x: R.Tensor(("k",), "float32"), s: R.Shape(["k", "j"])) -> R.Tuple(R.Tensor(("k",), "float32"), R.Shape(["k"])):
        k = T.int64()
        return (x, R.shape([k]))
""",
    """
@R.function
def main(x: R.Tensor(dtype="float32", ndim=2), t: R.Tuple(R.Tensor, R.Tuple(R.Any))) -> R.Tuple(R.Tensor((), "int32"), R.Tuple()):
    n, m = T.int64(), T.int64()
    with R.dataflow():
        y = R.match_cast(x, R.Tensor((n, m), "float32"))
        z = (y, (y, y))
        k = z[1][0]
        R.output(y, k)
    w: R.Tensor = y
    u = R.prim_value(n * 2 + m)
    s = R.str("hi\\\n")
    d = R.dtype("int8")
    c = R.const([1,2,3], "int32")
    v = (x,)
    e = R.tuple()
    h = R.shape([n, 2, n + m])
    return (R.const(1), ())
""",
    """
@R.function(pure=False)
def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
    a = R.add(x, y)
    R.print(a, format="{}")
    _ = R.print(a, format="{}")
    b = R.print(a, format="{}")
    c = R.nn.layer_norm(x, R.const([1.0,1.0,1.0]), R.const([1.0,1.0,1.0]), axes=[-1], epsilon=1e-5)
    d = R.sum(x)
    e = R.add(x, R.const(0.1))
    f = R.call_packed("f", x, ty_args=[R.Tensor((2,3), "float32"), R.Tensor])
    with R.dataflow():
        g = R.nn.relu(R.add(x, y))
        R.output(g)
    h = R.nn.relu(R.add(x, y))
    if R.const(True):
        q = R.add(x, y)
    else:
        q = R.nn.relu(R.add(x, y))
    return (q, b)
""",
    """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "int32"), n: T.int32, m: T.int64, h: T.handle):
    C = T.alloc_buffer((16, 4), "float16", scope="shared")
    D = T.decl_buffer((4, 4), "float32", data=A.data)
    E = T.decl_buffer((2, 4), "float32", data=A.data, elem_offset=4)
    for i in range(16):
        if i < 3:
            A[i] = T.float32(0.1)
        elif i < 5:
            A[i] = T.float32(1e-5)
        else:
            A[i] = T.float32(1e20)
    for i in T.serial(2, 10):
        A[i] = T.float32(1)
    for i in T.serial(2, 10, annotations={"k": 1, "s": "x"}):
        A[i] = T.float32(1)
    for i in range(n):
        for i_1 in T.vectorized(4):
            B[i] = i + i_1
    for i in T.serial(0, 16, step=2):
        B[i] = 3
    for i, j in T.grid(4, n):
        for k in range(j):
            B[i] = 3
    while B[0] < 3:
        B[0] = B[0] + 1
    with T.attr(0, "a", 1):
        B[0] = 1
    T.evaluate(3)
    x = T.float32()
    if B[0] < 2:
        A[1] = T.float32(2)
    T.evaluate(T.call_extern("int32", "f"))
    A[0] = T.Cast("float32", m)
    A[0] = T.Cast("float32", m + T.int64(1))
    B[0] = T.if_then_else(m == T.int64(1), 1, 2)
    B[0] = -B[0]
    B[0] = ~B[0] ^ 3 | 4 >> B[1]
    B[0] = B[0] - (B[1] - B[2]) * (B[0] // B[1])
""",
    """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,16), "float32"), B: T.Buffer((16,), "float32")):
    with T.sblock("root"):
        T.reads(A[0:16, 0:16])
        T.sblock_attr({"k": 1})
        for i, j, k in T.grid(16, 4, 4):
            with T.sblock("b"):
                vi = T.axis.spatial(16, i)
                vj = T.axis.spatial(16, j * 4 + k)
                T.reads(A[vi, vj], A[vi, 0:vj], A[vi, vj:vj + 4])
                T.writes(B[vi])
                B[vi] = A[vi, vj]
        for i, j, k in T.grid(16, 4, 4):
            with T.sblock("b"):
                vi = T.axis.spatial(16, i)
                vj = T.axis.spatial(4, j)
                vk = T.axis.reduce(16, j * 4 + k)
                vk2 = T.axis.reduce(4, k)
                v3 = T.axis.spatial(T.int64(3), T.int64(1))
                T.where(i < 3 and j < 2)
                X = T.match_buffer(A[0:4, 0:4], (4, 4), offset_factor=1)
                with T.init():
                    B[vi] = T.float32(0)
                    B[vi] = T.float32(0)
                B[vi] = X[vi, vj]
        with T.sblock():
            T.reads()
            T.writes()
            with T.sblock(""):
                B[0] = T.float32(1)
        for i in T.thread_binding(4, thread="threadIdx.x", annotations={"pragma": T.bool(True)}):
            with T.sblock("opaque"):
                vi = T.axis.opaque(4, i)
                vj = T.axis.scan((2, 4), i)
                C = T.sblock_alloc_buffer((3,), "int8", strides=(1,), scope="local", align=32)
                B[vi] = T.float32(1)
""",
    """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((16,), "float32"), a: T.handle):
    T.func_attr({"x": [1, T.int64(2), 2.5, "a", {"k": T.float32(1)}], "tir.noalias": True})
    m = T.int32()
    n = T.int64()
    B = T.match_buffer(a, (m, n), "int8", scope="global", offset_factor=4)
    with T.launch_thread("threadIdx.x", 4) as tx:
        A[tx] = T.float32(1)
    bx = T.launch_thread("blockIdx.x", 4)
    with T.attr(bx, "k", "v"):
        A[bx] = T.float32(1)
    T.attr(bx, "k2", 2)
    A[bx] = T.float32(1)
    A[bx] = T.float32(1)
    if bx < 2:
        A[bx] = T.float32(1)
""",
    """
@T.prim_func(s_tir=True)
def f(A: T.Buffer((16,), "float32")) -> T.int32:
    with T.launch_thread("threadIdx.x", 4) as tx:
        with T.attr(tx, "k", "v"):
            with T.attr(tx, "k3", 2):
                A[tx] = T.float32(1)
    x: T.let = A[0]
    y: T.int32 = 3
    z: T.int32 = y + 1
    A[T.Ramp(0, 1, 4)] = T.Broadcast(x, 4)
    A[0:4] = A[T.Ramp(0, 1, 4)]
    A[1] = T.max(T.min(A[0], T.float32(0)), T.float32(-1))
    return z
""",
    """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), n: R.Prim("int64"), f: R.Callable, s: R.Shape(ndim=2), o: R.Object, g: R.Callable(ret=R.Tensor), h: R.Prim("int64")) -> R.Tensor:
        k = T.int64()
        cls = Module
        lv = cls.other(x)
        lv2 = R.strided_slice(x, [0], [0], [2])
        lv3 = R.full((n, 2), R.const(1.0))
        lv4 = R.call_tir(cls.p, (x,), out_ty=R.Tensor((n, k), "float32"), tir_vars=R.shape([n, k]))
        lv5 = R.nn.conv2d(R.zeros((1,3,8,8), "float32"), R.zeros((4,3,3,3), "float32"), padding=1)
        return R.add(lv, lv)

    @R.function(private=True)
    def other(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        R.func_attr({"Composite": "abc", "Primitive": True})
        return R.add(x, x)

    @T.prim_func(s_tir=True)
    def p(x: T.handle, k: T.int64):
        T.evaluate(0)
""",
    """
n = TypeVar("n")
@T.prim_func(s_tir=True)
def ap(y: T.Buffer((n,4), "float32"), z:T.Buffer((T.int64(3), T.int64(4)), "int32")):
        k = T.int64()
        X = T.alloc_buffer((k,), "int8", scope="local")
        X2 = T.sblock_alloc_buffer((4, 4), "int8")
        X3 = T.alloc_buffer((4, 4), "float32")
        X4 = T.decl_buffer((4, 4), "int8", data=X2.data)
        X5 = T.decl_buffer((T.int64(4), n), "float32", data=X3.data)
        X6 = T.decl_buffer((8, 4), "float32", data=X3.data, elem_offset=4)
        X7 = T.decl_buffer((8, 4), "float32", data=X3.data, strides=[4, 1])
        for i in T.serial(T.int64(4)):
            z[i, T.int64(0)] = 1
        for i in range(2):
            for j in range(2, 3):
                for k2 in range(2):
                    for k3 in range(2):
                        z[i, T.int64(0)] = 1
        for i in T.thread_binding(T.int64(4), thread="threadIdx.x"):
            z[i, T.int64(0)] = 1
        T.call_extern("int32", "f")
        T.evaluate(y[0, 0])
        T.evaluate(T.float32(1.5))
""",
    """
@T.prim_func(s_tir=True)
def ap(z:T.Buffer((T.int64(3), T.int64(4)), "int32"), X: T.Buffer((4,), "int8", scope="local"), Y: T.Buffer((), "int32"), h: T.handle("float32"), h2: T.handle("float32", "shared")):
        a = T.alloc_buffer((4,), "int8", scope="shared.dyn", align=128)
        b = T.alloc_buffer((4,), "float32", scope="local", align=128)
        Y[()] = 0
        if X[0] > T.int8(0):
            return
        with T.sblock("b"):
            vi = T.axis.spatial(4, 0)
            Y[()] = 0
        x = T.if_then_else(Y[()] == 0, X[0], X[1])
        for k in T.unroll(0, 4, annotations={"pragma_unroll": 1}):
            Y[()] = x
""",
    """
@I.ir_module
class Module:
    I.module_attrs({"b": 1, "a": [1, {"z": 2, "y": None}]})
    I.module_global_infos({"vdevice": []})
    @R.function
    def b(x: R.Tensor((3,), "float32")):
        return x
    @R.function
    def a(x: R.Tensor((3,), "float32")):
        return x
    @R.function(private=True)
    def d(x: R.Tensor((3,), "float32")):
        cls = Module
        return cls.a(x)
    @R.function(private=True)
    def c(x: R.Tensor((3,), "float32")):
        v2 = T.int64()
        y = R.call_packed("f", ty_args=R.Tensor((v2, 4), "float32"))
        u = R.prim_value(T.int32(3))
        v = R.call_pure_packed("f", R.prim_value(3), R.prim_value(1.5), ty_args=[R.Tensor((3,), "float32")])
        return x
    @R.function(private=True)
    def main(x: R.Tensor) -> R.Any:
        R.func_attr({"relax.force_pure": True, "num_input": 1, "a": None, "s": [], "t": {}, "f": 2.0, "ty": R.Tensor((3,), "float32"), "i": T.int64(2), "e": R.shape([3])})
        cls = Module
        a = cls.a
        y = cls.b(x)
        return y
""",
    """
@T.prim_func(s_tir=True)
def ap(z:T.Buffer((T.int64(3), T.int64(4)), "int32"), X: T.Buffer((4,), "int8", scope="local"), Y: T.Buffer((), "int32"), h: T.handle("float32"), h2: T.handle("float32", "shared")):
        a = T.alloc_buffer((4,), "int8", scope="shared.dyn", align=128)
        b = T.alloc_buffer((4,), "float32", scope="local", align=128)
        Y[()] = 0
        with T.sblock("b"):
            vi = T.axis.spatial(4, 0)
            Y[()] = 0
        x = T.if_then_else(Y[()] == 0, X[0], X[1])
        for k in T.unroll(0, 4, annotations={"pragma_unroll": 1}):
            Y[()] = x
""",
    """
@T.prim_func(s_tir=True)
def ap(z:T.Buffer((T.int64(3), T.int64(4)), "int32"), X: T.Buffer((4,), "int8", scope="local"), Y: T.Buffer((), "int32"), h: T.handle("float32"), h2: T.handle("float32", "shared")):
        a = T.alloc_buffer((4,), "int8", scope="shared.dyn", align=128)
        b = T.alloc_buffer((4,), "float32", scope="local", align=128)
        c = T.alloc_buffer((4,), "float32", scope="wmma", annotations={"k": 1})
        c2 = T.decl_buffer((2,2), "float32", data=b.data, scope="local")
        c3 = T.decl_buffer((4,), "float32", data=b.data, scope="local")
        c4 = T.decl_buffer((4,), "int32", data=b.data, scope="local")
        c5 = T.decl_buffer((2,), "float32", data=b.data, scope="local")
        c6 = T.decl_buffer((12,), "int32", data=z.data)
        c7 = T.decl_buffer((T.int64(12),), "int32", data=z.data)
        Y[()] = 0
        for k in T.unroll(0, 4, annotations={"pragma_unroll": 1}):
            Y[()] = 1
        c[0:4] = T.Broadcast(T.float32(1), 4)
        c[T.Ramp(0, 2, 4)] = T.Broadcast(T.float32(1), 4)
        T.attr(0, "x", 1)
        Y[()] = 1
        z2 = T.Cast("int64", Y[()])
        z[z2, z2] = 3
        z3: T.let[T.int64] = T.Cast("int64", Y[()])
        z[z3, z3] = 3 + Y[()]
        while Y[()] > 0:
            Y[()] += 1
        Y[()] = -Y[()]
""",
    """
@I.ir_module
class Module:
    I.module_attrs({"b": 1, "a": [1, {"z": 2, "y": None}]})
    I.module_global_infos({"vdevice": []})
    @R.function
    def b(x: R.Tensor((3,), "float32")):
        return x
    @R.function
    def a(x: R.Tensor((3,), "float32")):
        return x
    @R.function(private=True)
    def d(x: R.Tensor((3,), "float32")):
        cls = Module
        return cls.a(x)
    @R.function(private=True)
    def c(x: R.Tensor((3,), "float32")):
        v2 = T.int64()
        y = R.call_packed("f", ty_args=R.Tensor((v2, 4), "float32"))
        u = R.prim_value(T.int32(3))
        v = R.call_pure_packed("f", R.prim_value(3), R.prim_value(1.5), ty_args=[R.Tensor((3,), "float32")])
        return x
    @R.function(private=True)
    def main(x: R.Tensor((3,), "float32")) -> R.Any:
        R.func_attr({"relax.force_pure": True, "num_input": 1, "a": None, "s": [], "t": {}, "f": 2.0, "ty": R.Tensor((3,), "float32"), "i": T.int64(2), "e": R.shape([3])})
        cls = Module
        a = cls.a
        y = cls.b(x)
        return y
""",
    """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), n: R.Prim("int64"), f: R.Callable, s: R.Shape(ndim=2), o: R.Object, g: R.Callable(ret=R.Tensor)) -> R.Tensor:
        k = T.int64()
        cls = Module
        lv = cls.other(x)
        lv2 = R.strided_slice(x, [0], [0], [2])
        lv3 = R.full((n, 2), R.const(1.0))
        lv5 = R.nn.conv2d(R.zeros((1,3,8,8), "float32"), R.zeros((4,3,3,3), "float32"), padding=1)
        c = R.const([1,2,3], "int32")
        return R.add(lv, lv)

    @R.function(private=True)
    def other(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        R.func_attr({"Composite": "abc", "Primitive": True})
        return R.add(x, x)

    @T.prim_func(s_tir=True)
    def p(x: T.handle, k: T.int64, B: T.Buffer((4,), "int8")):
        T.evaluate(0)
    @T.prim_func(s_tir=True)
    def q(A: T.Buffer(("k",), "int32"), k: T.int64):
        for i, j in T.grid(k, k):
            with T.sblock("b"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    A[vi] = 0
                A[vi] = A[vi] + T.Cast("int32", vj)
""",
    """
n = TypeVar("n")
@R.function
def main(x: R.Tensor((n,), "float32")):
    with R.dataflow():
        y = R.add(x, x)
        R.output()
    z = R.const(3.0, "float16")
    w = R.add(x, x)
    with R.dataflow():
        y2 = R.add(x, x)
        R.output(y2)
    with R.dataflow():
        y3 = R.add(x, x)
        y4 = R.add(y3, x)
        y3 = R.add(y4, x)
        R.output(y3)
    @R.function(pure=False)
    def inner(x: R.Tensor((n,), "float32"), k: R.Tensor((4,), "float32")) -> R.Tensor((n,), "float32"):
        return x
    if R.const(True):
        if R.const(False):
            r = x
        else:
            r = y2
        q = r
    else:
        q = R.add(x, x)
    return q
""",
)
