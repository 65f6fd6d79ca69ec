"""Building programs statement by statement with the names of ``R`` and ``T``::

with IRBuilder() as ib:
    with R.function():
        R.func_name("f")
        x = R.arg("x", relax.TensorType([4], "float32"))
        y = R.emit(R.exp(x))
        R.func_ret_value(y)
func = ib.get()
"""

from supple.script.ir_builder.base import IRBuilder

__all__ = ["IRBuilder"]
