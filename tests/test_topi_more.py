"""``supple.topi``: further convolutions, borders, blocks, slices and diagonals, against numpy and each other."""

from __future__ import annotations

import numpy as np
import pytest
from test_topi import check, values

from supple import te, topi

rng = np.random.default_rng(3)
IMAGE = rng.integers(-4, 5, (2, 4, 5, 6)).astype("float32")
LAST = np.ascontiguousarray(IMAGE.transpose(0, 2, 3, 1))
KERNEL = rng.integers(-4, 5, (6, 4, 3, 3)).astype("float32")
nn = topi.nn


def test_layouts_of_convolutions_agree() -> None:
    (plain,) = values(lambda x, k: nn.conv2d_nchw(x, k, 1, 1, 1), IMAGE, KERNEL)
    hwio = np.ascontiguousarray(KERNEL.transpose(2, 3, 1, 0))
    hwcn = np.ascontiguousarray(IMAGE.transpose(2, 3, 1, 0))
    check(lambda x, k: nn.conv2d_hwcn(x, k, 1, 1, 1), (hwcn, hwio), plain.transpose(2, 3, 1, 0))
    check(lambda x, k: nn.group_conv2d_nhwc(x, k, 1, 1, 1, 1), (LAST, hwio), plain.transpose(0, 2, 3, 1))
    line, taps = IMAGE[:, :, 0], KERNEL[:, :, 0]
    (row,) = values(lambda x, k: nn.conv1d_ncw(x, k, 2, "VALID"), line, taps)
    turned = (line.transpose(0, 2, 1).copy(), taps.transpose(2, 1, 0).copy())
    check(lambda x, k: nn.conv1d_nwc(x, k, 2, "VALID"), turned, row.transpose(0, 2, 1))


def test_each_channel_alone() -> None:
    kernel = KERNEL[:4, :2]
    parts = []
    for c in range(4):
        of_one = (IMAGE[:, c : c + 1].copy(), kernel[c][:, None].copy())
        parts += values(lambda x, k: nn.conv2d_nchw(x, k, 1, "SAME", 1), *of_one)
    whole = np.concatenate(parts, axis=1)
    check(lambda x, k: nn.depthwise_conv2d_nchw(x, k, 1, "SAME", 1), (IMAGE, kernel.copy()), whole)
    hwoi = np.ascontiguousarray(kernel.transpose(2, 3, 0, 1))
    check(lambda x, k: nn.depthwise_conv2d_nhwc(x, k, 1, "SAME", 1), (LAST, hwoi), whole.transpose(0, 2, 3, 1))


def test_transposed_convolution_spreads_each_element() -> None:
    x, k = IMAGE[:, :, 0], KERNEL[:4, :3, 0]
    wanted = np.zeros((2, 3, 13), "float32")
    for at in range(6):
        wanted[:, :, 2 * at : 2 * at + 3] += np.einsum("nc,cow->now", x[:, :, at], k)
    found = nn.conv1d_transpose_ncw
    check(lambda a, b: found(a, b, (2,), (1, 1), "float32", (1,)), (x, k.copy()), wanted[:, :, 1:13])


@pytest.mark.parametrize(
    ("pad", "mode"),
    [(nn.reflect_pad, "reflect"), (nn.replicate_pad, "edge"), (nn.circular_pad, "wrap"), (nn.mirror_pad, "symmetric")],
)
def test_borders(pad, mode) -> None:  # type: ignore[no-untyped-def]
    x = IMAGE[0, 0]
    check(lambda a: pad(a, [1, 2], [2, 0]), (x,), np.pad(x, ((1, 2), (2, 0)), mode))  # type: ignore[call-overload]


def test_blocks_go_into_the_batch_and_back() -> None:
    x = IMAGE.transpose(0, 2, 3, 1).copy()  # (2, 5, 6, 4)
    (there,) = values(lambda a: nn.space_to_batch_nd(a, [2, 3], [1, 0], [0, 0]), x)
    assert there.shape == (12, 3, 2, 4)
    np.testing.assert_array_equal(there[0, :, :, 0], np.pad(x, ((0, 0), (1, 0), (0, 0), (0, 0)))[0, ::2, ::3, 0])
    check(lambda a: nn.batch_to_space_nd(a, [2, 3], [1, 0], [0, 0]), (there,), x)


def test_slices_and_diagonals() -> None:
    x, v = np.zeros((6, 4), "float32"), np.ones((2, 4), "float32")
    wanted = x.copy()
    wanted[4:0:-2] = v
    check(lambda a, b: topi.strided_set(a, b, [-2], [0], [-2]), (x, v), wanted)
    bounds = [np.array(b, "int32") for b in ([4], [0], [-2])]
    check(topi.strided_set, (x, v, *bounds), wanted)
    grid = np.arange(20, dtype="float32").reshape(5, 4)
    begin, end, step = (np.array(b) for b in ([1, 0], [5, 4], [2, 2]))
    sliced = lambda a, b, e, s: topi.dynamic_strided_slice(a, b, e, s, [2, 2])  # noqa: E731
    check(sliced, (grid, begin, end, step), grid[1:5:2, 0:4:2])
    many = np.arange(1, 10, dtype="float32").reshape(3, 3)  # diagonals 1, 0 and -1, short ones right and left
    square = np.zeros((3, 3), "float32")
    check(lambda a, d: topi.matrix_set_diag(a, d, (-1, 1)), (square, many),
          np.array([[4, 2, 0], [7, 5, 3], [0, 8, 6]], "float32"))  # fmt: skip
    dense = np.full((3, 5), 7, "float32")
    dense[0, 1], dense[2, 4] = 1, 2
    places = np.array([[0, 1], [2, 4]], "int32")
    check(lambda i, a: topi.sparse_to_dense(i, [3, 5], a, 7), (places, np.array([1, 2], "float32")), dense)
    check(lambda a, b: topi.expand_like(a, b, [1]), (x, np.zeros((6, 3, 4), "float32")), np.zeros((6, 3, 4), "float32"))


def test_fixed_point_and_refusals() -> None:
    x = np.array([0, 1, -1, 3, 100, -100, 2**30, -(2**31)], "int32")
    wanted = np.floor(x.astype("f8") * 1395864371 / 2**33 + 0.5).astype("int32")
    check(lambda a: topi.fixed_point_multiply(a, 1395864371, -2), (x,), wanted)
    a = te.placeholder((2, 3), "float32", "a")
    for call in (
        lambda: topi.fixed_point_multiply(a, 1, 40),
        lambda: topi.strided_set(a, a, [0], [1], [0]),
        lambda: topi.expand_like(a, a, [0]),
        lambda: topi.matrix_set_diag(a, a, 0, "MIDDLE"),
        lambda: nn.mirror_pad(a, [1, 1], None, "ODD"),
        lambda: nn.reflect_pad(a, [1]),
        lambda: nn.depthwise_conv2d_nhwc(a, a, 1, 0, 1, "HWIO"),
        lambda: topi.image.resize1d(a, None, [3], "CW"),
    ):
        with pytest.raises(ValueError):
            call()
