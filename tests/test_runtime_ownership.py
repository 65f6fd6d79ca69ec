"""Who owns what: results outlive the executable, inputs come back as themselves, nothing leaks."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from host_tools import build, machine, op, sym, tensor

import supple
from supple.ir.expr import Var
from supple.ir.graph import Tuple, constant
from supple.runtime import native


def settle() -> tuple[int, int]:
    gc.collect()
    return native.live_objects(), native.live_arenas()


def everything():
    """``(x, x, reshape(x), const, y)`` with ``y = x + x``."""
    n = sym("n")
    data = np.arange(6, dtype="f4").reshape(2, 3)

    def body(bb, x):
        y = bb.emit(op("add", x, x))
        flat = bb.emit(op("reshape", x, (-1,)))
        return bb.emit(Tuple((x, x, flat, constant(data), y)))

    return build([Var("x", tensor(n, 4))], body)


def test_results_survive_later_calls_and_the_executable():
    before = settle()
    vm = machine(everything())
    x = np.arange(12, dtype="f4").reshape(3, 4)
    first = vm["main"](x)
    saved = [np.array(v) for v in first]
    second = vm["main"](np.zeros((5, 4), "f4"))
    assert first[0] is x
    assert first[1] is x
    assert np.shares_memory(first[2], x)
    assert first[2].shape == (12,)
    first[3][...] += 1  # a constant comes as a copy
    second = vm["main"](np.zeros((5, 4), "f4"))
    np.testing.assert_array_equal(second[3], np.arange(6, dtype="f4").reshape(2, 3))
    first[3][...] -= 1
    reference = weakref.ref(vm.module)
    del vm, second
    gc.collect()
    assert reference() is None
    for now, then in zip(first, saved, strict=True):
        np.testing.assert_array_equal(now, then)
    del first, now
    assert settle() == before


def test_a_view_keeps_its_base_alive():
    vm = machine(build([Var("x", tensor(3, 4))], lambda bb, x: bb.emit(op("reshape", x, (12,)))))
    x = np.arange(12, dtype="f4").reshape(3, 4)
    alive = weakref.ref(x)
    flat = vm["main"](x)
    del x
    gc.collect()
    assert alive() is not None
    np.testing.assert_array_equal(flat, np.arange(12))
    del flat
    gc.collect()
    assert alive() is None


def test_a_view_of_a_result_keeps_the_result_alive():
    before = settle()

    def body(bb, x):
        return bb.emit(op("reshape", bb.emit(op("add", x, x)), (12,)))

    vm = machine(build([Var("x", tensor(3, 4))], body))
    flat = vm["main"](np.ones((3, 4), "f4"))
    del vm
    gc.collect()
    assert settle()[0] == before[0] + 1
    np.testing.assert_array_equal(flat, np.full(12, 2))
    del flat
    assert settle() == before


@pytest.mark.parametrize("kept", [False, True])
def test_a_view_of_a_compacted_input(kept):
    """``kept``: the argument itself goes out as well."""

    def body(bb, x):
        flat = bb.emit(op("reshape", x, (6,)))
        return bb.emit(Tuple((flat, Tuple((x,))))) if kept else flat

    vm = machine(build([Var("x", tensor(2, 3))], body))
    for x in (np.arange(6, dtype="f4").reshape(3, 2).T, np.arange(6, dtype="f4").reshape(2, 3)[:, ::-1]):
        found = vm["main"](x)
        flat = found[0] if kept else found
        blocks = [np.full(6, 9, "f4") for _ in range(50)]  # whoever freed the copy would see these
        np.testing.assert_array_equal(flat, x.reshape(-1))
        assert len(blocks) == 50


def test_read_only_inputs_give_read_only_views():
    vm = machine(build([Var("x", tensor(2, 3))], lambda bb, x: bb.emit(op("reshape", x, (6,)))))
    x = np.ones((2, 3), "f4")
    x.flags.writeable = False
    assert not vm["main"](x).flags.writeable
    assert vm["main"](np.ones((2, 3), "f4")).flags.writeable


def test_failing_calls_leak_nothing():
    name = "test.ownership.fail"

    @supple.register_global_func(name, override=True)
    def fail(x):
        raise ZeroDivisionError("from Python")

    n = sym("n")

    def body(bb, x):
        a = bb.emit(op("add", x, x))
        t = bb.emit(Tuple((a, x)))
        bb.emit(supple.ops.calls.call_packed(name, t, ty_args=tensor(n)))
        return a

    vm = machine(build([Var("x", tensor(n))], body, pure=False))
    before = settle()
    for _ in range(10):
        with pytest.raises(ZeroDivisionError):
            vm["main"](np.ones(3, "f4"))
    assert settle() == before
    supple.remove_global_func(name)


def test_results_are_aligned_and_writable():
    vm = machine(build([Var("x", tensor(3))], lambda bb, x: bb.emit(op("add", x, x))))
    for _ in range(5):
        out = vm["main"](np.ones(3, "f4"))
        assert out.ctypes.data % 64 == 0
        assert out.flags.writeable
        assert out.flags.c_contiguous


def test_arenas_are_kept_trimmed_and_bounded():
    n = sym("n")

    def body(bb, x):
        return bb.emit(op("nn.relu", bb.emit(op("add", x, x))))

    f = machine(build([Var("x", tensor(n))], body))["main"]
    native.trim()
    f(np.ones(1000, "f4"))
    assert native.trim() == 1
    f(np.ones(1 << 22, "f4"))
    for _ in range(200):
        f(np.ones(10, "f4"))
    assert native.trim() == 1  # the large one was given up, the small one stayed
    assert native.live_arenas() == 0


def test_an_argument_changed_in_place_is_seen():
    vm = machine(build([Var("x", tensor(3))], lambda bb, x: bb.emit(op("add", x, x))))
    x = np.ones(3, "f4")
    vm["main"](x)
    x[:] = 5
    np.testing.assert_array_equal(vm["main"](x), [10, 10, 10])


def test_large_results_lie_in_blocks_that_are_kept():
    f = machine(build([Var("x", tensor(sym("n")))], lambda bb, x: bb.emit(op("add", x, x))))["main"]
    native.trim()
    before = settle()
    x = np.arange(1 << 18, dtype="f4")
    first, second = f(x), f(x)
    places = {first.ctypes.data, second.ctypes.data}
    assert len(places) == 2 and all(place % 64 == 0 for place in places)
    np.testing.assert_array_equal(first, x + x)
    view = second[1000:]
    del first, second
    third = f(x[: (1 << 18) - 1000] + 1)  # about as large; the view keeps the other block
    assert third.ctypes.data in places
    assert not np.shares_memory(third, view)
    np.testing.assert_array_equal(view, (x + x)[1000:])
    small = f(x[: 1 << 16])  # a quarter: the block would be wasted on it
    assert small.ctypes.data not in places
    del third, view, small
    assert settle() == before
    assert native.trim() == 3
