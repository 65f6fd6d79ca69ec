"""Operators whose result's size only the data says: interpreter, native code and numpy agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import supple
from supple.base.errors import ExecutionError, NotSupportedError
from supple.interp.graph import Interpreter
from supple.ir.module import IRModule
from supple.passes.legalize import legalize
from supple.script import from_source

_HEADER = "from supple.script import ir as I, relax as R, tirx as T\n"


def module(params: str, body: str) -> IRModule:
    text = f"{_HEADER}@I.ir_module\nclass M:\n    @R.function\n    def main({params}):\n"
    text += "".join(f"        {line}\n" for line in body.splitlines())
    made = from_source(text)
    assert isinstance(made, IRModule)
    return made


def flat(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, (tuple, list)) or (hasattr(value, "__len__") and not hasattr(value, "__dlpack__")):
        return [part for v in value for part in flat(v)]
    return [np.asarray(value)]


def run_all(mod: IRModule, *args: Any) -> list[Any]:
    """The results of native code, checked against the interpreter before and after legalisation."""
    expected = flat(Interpreter(mod).run("main", *args))
    legal = flat(Interpreter(legalize(mod)).run("main", *args))
    vm = supple.relax.VirtualMachine(supple.compile(mod, target="llvm"), supple.cpu())
    native = flat(vm["main"](*args))
    for actual in (legal, native):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert a.dtype == e.dtype
            np.testing.assert_array_equal(a, e)
    return native


NAN = float("nan")


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(
    "x",
    [
        np.array([[0, 1, 0], [2, 0, NAN]], "float32"),
        np.zeros((2, 3), "float32"),
        np.zeros((0, 4), "float32"),
        np.array([True, False, True]),
        np.arange(-3, 4, dtype="int8"),
    ],
)
def test_nonzero(x: Any, symbolic: bool) -> None:
    dims = ", ".join(f'"n{d}"' if symbolic else str(s) for d, s in enumerate(x.shape))
    mod = module(f'x: R.Tensor(({dims},), "{x.dtype}")', "return R.nonzero(x)")
    (found,) = run_all(mod, x)
    np.testing.assert_array_equal(found, np.stack(np.nonzero(x)))


def test_nonzero_of_a_number_has_no_rows() -> None:
    mod = module('x: R.Tensor((), "float32")', "return R.nonzero(x)")
    assert run_all(mod, np.array(2.0, "float32"))[0].shape == (0, 1)
    assert run_all(mod, np.array(0.0, "float32"))[0].shape == (0, 0)


def test_the_result_is_used_with_a_name_for_its_size() -> None:
    mod = module(
        'x: R.Tensor(("n",), "float32")',
        'k = T.int64()\np = R.nonzero(x)\nq = R.match_cast(p, R.Tensor((1, k), "int64"))\n'
        "i = R.squeeze(q, 0)\nreturn R.take(x, i, axis=0)",
    )
    x = np.array([0, 3, 0, -1, 5], "float32")
    np.testing.assert_array_equal(run_all(mod, x)[0], [3, -1, 5])


UNIQUE = [
    np.array([3, 1, 3, 2, 1], "int64"),
    np.array([[1, 0, 1], [NAN, 0, NAN], [-np.inf, 0.5, 1]], "float32"),
    np.zeros((0,), "float32"),
    np.array([[2, 1], [2, 1], [1, 9]], "int32"),
]


@pytest.mark.parametrize("x", UNIQUE)
def test_unique_elements(x: Any) -> None:
    dims = ", ".join(f'"n{d}"' for d in range(x.ndim))
    options = "return_index=True, return_inverse=True, return_counts=True"
    mod = module(f'x: R.Tensor(({dims},), "{x.dtype}")', f"return R.unique(x, {options})")
    found = run_all(mod, x)
    expected = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    for a, e in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, np.reshape(e, -1))
    alone = module(f'x: R.Tensor({x.shape}, "{x.dtype}")', "return R.unique(x)")
    np.testing.assert_array_equal(run_all(alone, x)[0], expected[0])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unique_slices(axis: int) -> None:
    x = np.array([[[2, 1], [2, 1], [1, 9]], [[2, 1], [2, 1], [0, 9]], [[2, 1], [2, 1], [1, 9]]], "int32")
    mod = module(
        'x: R.Tensor(("a", "b", "c"), "int32")',
        f"return R.unique(x, return_index=True, return_inverse=True, return_counts=True, axis={axis})",
    )
    found = run_all(mod, x)
    expected = np.unique(x, True, True, True, axis=axis)
    for a, e in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, e if a.ndim > 1 else np.reshape(e, -1))


@pytest.mark.parametrize(
    ("begin", "end", "strides"),
    [
        ((1, 0), (4, 6), (1, 2)),
        ((-3, 100), (-1, -100), (1, -2)),
        ((3, 5), (3, 2), (1, -1)),
        ((-100, -1), (100, 0), (3, -4)),
        ((4, 2), (0, 1), (-1, 1)),
    ],
)
def test_dynamic_strided_slice(begin: Any, end: Any, strides: Any) -> None:
    mod = module(
        'x: R.Tensor(("n", 6), "float32"), b: R.Tensor((2,), "int64"), e: R.Tensor((2,), "int64"), '
        's: R.Tensor((2,), "int64")',
        "return R.dynamic_strided_slice(x, b, e, s)",
    )
    x = np.arange(30, dtype="float32").reshape(5, 6)
    found = run_all(mod, x, *(np.array(v, "int64") for v in (begin, end, strides)))[0]
    key = tuple(
        slice(b, None if s < 0 and e + (extent if e < 0 else 0) < 0 else e, s)
        for b, e, s, extent in zip(begin, end, strides, x.shape, strict=True)
    )
    np.testing.assert_array_equal(found, x[key])


def test_a_stride_of_zero_is_an_error_at_run_time() -> None:
    mod = module(
        'x: R.Tensor((5,), "float32"), b: R.Tensor((1,), "int64")', "return R.dynamic_strided_slice(x, b, b, b)"
    )
    vm = supple.relax.VirtualMachine(supple.compile(mod, target="llvm"), supple.cpu())
    zero = np.zeros((1,), "int64")
    with pytest.raises(supple.error.SuppleError, match="a stride is 0"):
        vm["main"](np.zeros(5, "float32"), zero)
    with pytest.raises(supple.error.SuppleError, match="stride is 0"):
        Interpreter(mod).run("main", np.zeros(5, "float32"), zero)


def test_operators_take_results_whose_size_has_no_name() -> None:
    mod = module(
        'x: R.Tensor(("n", "m"), "float32"), t: R.Tensor((4, 3), "float32")',
        "p = R.nonzero(x)\nq = R.permute_dims(p)\nr = R.unique(q, axis=0)\ns = R.nonzero(R.sum(r, axis=1))\n"
        "return (q, R.add(r, r), s, R.take(t, R.unique(p), axis=0))",
    )
    x = np.array([[0, 1, 0], [2, 0, 0], [0, 3, 4]], "float32")
    q, r, s, _ = run_all(mod, x, np.arange(12, dtype="float32").reshape(4, 3))
    np.testing.assert_array_equal(q, np.stack(np.nonzero(x)).T)
    assert r.shape == (4, 2) and s.shape == (1, 4)


def test_an_operand_of_unknown_rank_is_refused_by_name() -> None:
    mod = module('x: R.Tensor(dtype="float32")', "return R.nonzero(x)")
    with pytest.raises(NotSupportedError, match=r"relax\.nonzero"):
        legalize(mod)


def test_calls_of_one_kind_share_a_function() -> None:
    mod = module('x: R.Tensor((4,), "int32"), y: R.Tensor((4,), "int32")', "return (R.nonzero(x), R.nonzero(y))")
    names = [v.name_hint for v in legalize(mod).functions]
    assert len([n for n in names if n.startswith("nonzero_dynamic")]) == 1
    x, y = np.array([1, 0, 0, 2], "int32"), np.array([0, 0, 0, 2], "int32")
    assert [r.shape for r in run_all(mod, x, y)] == [(1, 2), (1, 1)]


@pytest.mark.parametrize("stride", [2**63 - 1, 2**63 - 4, 2**63 - 5, 5, 4, -4, -5, 1 - 2**63, -(2**63)])
@pytest.mark.parametrize(("begin", "end"), [(0, 5), (2**63 - 1, -(2**63)), (-(2**63), 2**63 - 1), (5, 0), (3, 3)])
def test_slices_at_the_edge_of_64_bits(begin: int, end: int, stride: int) -> None:
    params = 'x: R.Tensor(("n",), "float32"), b: R.Tensor((1,), "int64"), e: R.Tensor((1,), "int64"), '
    mod = module(params + 's: R.Tensor((1,), "int64")', "return R.dynamic_strided_slice(x, b, e, s)")
    for n in (0, 1, 5):
        x = np.arange(n, dtype="f4")
        (found,) = run_all(mod, x, *(np.array([v], "int64") for v in (begin, end, stride)))
        np.testing.assert_array_equal(found, x[begin:end:stride])


@pytest.mark.parametrize(("shape", "axis"), [((0,), 0), ((0,), -1), ((2, 0), 1), ((0, 3), 1), ((2, 0), 0)])
def test_unique_of_nothing(shape: tuple[int, ...], axis: int) -> None:
    mod = module(f'x: R.Tensor({shape}, "float32")', f"return R.unique(x, axis={axis})")
    run_all(mod, np.zeros(shape, "f4"))


@pytest.mark.parametrize("target", [-1, 5, 2**40])
def test_a_target_that_is_no_class_is_refused(target: int) -> None:
    mod = module('p: R.Tensor((2, 5), "float32"), t: R.Tensor((2,), "int64")', "return R.nn.nll_loss(p, t)")
    args = np.zeros((2, 5), "f4"), np.array([0, target], "int64")
    with pytest.raises(ExecutionError, match="out of bounds"):
        Interpreter(mod).run("main", *args)
    vm = supple.relax.VirtualMachine(supple.compile(mod, target="llvm"), supple.cpu())
    with pytest.raises(ExecutionError, match="out of bounds"):
        vm["main"](*args)
