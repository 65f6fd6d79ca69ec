"""``relax.base_py_module``. Only re-exports."""

from supple.python_module import (
    BasePyModule,
)

__all__ = [
    "BasePyModule",
]
