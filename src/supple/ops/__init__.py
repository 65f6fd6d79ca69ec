"""All operators. Importing this package declares them; look one up with ``supple.ir.op.Op.get("relax.add")``."""

from supple.ops import (
    activation,
    arrange,
    binary,
    calls,
    conv,
    create,
    forms,
    index,
    linalg,
    manipulate,
    normalize,
    pool,
    reduce,
    sort,
    ternary,
    unary,
)

__all__ = [
    "activation",
    "arrange",
    "binary",
    "calls",
    "conv",
    "create",
    "forms",
    "index",
    "linalg",
    "manipulate",
    "normalize",
    "pool",
    "reduce",
    "sort",
    "ternary",
    "unary",
]
