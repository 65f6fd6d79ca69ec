"""Layouts with split axes: values as in the plain layout, in blocks; blocks of one are blocks as well."""

from __future__ import annotations

import numpy as np
import pytest

import supple
from supple import relax, tirx
from supple.ops.layouts import parse_layout


def in_blocks(text: str, letters: str, data: np.ndarray) -> np.ndarray:
    """An array of the plain layout (``NCW``, ``OIW``) in another."""
    layout = parse_layout("test", text, letters, 1)
    plain = np.transpose(data, [(letters + "W").index(letter) for letter in layout.text])
    return np.ascontiguousarray(layout.split_array(plain))


@pytest.mark.parametrize(
    ("data", "kernel", "out"),
    [
        ("NCW1c", "OIW", "NCW"),
        ("NCW2c", "OIW1o", "NCW4c"),
        ("CNW1c", "IOW1i3o", "WNC1c"),
        ("NCW2c1n", "OWI2i1o", "NCW3c"),
    ],
)
def test_convolution_in_blocks(data: str, kernel: str, out: str) -> None:
    rng = np.random.default_rng(5)
    x, w = (rng.integers(-4, 5, shape).astype("float32") for shape in ((2, 4, 7), (6, 4, 3)))
    expected = np.einsum("ncwk,ock->now", np.lib.stride_tricks.sliding_window_view(x, 3, 2), w)
    arrays = in_blocks(data, "NC", x), in_blocks(kernel, "OI", w)
    sizes = [list(a.shape) for a in arrays]
    if "n" not in data:
        sizes[0][data.index("N")] = tirx.Var("n", "int64")
    params = [relax.Var(name, relax.TensorType(s, "float32")) for name, s in zip("xw", sizes, strict=True)]
    builder = relax.BlockBuilder()
    with builder.function("conv", params):
        builder.emit_func_output(relax.op.nn.conv1d(
            *params, data_layout=data, kernel_layout=kernel, out_layout=out))  # fmt: skip
    with builder.function("pool", params[:1]):
        builder.emit_func_output(relax.op.nn.max_pool1d(params[0], pool_size=2, layout=data, out_layout=out))
    compiled = supple.compile(builder.get(), results="numpy")
    np.testing.assert_array_equal(compiled["conv"](*arrays), in_blocks(out, "NC", expected))
    pooled = np.maximum(x[..., :-1], x[..., 1:])
    np.testing.assert_array_equal(compiled["pool"](arrays[0]), in_blocks(out, "NC", pooled))
