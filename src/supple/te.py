"""The compute DSL under its short name: ``from supple import te``. Only re-exports."""

from supple.build.te import (
    TensorValue as Tensor,
)
from supple.build.te import (
    compute,
    create_prim_func,
    max,
    min,
    placeholder,
    prod,
    reduce_axis,
    sum,
)

__all__ = ["Tensor", "compute", "create_prim_func", "max", "min", "placeholder", "prod", "reduce_axis", "sum"]
