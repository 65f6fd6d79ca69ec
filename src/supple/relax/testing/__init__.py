"""``relax.testing``: modules for tests and examples, a plain view of the syntax tree, and checks of saved functions."""

from supple.relax.testing import nn, runtime_builtin, transform, vm
from supple.relax.testing.ast_printer import dump_ast
from supple.relax.testing.modules import (
    get_relax_attention_module,
    get_relax_matmul_module,
    get_relax_stacked_attention_module,
)
from supple.relax.testing.nn import (
    Linear,
    LogSoftmax,
    Module,
    Parameter,
    Placeholder,
    ReLU,
    Sequential,
    checkpoint,
    emit,
    emit_checkpoint,
    emit_checkpoint_sequential,
    emit_te,
    init_params,
)

__all__ = [
    "Linear",
    "LogSoftmax",
    "Module",
    "Parameter",
    "Placeholder",
    "ReLU",
    "Sequential",
    "checkpoint",
    "dump_ast",
    "emit",
    "emit_checkpoint",
    "emit_checkpoint_sequential",
    "emit_te",
    "get_relax_attention_module",
    "get_relax_matmul_module",
    "get_relax_stacked_attention_module",
    "init_params",
    "nn",
    "runtime_builtin",
    "transform",
    "vm",
]
