"""Relax's public names: building, compiling and running. Only re-exports."""

from supple.build.block_builder import BlockBuilder
from supple.driver import compile as build
from supple.ir.expr import Call, DataflowVar, TupleGetItem, Var
from supple.ir.graph import (
    Binding,
    BindingBlock,
    Constant,
    DataflowBlock,
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
from supple.ir.node import Expr
from supple.ir.types import AnyType, FuncType, PrimType, ShapeType, TensorType, TupleType
from supple.runtime.executable import Executable, VirtualMachine

VMExecutable = Executable

__all__ = [
    "AnyType",
    "Binding",
    "BindingBlock",
    "BlockBuilder",
    "Call",
    "Constant",
    "DataflowBlock",
    "DataflowVar",
    "Executable",
    "Expr",
    "ExternFunc",
    "FuncType",
    "Function",
    "GlobalVar",
    "If",
    "MatchCast",
    "PrimType",
    "SeqExpr",
    "ShapeExpr",
    "ShapeType",
    "TensorType",
    "Tuple",
    "TupleGetItem",
    "TupleType",
    "VMExecutable",
    "Var",
    "VarBinding",
    "VirtualMachine",
    "build",
]
