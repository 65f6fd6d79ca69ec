"""The page's programs: four forms of one network agree, natively and interpreted, for every n on one executable."""

from __future__ import annotations

from typing import Any

import mlp
import numpy as np
import pytest
from host_tools import python_frames

import supple
from supple.interp.graph import Interpreter
from supple.ir.module import IRModule

ROWS = (0, 1, 2, 5, 63, 1024, 1025)


def weights(hidden: int) -> list[Any]:
    rng = np.random.default_rng(hidden)
    return [rng.standard_normal(s).astype("float32") * 0.1 for s in ((784, hidden), (hidden,), (hidden, 10), (10,))]


def images(n: int) -> Any:
    return np.random.default_rng(1).standard_normal((1025, 784)).astype("float32")[:n].copy()


FORMS = {"relax_mlp": (mlp.relax_mlp, "relax_mlp", 128), "Module": (mlp.Module, "main", 256)}


@pytest.fixture(scope="module", params=list(FORMS))
def form(request: pytest.FixtureRequest) -> Any:
    program, entry, hidden = FORMS[request.param]
    vm = supple.relax.VirtualMachine(supple.compile(program, target="llvm"), supple.cpu())
    return program, vm, entry, hidden


def test_loops_written_in_numpy_agree_with_numpy() -> None:
    w = weights(128)
    x = images(2)
    np.testing.assert_allclose(mlp.lnumpy_mlp(x, *w), mlp.numpy_mlp(x, *w), rtol=1e-4, atol=1e-4)


def test_one_executable_serves_every_n(form: Any) -> None:
    _, vm, entry, hidden = form
    w = weights(hidden)
    first = None
    for n in ROWS:
        x = images(n)
        actual = vm[entry](x, *w)
        expected = mlp.numpy_mlp(x, *w)
        assert type(actual) is np.ndarray and actual.shape == (n, 10) and actual.dtype == np.float32
        eps = np.finfo("float32").eps
        hidden_bound = np.abs(x) @ np.abs(w[0]) + np.abs(w[1])
        bound = (hidden_bound @ np.abs(w[2]) + np.abs(w[3])) * eps * (784 + hidden)
        assert (np.abs(actual - expected) <= bound).all()
        if n >= 1:
            first = actual[0] if first is None else first
            assert actual[0].tobytes() == first.tobytes(), f"row 0 differs at n = {n}"


def test_the_interpreter_agrees(form: Any) -> None:
    program, vm, entry, hidden = form
    w = weights(hidden)
    for n in (0, 1, 5):
        expected = Interpreter(program).run(entry, images(n), *w)
        np.testing.assert_allclose(vm[entry](images(n), *w), expected, rtol=1e-4, atol=1e-5)


def test_a_bare_function_is_reachable_under_its_name_and_as_main() -> None:
    vm = supple.relax.VirtualMachine(supple.compile(mlp.relax_mlp), supple.cpu())
    x, w = images(3), weights(128)
    np.testing.assert_array_equal(vm["main"](x, *w), vm["relax_mlp"](x, *w))


def test_private_functions_are_not_reachable() -> None:
    vm = supple.relax.VirtualMachine(supple.compile(mlp.Module), supple.cpu())
    with pytest.raises((KeyError, AttributeError, ValueError), match="linear"):
        vm["linear"]


def test_a_call_of_the_wrong_shape_names_function_parameter_expected_and_actual(form: Any) -> None:
    _, vm, entry, hidden = form
    w = weights(hidden)
    with pytest.raises(supple.error.ArgumentError) as caught:
        vm[entry](images(3), w[0][:, :-1].copy(), *w[1:])
    text = str(caught.value)
    assert f"{entry}: parameter w0: expected Tensor((784, {hidden}), float32), got (784, {hidden - 1})" in text


def test_no_python_frame_runs_per_operator() -> None:
    """Adding layers does not change how many Python functions a call enters."""
    counts = []
    for layers in (1, 6):
        body = "\n".join(f"        h = R.nn.relu(R.matmul(h, w) + b + R.const({k}.0))" for k in range(layers))
        func = supple.script.from_source(
            f"""
from supple.script import relax as R

@R.function
def main(x: R.Tensor(("n", 8), "float32"), w: R.Tensor((8, 8), "float32"), b: R.Tensor((8,), "float32")):
    with R.dataflow():
        h = R.nn.relu(x)
{body}
        R.output(h)
    return h
"""
        )
        vm = supple.relax.VirtualMachine(supple.compile(func), supple.cpu())
        args = [np.ones((3, 8), "float32"), np.ones((8, 8), "float32"), np.ones(8, "float32")]
        main = vm["main"]
        main(*args)
        counts.append(python_frames(main, *args))
    assert counts[0] == counts[1], counts


def test_print_and_parse_give_the_same_module(form: Any) -> None:
    from supple.ir.structural import assert_structural_equal

    program = form[0]
    again = supple.script.from_source(program.script())
    assert_structural_equal(program, again)
    assert isinstance(program, IRModule) or again.script() == program.script()
