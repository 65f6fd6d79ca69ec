"""``relax.expr``: expressions and bindings of graph functions. Only re-exports."""

from supple.build.functions import (
    const,
    convert_to_expr,
    extern,
    get_shape_of,
    make_shape,
    prim_value,
)
from supple.build.te import te_tensor
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

__all__ = [
    "Binding",
    "BindingBlock",
    "Call",
    "Constant",
    "DataTypeImm",
    "DataflowBlock",
    "DataflowVar",
    "Expr",
    "ExternFunc",
    "Function",
    "GlobalVar",
    "If",
    "MatchCast",
    "SeqExpr",
    "ShapeExpr",
    "StringImm",
    "Tuple",
    "TupleGetItem",
    "Type",
    "Var",
    "VarBinding",
    "const",
    "convert_to_expr",
    "extern",
    "get_shape_of",
    "make_shape",
    "prim_value",
    "te_tensor",
]
