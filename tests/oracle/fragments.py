"""Parts of programs, built in Python: the printed text of each is compared with the oracle's (``text.py``).

Every entry is an expression in the names that `PRELUDE` sets up; it means the same on both sides. The program runs where
``import tvm`` works: in the oracle, or under Supple's alias.
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
A = tirx.decl_buffer((16, 16), "float32", "A")
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
    "tirx.StringImm('a')",
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
    "tirx.min(i, 4)",
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
    "tirx.Ramp(i, 1, 4)",
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
    "A.data",
    # types
    "R.Tensor((n, 4), 'float32')",
    "R.Tensor((4, 4))",
    "R.Tensor('float32', ndim=2)",
    "R.Tensor(ndim=2)",
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
    "relax.StringImm('abc')",
    "relax.DataTypeImm('int8')",
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
    "relax.op.call_tir(relax.GlobalVar('f'), x, [x.ty, y.ty], tir_vars=relax.ShapeExpr([n]))",
    "relax.op.call_dps_packed('f', (x,), R.Tensor((n, 4), 'float32'))",
    "relax.op.call_pure_packed('f', x, ty_args=x.ty)",
    "relax.Call(relax.ExternFunc('f'), [x, relax.StringImm('a')], ty_args=[x.ty])",
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
    "mod['main'].attrs",
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
    "tirx.AssertStmt(tirx.StringImm('RuntimeError'), i < 3, [tirx.StringImm('too large')])",
    "tirx.AttrStmt(A.data, 'key', 1, tirx.Evaluate(i))",
    "tirx.AllocBuffer(A)",
    "tirx.BufferRegion(A, [tvm.ir.Range(0, 4), tvm.ir.Range(i, 1)])" if False else "tirx.BufferRegion(A, [tvm.ir.Range.from_min_extent(0, 4), tvm.ir.Range.from_min_extent(i, 1)])",
    "tvm.ir.Range.from_min_extent(0, 4)",
    "tirx.IterVar(tvm.ir.Range.from_min_extent(0, 4), 'k', 2)",
)  # fmt: skip
