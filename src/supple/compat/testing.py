"""``tvm.testing``: comparing results, parameters and fixtures of pytest, and which devices there are.

pytest is imported when a name needs it, never by Supple itself.
"""

from __future__ import annotations

import importlib
import itertools
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.ir.node import Expr
from supple.ir.structural import assert_structural_equal
from supple.runtime.device import cpu
from supple.sym.simplify import evaluate

DEFAULT_TEST_TARGETS = ["llvm"]
"""The targets that code can be built for."""


def _flag(name: str) -> bool:
    return os.environ.get(name, "").lower() in ("1", "true", "yes", "on")


IS_IN_CI = _flag("CI")
SKIP_SLOW_TESTS = _flag("SKIP_SLOW_TESTS")


def _pytest() -> ModuleType:
    return importlib.import_module("pytest")


# ----------------------------------------------------------------------------------------------------------- comparing


def assert_allclose(actual: Any, desired: Any, rtol: float = 1e-7, atol: float = 1e-7, verbose: bool = True) -> None:
    """Raise ``AssertionError`` when two arrays (or Tensors) differ in shape or by more than the tolerance."""
    left, right = np.asanyarray(actual), np.asanyarray(desired)
    np.testing.assert_array_equal(left.shape, right.shape)
    np.testing.assert_allclose(left, right, rtol=rtol, atol=atol, verbose=verbose)


def assert_prim_expr_equal(lhs: Expr, rhs: Expr) -> None:
    """Raise ``AssertionError`` unless two scalar expressions are structurally equal."""
    assert_structural_equal(lhs, rhs, map_free_vars=False)


def check_bool_expr_is_true(bool_expr: Expr, vranges: Mapping[Any, Any], cond: Expr | None = None) -> None:
    """Raise ``AssertionError`` with the values for which a condition fails, trying every value of every variable's
    `Range` (``vranges``) for which ``cond`` holds; ``KeyError`` for a variable without a range."""
    variables = list(vranges)
    ranges = [range(int(r.min), int(r.min) + int(r.extent)) for r in vranges.values()]
    for values in itertools.product(*ranges):
        point = dict(zip(variables, values, strict=True))
        if cond is not None and not evaluate(cond, point):
            continue
        if not evaluate(bool_expr, point):
            named = ", ".join(f"{var.name} = {value}" for var, value in point.items())
            raise AssertionError(f"{bool_expr} does not hold for {named}")


def check_numerical_grads(
    function: Callable[..., Any],
    input_values: Mapping[str, Any] | Sequence[Any],
    grad_values: Mapping[str, Any] | Sequence[Any],
    function_value: float | None = None,
    delta: float = 1e-3,
    atol: float = 1e-2,
    rtol: float = 0.1,
) -> None:
    """Raise ``AssertionError`` where gradients differ from central differences of ``function`` (a scalar).

    The error of a gradient of n elements is compared, as a norm, with ``atol * sqrt(n) + rtol * |numeric|``. Five
    points are used where two leave too large an error: the stencil of order 4 (-1, 8, 0, -8, 1) / 12.
    """
    named = isinstance(input_values, Mapping)
    values: dict[Any, Any] = dict(input_values) if isinstance(input_values, Mapping) else dict(enumerate(input_values))
    grads: dict[Any, Any] = dict(grad_values) if isinstance(grad_values, Mapping) else dict(enumerate(grad_values))

    def at(key: Any, index: tuple[int, ...], step: float) -> float:
        moved = {k: np.array(v, copy=k == key) for k, v in values.items()}
        moved[key][index] += step
        return float(function(**moved) if named else function(*moved.values()))

    for key, given in grads.items():
        array = np.asarray(values[key])
        for points in (2, 5):
            numeric = np.zeros(array.shape, "float64")
            for index in np.ndindex(*array.shape):
                near = at(key, index, delta) - at(key, index, -delta)
                if points == 2:
                    numeric[index] = near / (2 * delta)
                else:
                    far = at(key, index, 2 * delta) - at(key, index, -2 * delta)
                    numeric[index] = (8 * near - far) / (12 * delta)
            error = float(np.linalg.norm(np.asarray(given, "float64") - numeric))
            bound = atol * math.sqrt(array.size) + rtol * float(np.linalg.norm(numeric))
            if error <= bound:
                break
        else:
            raise AssertionError(f"the gradient of {key!r} is off by {error:.3g}, more than {bound:.3g}")


