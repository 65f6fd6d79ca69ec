"""Vision and image operators: values worked out by hand or known from other implementations, native and interpreted,
and what they refuse."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from test_ops_dynamic import flat, module, run_all

import supple
from supple.base import dtypes
from supple.base.errors import DiagnosticError, SuppleError
from supple.interp.graph import Interpreter

BOXES = np.array([[[0, 0.9, 0, 0, 2, 1], [0, 0.8, 0, 0, 1, 1], [0, 0.7, 1, 0, 2, 1], [1, 0.6, 0, 0, 2, 1]]], "float32")
IDS = np.array([[5, 6, 7, 8]], "int32")
PARAMS = 'b: R.Tensor(("n", 4, 6), "float32"), v: R.Tensor(("n",), "int32"), i: R.Tensor(("n", 4), "int32")'


def suppressed(options: str, count: int = 4, native: bool = False) -> list[Any]:
    mod = module(PARAMS, f"return R.vision.non_max_suppression(b, v, i, {options})")
    args = BOXES, np.array([count], "int32"), IDS
    return run_all(mod, *args) if native else flat(Interpreter(mod).run("main", *args))


def test_boxes_that_overlap_by_the_threshold_go() -> None:
    indices, count = suppressed("iou_threshold=0.5", native=True)  # both halves overlap the whole by exactly 0.5
    assert indices.tolist() == [[5, 8, -1, -1]] and count.tolist() == [[2]]
    assert suppressed("iou_threshold=0.51")[0].tolist() == [[5, 6, 7, 8]]
    assert suppressed("force_suppress=True")[0].tolist() == [[5, -1, -1, -1]]
    assert suppressed("iou_threshold=0.9, max_output_size=2")[0].tolist() == [[5, 6, -1, -1]]
    assert suppressed("iou_threshold=0.9, top_k=3")[0].tolist() == [[5, 6, 7, -1]]
    assert suppressed("iou_threshold=0.9", count=0)[1].tolist() == [[0]]


def test_rows_of_what_went_stay_or_move_to_the_end() -> None:
    (rows,) = suppressed("iou_threshold=0.5, return_indices=False")
    assert rows[0, :, 1].tolist() == pytest.approx([0.9, -1, -1, 0.6])
    (rows,) = suppressed("iou_threshold=0.5, return_indices=False, invalid_to_bottom=True")
    assert rows[0, :, 1].tolist() == pytest.approx([0.9, 0.6, -1, -1])


def test_scores_fall_by_overlap() -> None:
    rows, indices, count = suppressed("iou_threshold=0.9, soft_nms_sigma=0.5, score_threshold=0.55", native=True)
    assert rows[0, :, 1].tolist() == pytest.approx([0.9, 0.8 * np.exp(-0.25), 0.6, -1])
    assert indices.tolist() == [[5, 6, 8, -1]] and count.tolist() == [[3]]


def test_each_class_has_its_own_suppression() -> None:
    boxes = [[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11], [0, 10.1, 1, 11.1], [0, 100, 1, 101]]
    scores = [[0.9, 0.75, 0.6, 0.95, 0.5, 0.3], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]]
    params = 'b: R.Tensor((1, 6, 4), "float32"), s: R.Tensor((1, 2, 6), "float32")'
    limits = "R.const({}, 'int64'), R.const(0.5, 'float32'), R.const({}, 'float32')"
    call = f"R.vision.all_class_non_max_suppression(b, s, {limits}{{}})"
    args = np.array([boxes], "float32"), np.array([scores], "float32")
    rows, number = run_all(module(params, "return " + call.format(3, 0.0, "")), *args)
    assert number.tolist() == [6]
    assert rows[:6].tolist() == [[0, 0, 3], [0, 0, 0], [0, 0, 5], [0, 1, 5], [0, 1, 4], [0, 1, 2]]
    assert (rows[6:] == -1).all() and rows.shape == (12, 3)
    mod = module(params, "return " + call.format(2, 0.4, ', output_format="tensorflow"'))
    places, values, number = run_all(mod, *args)
    assert number.tolist() == [4] and places[0, :4].tolist() == [[0, 3], [0, 0], [1, 5], [1, 4]]
    assert values[0, :5].tolist() == pytest.approx([0.95, 0.9, 0.6, 0.5, 0.0])


def test_boxes_of_anchors() -> None:
    scores = np.array([[[0.1, 0.2], [0.8, 0.1], [0.1, 0.7]]], "float32")
    moves = np.array([[0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]], "float32")
    anchors = np.array([[[0.1, 0.1, 0.3, 0.4], [0, 0, 0.5, 0.5]]], "float32")
    params = 'c: R.Tensor((1, 3, 2), "float32"), l: R.Tensor((1, 8), "float32"), a: R.Tensor((1, 2, 4), "float32")'
    mod = module(params, "return R.vision.multibox_transform_loc(c, l, a, threshold=0.3, keep_background=False)")
    legal = supple.relax.VirtualMachine(supple.compile(mod, target="llvm"), supple.cpu())["main"](
        scores, moves, anchors
    )
    boxes, kept = (np.asarray(r) for r in legal)
    expected = [[0.07752116, 0.07785971, 0.48247886, 0.32214028], [-0.00343817, -0.00552973, 1.0034382, 0.90552974]]
    np.testing.assert_allclose(boxes[0], expected, rtol=1e-5)
    np.testing.assert_allclose(kept[0], [[0, 0], [0.50171316, 0], [0, 0.46396342]], rtol=1e-5)


def test_regions_of_images() -> None:
    image = np.arange(16, dtype="float32").reshape(1, 1, 4, 4)
    params = 'x: R.Tensor(("n", 1, "h", "w"), "float32"), r: R.Tensor(("k", 5), "float32")'
    regions = np.array([[0, 0, 0, 2, 2], [0, 1, 1, 3, 3]], "float32")
    align = "R.vision.roi_align(x, r, pooled_size=(2, 2), spatial_scale=1.0, sample_ratio=1)"
    (found,) = run_all(module(params, f"return {align}"), image, regions)
    assert found[0, 0].tolist() == [[2.5, 3.5], [6.5, 7.5]] and found[1, 0].tolist() == [[7.5, 8.5], [11.5, 12.5]]
    pool = "R.vision.roi_pool(x, r, pooled_size=(1, 2), spatial_scale=1.0)"
    (found,) = run_all(module(params, f"return {pool}"), image, regions)
    assert found[:, 0, 0].tolist() == [[9, 10], [14, 15]]
    vm = supple.relax.VirtualMachine(supple.compile(module(params, f"return {pool}"), target="llvm"), supple.cpu())
    with pytest.raises(SuppleError):
        vm["main"](image, np.array([[7, 0, 0, 2, 2]], "float32"))  # there is no image 7


def test_valid_boxes_move_to_the_front() -> None:
    data = np.array([[[0, 0.2, 1], [0, np.nan, 2], [-1, 0.7, 3], [2, 0.7, 4]]], "float32")
    mod = module('b: R.Tensor((1, 4, 3), "float32")', "return R.vision.get_valid_counts(b, 0.2)")
    counts, rows, places = run_all(mod, data)
    assert counts.tolist() == [1] and places.tolist() == [[3, -1, -1, -1]]
    assert rows[0, 0, 2] == 4 and (rows[0, 1:] == -1).all()


# ---------------------------------------------------------------------------------------------------------------- image


def test_sizes_that_are_symbols() -> None:
    mod = module(
        'x: R.Tensor((1, 2, "h", "w"), "float32"), s: R.Shape(["a", "b"])',
        "a = T.int64()\nb = T.int64()\nreturn R.image.resize2d(x, R.shape([a, b * 2]))",
    )
    x = np.arange(24, dtype="float32").reshape(1, 2, 3, 4)
    vm = supple.relax.VirtualMachine(supple.compile(mod, target="llvm"), supple.cpu())
    found = np.asarray(vm["main"](x, (6, 4)))
    assert found.shape == (1, 2, 6, 8)
    np.testing.assert_allclose(found[0, 0, 0, :3], [0.0, 0.25, 0.75])


def test_halves_of_the_nearest_rule() -> None:
    x = np.arange(6, dtype="float32").reshape(1, 1, 6, 1)
    for rule, expected in {"round": [0, 2, 4], "round_prefer_ceil": [1, 3, 5], "floor": [0, 2, 4]}.items():
        call = f'R.image.resize2d(x, (3, 1), method="nearest_neighbor", rounding_method="{rule}")'
        (found,) = run_all(module('x: R.Tensor((1, 1, 6, 1), "float32")', f"return {call}"), x)
        assert found[0, 0, :, 0].tolist() == expected, rule


def test_a_grid_of_the_identity_gives_the_image() -> None:
    x = np.arange(24, dtype="float32").reshape(1, 2, 3, 4)
    theta = np.array([[[1, 0, 0], [0, 1, 0]]], "float32")
    for align in (True, False):
        mod = module(
            'x: R.Tensor((1, 2, 3, 4), "float32"), t: R.Tensor((1, 2, 3), "float32")',
            f"g = R.image.affine_grid(t, (3, 4), align_corners={align})\n"
            f'return R.image.grid_sample(x, g, method="bicubic", padding_mode="border", align_corners={align})',
        )
        vm = supple.relax.VirtualMachine(supple.compile(mod, target="llvm"), supple.cpu())
        np.testing.assert_allclose(np.asarray(vm["main"](x, theta)), x, atol=1e-4)
        np.testing.assert_allclose(Interpreter(mod).run("main", x, theta), x, atol=1e-4)


@pytest.mark.parametrize("method", ["bilinear", "bicubic", "nearest-exact"])
@pytest.mark.parametrize("corners", [True, False])
def test_resize_as_pytorch(method: str, corners: bool) -> None:
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 4)).astype("float32")
    nearest = method.startswith("nearest")
    options = {} if nearest else {"align_corners": corners}
    expected = torch.nn.functional.interpolate(torch.tensor(x), size=(7, 9), mode=method, **options).numpy()
    mode = "align_corners" if corners and not nearest else "half_pixel"
    own = {"bilinear": "linear", "bicubic": "cubic"}.get(method, "nearest_neighbor")
    call = f'R.image.resize2d(x, (7, 9), method="{own}", coordinate_transformation_mode="{mode}", '
    mod = module('x: R.Tensor((1, 2, 5, 4), "float32")', f'return {call}rounding_method="round_prefer_ceil")')
    np.testing.assert_allclose(Interpreter(mod).run("main", x), expected, atol=2e-5)


REFUSED = [
    ('R.image.resize2d(x, (0, 3))', "size must be positive"),
    ('R.image.resize2d(x, (2, 3), layout="NCH")', "unknown layout"),
    ('R.image.resize2d(x, (2, 3), method="lanczos")', "unknown method"),
    ('R.image.resize2d(x, (2, 3), roi=[0.0, 1.0])', "roi needs a start and an end"),
    ('R.image.resize3d(x, (2, 3, 4))', "wrong rank"),
    ('R.image.grid_sample(x, x, method="bicubic", layout="NCDHW")', "bicubic"),
    ('R.image.affine_grid(x, (2, 3))', "batch of matrices"),
    ('R.einsum((x, x), "ijkl")', "one group of subscripts"),
    ('R.einsum((x,), "ij")', "do not fit its rank"),
    ('R.einsum((x,), "ijkl->iim")', "twice"),
    ('R.index_tensor(x, (x,))', "must be integers"),
    ('R.layout_transform(x, index_map=lambda i: i)', "another number of indices"),
    ('R.vision.roi_align(x, x, pooled_size=2, spatial_scale=1.0)', "rois of a wrong rank"),
    ('R.vision.get_valid_counts(x)', "wrong rank"),
    ('R.vision.roi_pool(x, R.zeros((1, 5), "float32"), (2, 2), float("nan"))', "spatial_scale"),
    ('R.vision.roi_align(x, R.zeros((1, 5), "float32"), (2, 2), float("inf"))', "spatial_scale"),
    ('R.vision.roi_align(x, R.zeros((1, 5), "float32"), (2, 2), 1.0, mode="min")', "unknown mode"),
    ('R.vision.get_valid_counts(R.zeros((1, 2, 1), "float32"))', "a row has no element 1"),
    ('R.vision.get_valid_counts(R.zeros((1, 2, 1), "float32"), score_index=-1)', "place is negative"),
    ('R.vision.roi_pool(x, R.zeros((1, 5), "float32"), (2, 0), 1.0)', "pooled_size must be positive"),
    ('R.vision.multibox_transform_loc(R.zeros((1, 2, 1), "float32"), R.zeros((1, 4), "float32"), '
     'R.zeros((1, 1, 4), "float32"), variances=(1.0, 1.0))', "four variances"),
    ('R.gather_nd(x, R.zeros((2, 1), "int64"), batch_dims=-1)', "batch_dims does not fit"),
    ('R.gather_nd(x, R.zeros((2,), "int64"), batch_dims=1)', "batch_dims does not fit"),
    ('R.gather_nd(x, R.zeros((3, 1), "int64"), batch_dims=1)', "differ in batch dimension 0"),
    ('R.split(x, 0)', "at least one section"),
    ('R.split(x, 5, axis=2)', "nothing is left of an extent of 3"),
    ('R.split(x, 2, axis=4)', "axis 4 is out of range"),
    ('R.nn.conv2d_transpose(R.zeros((1, 2, 0, 4), "float32"), R.zeros((2, 3, 3, 3), "float32"), strides=5)',
     "larger than the padded data"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_does_not_fit_is_refused_at_its_line(call: str, message: str) -> None:
    with pytest.raises(DiagnosticError, match=message) as caught:
        module('x: R.Tensor((2, 2, 3, 4), "float32")', f"return {call}")
    assert "return R." in str(caught.value)


def test_a_score_that_is_nan_is_above_every_number() -> None:
    boxes = np.array([[[0, s, 10 * k, 0, 10 * k + 5, 5] for k, s in enumerate((0.5, np.nan, 0.9, np.nan))]], "f4")
    mod = module(
        'b: R.Tensor((1, 4, 6), "float32"), v: R.Tensor((1,), "int32"), i: R.Tensor((1, 4), "int32")',
        "return R.vision.non_max_suppression(b, v, i, 4, 0.5, top_k=3, return_indices=False)",
    )
    run_all(mod, boxes, np.array([4], "int32"), np.array([[0, 1, 2, 3]], "int32"))


FARTHEST = [0, np.nan, np.inf, -np.inf, 2.0**63, -(2.0**63), 1e30, 3.0, 2.0**40, -1e19]


def test_regions_at_places_that_no_image_has() -> None:
    dtype = "float32"
    x = np.arange(80, dtype=dtype).reshape(2, 2, 4, 5)
    places = [*itertools.product([1.7], FARTHEST[:7], [0], FARTHEST[5:], [2.0]), (np.nan, 1, 1, 3, np.nan)]
    params = f'x: R.Tensor((2, 2, 4, 5), "{dtype}"), r: R.Tensor(("k", 5), "{dtype}")'
    body = (
        "p = R.vision.roi_pool(x, r, pooled_size=(2, 3), spatial_scale=0.5)\n"
        "a = R.vision.roi_align(x, r, pooled_size=(2, 3), spatial_scale=0.5, sample_ratio=2)\nreturn (p, a)"
    )
    mod = module(params, body)
    pooled, _ = run_all(mod, x, np.array(places, dtype))
    whole = [n for n, place in enumerate(places) if place[1] == -np.inf and place[3] == 1e30 and place[4] == 2]
    assert whole and (pooled[whole, :, 0, 1] != 0).all()  # the middle bin holds the image
    for image in (2, -1, np.inf):
        vm = supple.relax.VirtualMachine(supple.compile(mod, target="llvm"), supple.cpu())
        for run in (lambda *a: Interpreter(mod).run("main", *a), vm["main"]):
            with pytest.raises(SuppleError, match="the batch of a region is out of range"):
                run(x, np.array([[image, 0, 0, 2, 2]], dtype))


def test_a_region_of_too_many_samples_is_refused() -> None:
    x = np.ones((1, 1, 4, 4), "float32")
    mod = module(
        'x: R.Tensor((1, 1, 4, 4), "float32"), r: R.Tensor(("k", 5), "float32")',
        "return R.vision.roi_align(x, r, pooled_size=(2, 2), spatial_scale=1.0)",
    )
    run_all(mod, x, np.array([[0, 0, 0, np.nan, 3], [0, 0, 0, 3, 3]], "float32"))
    vm = supple.relax.VirtualMachine(supple.compile(mod, target="llvm"), supple.cpu())
    for run in (lambda *a: Interpreter(mod).run("main", *a), vm["main"]):
        with pytest.raises(SuppleError, match="more than 65536 samples"):
            run(x, np.array([[0, 0, 0, np.inf, 3]], "float32"))


@pytest.mark.parametrize(
    ("padding", "dtype"), [("zeros", "float32"), ("border", "bfloat16"), ("reflection", "float32")]
)
def test_grids_at_places_that_no_image_has(padding: str, dtype: str) -> None:
    x = np.random.default_rng(1).normal(size=(1, 2, 4, 5))
    grid = np.random.default_rng(0).uniform(-2, 2, (1, 2, 6, 7))
    grid.flat[:40:2] = np.resize(FARTHEST, 20)
    with np.errstate(all="ignore"):
        args = [np.asarray(dtypes.convert(a, dtype)) for a in (x, grid)]
    call = f"R.image.grid_sample(x, g, method={{!r}}, padding_mode={padding!r})"
    calls = ", ".join(call.format(m) for m in ("bilinear", "nearest", "bicubic"))
    mod = module(f'x: R.Tensor((1, 2, 4, 5), "{dtype}"), g: R.Tensor((1, 2, 6, 7), "{dtype}")', f"return ({calls})")
    vm = supple.relax.VirtualMachine(supple.compile(mod, target="llvm"), supple.cpu())
    for own, native in zip(flat(Interpreter(mod).run("main", *args)), flat(vm["main"](*args)), strict=True):
        limit = 1e-5 if dtype == "float32" else 2.0**-7
        np.testing.assert_allclose(native.astype("float64"), own.astype("float64"), rtol=limit, atol=limit)
    assert (flat(vm["main"](*args))[1][0, :, 0, 2] == 0).all()  # NaN: nothing is read


def test_empty_batches_and_pieces_of_sizes_without_names() -> None:
    def ones(*shape: int) -> Any:
        return np.ones(shape, "float32")

    params = 'c: R.Tensor(("b", "k", "n"), "float32"), l: R.Tensor(("b", "m"), "float32"), '
    params += 'a: R.Tensor((1, "q", 4), "float32")'
    boxes, _ = run_all(
        module(params, "return R.vision.multibox_transform_loc(c, l, a)"), ones(0, 3, 2), ones(0, 8), ones(1, 2, 4)
    )
    assert boxes.shape == (0, 2, 4)
    params = 'x: R.Tensor(("n", 4), "float32"), i: R.Tensor(("n", 2, 1), "int64")'
    found = run_all(module(params, "return R.gather_nd(x, i, batch_dims=1)"), ones(0, 4), np.zeros((0, 2, 1), "int64"))
    assert found[0].shape == (0, 2)
    params = 'x: R.Tensor((1, 2, "w"), "float32"), k: R.Tensor((2, 3, 3), "float32")'
    for width in (0, 1):
        run_all(module(params, "return R.nn.conv1d_transpose(x, k, strides=2)"), ones(1, 2, width), ones(2, 3, 3))
    for kind in ('ndim=1, dtype="float32"', '("n",), "float32"'):
        mod = module(f"x: R.Tensor({kind})", "return R.split(x, 3)")
        assert [len(p) for p in run_all(mod, ones(6))] == [2, 2, 2]
        assert [len(p) for p in run_all(mod, ones(7))] == [3, 3, 1]
        vm = supple.relax.VirtualMachine(supple.compile(mod, target="llvm"), supple.cpu())
        for run in (lambda *a, mod=mod: Interpreter(mod).run("main", *a), vm["main"]):
            with pytest.raises(SuppleError):
                run(ones(1))
        assert [len(p) for p in run_all(module(f"x: R.Tensor({kind})", "return R.split(x, [-2, 9, 5])"), ones(7))] == [
            0,
            7,
            0,
            2,
        ]
    mod = module('x: R.Tensor(("n", "m", "c"), "float32")', "return R.vision.get_valid_counts(x, 0.5)")
    vm = supple.relax.VirtualMachine(supple.compile(mod, target="llvm"), supple.cpu())
    for run in (lambda *a: Interpreter(mod).run("main", *a), vm["main"]):
        for boxes_of in (0, 2):
            with pytest.raises(SuppleError):
                run(ones(1, boxes_of, 1))
