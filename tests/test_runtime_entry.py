"""The fast entry: numpy arrays in and out without running Python; all else goes the long way, with one meaning."""

from __future__ import annotations

import gc
import sys
import threading
from typing import Any

import numpy as np
import pytest
from host_tools import python_frames

import supple
from supple.base.errors import ArgumentError
from supple.runtime.executable import CompiledFunction
from supple.runtime.native import live_objects, runtime
from supple.runtime.virtual_machine import VirtualMachine
from supple.script import from_source


def compiled(body: str, params: str = 'x: R.Tensor(("n", 3), "float32"), y: R.Tensor(("n", 3), "float32")') -> Any:
    text = f"from supple.script import relax as R\n\n@R.function(pure=False)\ndef main({params}):\n{body}\n"
    return VirtualMachine(supple.compile(from_source(text)), supple.cpu())["main"]


X = np.arange(6, dtype="float32").reshape(2, 3)
Y = np.ones((2, 3), "float32")


def test_a_call_on_plain_arrays_runs_no_python() -> None:
    main = compiled("    return R.add(x, y)")
    np.testing.assert_array_equal(main(X, Y), X + 1)
    assert python_frames(main, X, Y) == 0
    assert python_frames(main, X[::-1], Y) > 0  # a view that is not compact is copied, in Python
    np.testing.assert_array_equal(main(X[::-1], Y), X[::-1] + 1)


def test_both_ways_agree_and_refuse_alike() -> None:
    main = compiled("    return R.add(x, y)")
    cases: list[tuple[Any, ...]] = [
        (X, Y),
        (X[:0], Y[:0]),
        (X,),
        (X, Y, Y),
        (X, Y[:1]),
        (X.astype("float64"), Y),
        (X.astype(">f4"), Y),
        (X[0], Y),
        ([1.0], Y),
        (None, Y),
        (np.broadcast_to(np.float32(1), (2, 3)), Y),
        (X.T.copy().T, Y),
        (np.ma.masked_array(X), Y),
    ]
    for args in cases:
        outcomes = []
        for call in (main, lambda *a: CompiledFunction.__call__(main, *a)):
            try:
                outcomes.append(np.asarray(call(*args)).tolist())
            except ArgumentError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1], args


def test_results_own_their_memory() -> None:
    main = compiled("    return R.add(x, y)")
    main(X, Y)
    gc.collect()  # what earlier tests left
    before = live_objects()
    results = [main(X, Y) for _ in range(50)]
    assert live_objects() == before + 50
    results[0][0, 0] = 99  # results can be written, and do not share memory
    del main
    gc.collect()
    np.testing.assert_array_equal(results[1], X + 1)
    view = results[2][1:]
    del results
    gc.collect()
    np.testing.assert_array_equal(view, X[1:] + 1)
    assert live_objects() == before + 1
    del view
    assert live_objects() == before


def test_a_returned_argument_is_the_caller_s_object() -> None:
    main = compiled("    return y")
    count = sys.getrefcount(Y)
    for _ in range(10):
        assert main(X, Y) is Y
    assert sys.getrefcount(Y) == count


def test_a_tuple_of_tensors_runs_no_python() -> None:
    main = compiled('    z = R.add(x, y)\n    return (z, y, R.astype(x, "float16"), z, R.sum(y))')
    main(X, Y)
    gc.collect()  # what earlier tests left
    before, count, types = live_objects(), sys.getrefcount(Y), sys.getrefcount(np.dtype("float16"))
    assert python_frames(main, X, Y) == 0
    for call in (main, lambda *a: CompiledFunction.__call__(main, *a)):
        results = [call(X, Y) for _ in range(20)]
        gc.collect()
        assert sys.getrefcount(Y) == count + 20
        first = results[7]
        assert type(first) is tuple and first[1] is Y and first[4].shape == ()
        assert [v.dtype.name for v in first] == ["float32", "float32", "float16", "float32", "float32"]
        for got, expected in zip(first, (X + 1, Y, X, X + 1, 6), strict=True):
            np.testing.assert_array_equal(got, expected)
        kept = first[3]
        del results, first, got
        np.testing.assert_array_equal(kept, X + 1)
        del kept
        gc.collect()
        assert live_objects() == before and sys.getrefcount(Y) == count
    assert abs(sys.getrefcount(np.dtype("float16")) - types) < 20


@pytest.mark.parametrize("fields", ["(R.shape_of(x), y)", "((x,), y)", "(R.reshape(x, (-1,)), y)", "()"])
def test_other_tuples_go_through_python(fields: str) -> None:
    main = compiled(f"    z = {fields}\n    return z")
    gc.collect()
    before = live_objects()
    for _ in range(3):
        result = main(X, Y)
        assert str(result) == str(CompiledFunction.__call__(main, X, Y))
    del result
    gc.collect()
    assert live_objects() == before


def test_a_view_of_an_argument_keeps_it_alive() -> None:
    main = compiled("    z = R.reshape(x, (-1,))\n    return z")
    gc.collect()  # what earlier tests left
    before = live_objects()
    for _ in range(3):
        z = main(X.copy(), Y)
        gc.collect()
        np.testing.assert_array_equal(z, X.ravel())
    del z
    gc.collect()
    assert live_objects() == before


def test_nothing_is_entered_during_a_callback() -> None:
    inner = compiled("    return R.add(x, y)")
    seen: list[int] = []

    @supple.register_global_func("test.entry.inner", override=True)
    def call_inner(x: Any) -> Any:
        seen.append(runtime().callbacks_active.value)
        return inner(x.numpy(), Y)

    outer = compiled(
        '    z = R.call_packed("test.entry.inner", x, ty_args=R.Tensor(("n", 3), "float32"))\n    return z'
    )
    np.testing.assert_array_equal(outer(X, Y), X + 1)
    assert seen == [1] and runtime().callbacks_active.value == 0


def test_an_error_inside_is_raised_once_with_its_message() -> None:
    main = compiled('    z = R.match_cast(x, R.Tensor((5, 3), "float32"))\n    return R.add(z, z)')
    with pytest.raises(supple.error.ExecutionError, match="dimension 0 = 2"):
        main(X, Y)
    np.testing.assert_array_equal(main(np.ones((5, 3), "float32"), np.ones((5, 3), "float32")), np.full((5, 3), 2))


def test_threads_call_one_function() -> None:
    main = compiled("    z = R.add(x, y)\n    w = R.multiply(z, z)\n    return w")
    failures: list[str] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(300):
            n = int(rng.integers(0, 40))
            a, b = (rng.standard_normal((n, 3)).astype("float32") for _ in range(2))
            if not np.array_equal(main(a, b), (a + b) * (a + b)):
                failures.append(f"n = {n}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_arguments_can_be_given_by_name() -> None:
    main = compiled("    return R.subtract(x, y)")
    expected = X - Y
    np.testing.assert_array_equal(main(X, y=Y), expected)
    np.testing.assert_array_equal(main(y=Y, x=X), expected)
    np.testing.assert_array_equal(main(y=Y[::-1], x=X), expected)  # one that must be converted
    objects = live_objects()
    for args, named, message in (
        ((X,), {"z": Y}, "no parameter 'z'"),
        ((X,), {"x": Y}, "by position and by name"),
        ((), {"y": Y}, "no argument for x"),
        ((X, Y, Y), {"x": Y}, "expected 2 arguments"),
    ):
        with pytest.raises(ArgumentError, match=message):
            main(*args, **named)
    gc.collect()
    assert live_objects() == objects