def np_dtype_from_str(dtype: str) -> Any:
    """numpy's dtype of a name, bfloat16 and the float8 kinds included."""
    return dtypes.to_numpy(dtype)


def generate_random_array(dtype: str, shape: tuple[int, ...]) -> Any:
    """Random data of a dtype: integers over their whole range, floats from the standard normal distribution."""
    kind, rng = dtypes.row(dtype).kind, np.random.default_rng()
    if kind == "float":
        return rng.standard_normal(shape).astype(dtypes.to_numpy(dtype))
    if kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    integer: Any = dtypes.to_numpy(dtype)
    info = np.iinfo(integer)
    return rng.integers(info.min, info.max, shape, dtype=integer, endpoint=True)


# ------------------------------------------------------------------------------------------------- pytest's fixtures


def parameter(*values: Any, ids: Sequence[str] | None = None, by_dict: Mapping[str, Any] | None = None) -> Any:
    """A fixture that stands for each value in turn: ``size = tvm.testing.parameter(1, 10, 100)`` in a test module.
    ``by_dict`` gives values and their names at once."""
    if by_dict is not None:
        if values or ids:
            raise RuntimeError("parameter: give the values or by_dict, not both")
        ids, values = list(by_dict), tuple(by_dict.values())

    @_pytest().fixture(params=list(values), ids=None if ids is None else list(ids))  # type: ignore[untyped-decorator]
    def made(request: Any) -> Any:
        return request.param

    return made


def fixture(func: Callable[..., Any] | None = None, *, cache_return_value: bool = False) -> Any:
    """A fixture of pytest's, made for every test; ``cache_return_value`` makes it once a module."""
    make = _pytest().fixture(scope="module" if cache_return_value else "function")
    return make if func is None else make(func)


def main() -> None:
    """Run the tests of the script that calls this, and exit with pytest's status."""
    file = sys._getframe(1).f_globals["__file__"]
    sys.exit(_pytest().main([file, *sys.argv[1:]]))


def skip_if_32bit(reason: str) -> Any:
    """A mark that skips a test where pointers have 32 bits."""
    return _pytest().mark.skipif(sys.maxsize < 2**32, reason=reason)


# -------------------------------------------------------------------------------------------------------------- devices


def device_enabled(target: Any) -> bool:
    """Whether code for a target can be built and run here: ``"llvm"`` alone."""
    kind = target.get("kind", "") if isinstance(target, dict) else getattr(target, "kind", None) or str(target)
    return str(getattr(kind, "name", kind)).partition(" ")[0] == "llvm"


def enabled_targets() -> list[tuple[str, Any]]:
    """Targets that code can be built for, each with its device."""
    return [("llvm", cpu(0))]


def run_with_gpu_lock(func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """``func(*args, **kwargs)``: without GPUs there is nothing to lock."""
    return func(*args, **kwargs)


def strtobool(value: str) -> bool:
    """``"1"``, ``"true"``, ``"yes"``, ``"on"``, ``"y"``, ``"t"`` and their opposites; else ``ValueError``."""
    text = value.lower()
    if text in ("y", "yes", "t", "true", "on", "1"):
        return True
    if text in ("n", "no", "f", "false", "off", "0"):
        return False
    raise ValueError(f"expected a truth value such as 'true' or 'no', got {value!r}")


def __getattr__(name: str) -> Any:
    if name == "slow":
        return _pytest().mark.skipif(SKIP_SLOW_TESTS, reason="SKIP_SLOW_TESTS is set")
    if name == "skip_if_wheel_test":
        return _pytest().mark.skipif(False, reason="")
    raise AttributeError(f"tvm.testing has no name {name!r}")
