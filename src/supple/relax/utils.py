"""``relax.utils``: small helpers. Only re-exports."""

from supple.build.functions import (
    convert_to_expr,
    copy_with_new_vars,
)

__all__ = [
    "convert_to_expr",
    "copy_with_new_vars",
]
