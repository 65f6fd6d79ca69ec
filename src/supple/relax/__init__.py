"""Relax's public names: building, inspecting, compiling and running graph functions. Only re-exports."""

from supple.build.block_builder import (
    BlockBuilder,
)
from supple.build.functions import (
    const,
    convert_to_expr,
    copy_with_new_vars,
    extern,
    get_shape_of,
    make_shape,
    prim_value,
)
from supple.build.functor import (
    ExprFunctor,
    PyExprMutator,
    PyExprVisitor,
)
from supple.driver import (
    compile as build,
)
from supple.ir.expr import (
    Call,
    DataflowVar,
    StringImm,
    TupleGetItem,
    Var,
)
from supple.ir.graph import (
    Binding,
    BindingBlock,
    Constant,
    DataflowBlock,
    DataTypeImm,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    SeqExpr,
    ShapeExpr,
    Tuple,
    VarBinding,
)
from supple.ir.node import (
    Expr,
    Type,
)
from supple.ir.types import (
    AnyType,
    DTensorType,
    DummyGlobalInfo,
    FuncType,
    PackedFuncType,
    PrimType,
    ShapeType,
    TensorType,
    TupleType,
    VDevice,
)
from supple.passes.binding_rewrite import (
    DataflowBlockRewrite,
)
from supple.python_module import (
    BasePyModule,
)
from supple.relax import (
    analysis,
    base_py_module,
    binding_rewrite,
    block_builder,
    distributed,
    dpl,
    exec_builder,
    expr,
    expr_functor,
    global_info,
    op,
    testing,
    transform,
    type,
    utils,
    vm,
)
from supple.relax.pipeline import (
    get_default_pipeline,
    get_pipeline,
    register_pipeline,
)
from supple.runtime.executable import Executable
from supple.runtime.instructions import ExecBuilder
from supple.runtime.virtual_machine import VirtualMachine, VMInstrumentReturnKind
from supple.script.relax import (
    call_dps_packed,
    call_pure_packed,
    call_tir,
    call_tir_inplace,
    call_tir_with_grad,
)

ObjectType = AnyType
PrimValue = prim_value
VMExecutable = Executable

__all__ = [
    "AnyType",
    "BasePyModule",
    "Binding",
    "BindingBlock",
    "BlockBuilder",
    "Call",
    "Constant",
    "DTensorType",
    "DataTypeImm",
    "DataflowBlock",
    "DataflowBlockRewrite",
    "DataflowVar",
    "DummyGlobalInfo",
    "ExecBuilder",
    "Executable",
    "Expr",
    "ExprFunctor",
    "ExternFunc",
    "FuncType",
    "Function",
    "GlobalVar",
    "If",
    "MatchCast",
    "ObjectType",
    "PackedFuncType",
    "PrimType",
    "PrimValue",
    "PyExprMutator",
    "PyExprVisitor",
    "SeqExpr",
    "ShapeExpr",
    "ShapeType",
    "StringImm",
    "TensorType",
    "Tuple",
    "TupleGetItem",
    "TupleType",
    "Type",
    "VDevice",
    "VMExecutable",
    "VMInstrumentReturnKind",
    "Var",
    "VarBinding",
    "VirtualMachine",
    "analysis",
    "base_py_module",
    "binding_rewrite",
    "block_builder",
    "build",
    "call_dps_packed",
    "call_pure_packed",
    "call_tir",
    "call_tir_inplace",
    "call_tir_with_grad",
    "const",
    "convert_to_expr",
    "copy_with_new_vars",
    "distributed",
    "dpl",
    "exec_builder",
    "expr",
    "expr_functor",
    "extern",
    "get_default_pipeline",
    "get_pipeline",
    "get_shape_of",
    "global_info",
    "make_shape",
    "op",
    "prim_value",
    "register_pipeline",
    "testing",
    "transform",
    "type",
    "utils",
    "vm",
]
