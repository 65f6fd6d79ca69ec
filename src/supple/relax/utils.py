"""``relax.utils``: small helpers. Only re-exports."""

from supple.build.block_builder import gen_call_tir_inputs
from supple.build.functions import (
    convert_to_expr,
    copy_with_new_vars,
)
from supple.build.te import te_tensor

__all__ = [
    "convert_to_expr",
    "copy_with_new_vars",
    "gen_call_tir_inputs",
    "te_tensor",
]
