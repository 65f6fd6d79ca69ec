"""Tensor, ShapeTuple, devices, and the table of packed functions."""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import pytest

import supple
from supple.error import RegistryError
from supple.runtime import Device, ShapeTuple, Tensor, empty, from_dlpack, tensor


def test_tensor_wraps_without_copies():
    x = np.arange(6, dtype="f4").reshape(2, 3)
    t = from_dlpack(x)
    assert t.shape == (2, 3)
    assert t.dtype == "float32"
    assert (t.ndim, t.size, len(t)) == (2, 6, 2)
    assert np.shares_memory(np.asarray(t), x)
    assert np.shares_memory(np.from_dlpack(t), x)
    assert t.__dlpack_device__() == (1, 0)
    copy = t.numpy()
    copy[0] = 9
    assert x[0, 0] == 0
    assert np.asarray(t, dtype="f8").dtype == np.float64
    assert "float32" in repr(t)


def test_tensor_makes_and_fills():
    t = tensor([[1, 2], [3, 4]], dtype="int64")
    assert t.dtype == "int64"
    assert tensor([1.5]).dtype == "float32"
    assert tensor(np.ones(2)).dtype == "float64"
    e = empty((2, 2), "int64")
    assert e.copyfrom(t) is e
    np.testing.assert_array_equal(np.asarray(e), [[1, 2], [3, 4]])
    with pytest.raises(ValueError, match="shape"):
        e.copyfrom(np.zeros(3, "i8"))
    with pytest.raises(TypeError, match="dtype"):
        e.copyfrom(np.zeros((2, 2), "i4"))
    assert tensor(5).item() == 5
    with pytest.raises(TypeError):
        Tensor([1, 2])
    with pytest.raises(TypeError):
        Tensor(np.array(["a"]))
    with pytest.raises((MemoryError, ValueError)):
        empty((2**40, 2**40))


def test_memory_outlives_the_handle():
    t = tensor(np.arange(1000))
    array = np.asarray(t)
    del t
    gc.collect()
    assert array.sum() == 499500


def test_devices_and_shapes():
    assert supple.cpu() == supple.cpu(0) == Device(1, 0)
    assert str(supple.cpu()) == "cpu:0" and repr(supple.device("cuda:1")) == "device(type='cuda', index=1)"
    assert supple.device("cuda", 1) == supple.device("cuda:1") and not supple.device("cuda").exist
    with pytest.raises(NotImplementedError, match="cuda:0 is not supported"):
        tensor([1.0], supple.device("cuda"))
    with pytest.raises(NotImplementedError, match="cpu:1 is not supported"):
        supple.runtime.empty((3,), "float32", supple.cpu(1))
    with pytest.raises(ValueError, match="'gpu' is unknown"):
        supple.device("gpu")
    np.testing.assert_array_equal(tensor([1.0], supple.cpu()).numpy(), [1.0])
    assert ShapeTuple([np.int64(2), 3]) == (2, 3)
    assert repr(ShapeTuple((1,))) == "ShapeTuple([1])"
    with pytest.raises((TypeError, AttributeError)):
        ShapeTuple([1.5])


def test_global_functions():
    name = "test.global_functions"

    @supple.register_global_func(name)
    def first(x):
        return x

    try:
        assert supple.get_global_func(name) is first
        with pytest.raises(RegistryError, match="registered already"):
            supple.register_global_func(name, len)
        supple.register_global_func(name, len, override=True)
        assert supple.get_global_func(name) is len
        with pytest.raises(RegistryError, match=r"did you mean 'test.global_functions'"):
            supple.get_global_func("test.global_function")
        assert supple.get_global_func("test.nothing", allow_missing=True) is None
        with pytest.raises(TypeError):
            supple.register_global_func("test.bad", 5)
    finally:
        supple.remove_global_func(name)
    with pytest.raises(RegistryError):
        supple.remove_global_func(name)


def test_importing_supple_loads_nothing_heavy():
    code = "import sys, supple; assert 'numpy' not in sys.modules and 'llvmlite' not in sys.modules; supple.cpu()"
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="nothing"):
        supple.nothing
