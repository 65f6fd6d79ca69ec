"""Convolutions, pools, resizing, sampling, norms, attention, losses against PyTorch, over all their attributes.

    python tests/torch_agreement.py [--seed N] [--cases N] [--only NAME ...]      (needs torch)

Each case draws a layout, groups, strides, dilations, paddings, modes and sizes, and compares the interpreter and native
code with PyTorch. Suppression has no counterpart in torch itself: the greedy rule is written out here. The number of
failures is the exit status.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

import supple
from supple.base import dtypes
from supple.base.errors import DiagnosticError, SuppleError
from supple.build.block_builder import BlockBuilder
from supple.interp.graph import Interpreter
from supple.ir.expr import Var, as_expr
from supple.ir.graph import ShapeExpr
from supple.ir.op import Op
from supple.ir.types import TensorType, prim_type

Case = tuple[str, list[Any], dict[str, Any], Any]  # operator, arguments, attributes, PyTorch's results
LETTERS = {1: "W", 2: "HW", 3: "DHW"}


class Draw:
    """Random numbers and arrays of one case."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.data = np.random.default_rng(seed)

    def array(self, *shape: int) -> Any:
        return self.data.uniform(-2, 2, shape).astype("float32")

    def each(self, count: int, low: int, high: int) -> list[int]:
        return [self.rng.randint(low, high) for _ in range(count)]

    def one(self, *choices: Any) -> Any:
        return self.rng.choice(choices)


def laid_out(x: Any, letters: str, order: str) -> Any:
    """An array whose axes are ``letters``, in another order."""
    return np.ascontiguousarray(np.transpose(x, [letters.index(c) for c in order]))


def shuffled(d: Draw, letters: str) -> str:
    """The usual order half of the time."""
    return letters if d.rng.random() < 0.5 else "".join(d.rng.sample(letters, len(letters)))


def conv(d: Draw) -> Case:
    spatial, transposed = d.rng.randint(1, 3), d.rng.random() < 0.5
    letters = LETTERS[spatial]
    groups, inner, outer = d.rng.randint(1, 3), d.rng.randint(1, 3), d.rng.randint(1, 3)
    kernel, stride, dilation = d.each(spatial, 1, 3), d.each(spatial, 1, 3), d.each(spatial, 1, 3)
    padding = d.each(spatial, 0, 2)
    reach = [(k - 1) * e + 1 for k, e in zip(kernel, dilation, strict=True)]
    if transposed:
        padding = [min(p, r - 1) for p, r in zip(padding, reach, strict=True)]
        low = [2 * p - r + 2 for p, r in zip(padding, reach, strict=True)]
        size = [max(v, n) for v, n in zip(d.each(spatial, 1, 5), low, strict=True)]
    else:
        size = [max(r - 2 * p, 1) + d.rng.randint(0, 4) for r, p in zip(reach, padding, strict=True)]
    x = d.array(d.rng.randint(1, 2), groups * inner, *size)
    w = d.array(*((groups * inner, outer) if transposed else (groups * outer, inner)), *kernel)
    attrs: dict[str, Any] = {"strides": stride, "padding": padding, "dilation": dilation, "groups": groups}
    given = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    if transposed:
        limit = [max(s, e) - 1 for s, e in zip(stride, dilation, strict=True)]
        extra = [d.rng.randint(0, m) for m in limit]
        attrs["output_padding"] = given["output_padding"] = extra
    function = getattr(F, f"conv{'_transpose' if transposed else ''}{spatial}d")
    expected = function(torch.tensor(x), torch.tensor(w), **given).numpy()
    names = "NC" + letters, ("IO" if transposed else "OI") + letters
    orders = [shuffled(d, n) for n in names]
    attrs["data_layout"], attrs["kernel_layout"] = orders
    if d.rng.random() < 0.5:
        attrs["out_layout"] = shuffled(d, names[0])
    expected = laid_out(expected, names[0], attrs.get("out_layout", orders[0]))
    name = f"nn.conv{spatial}d{'_transpose' if transposed else ''}"
    return name, [laid_out(x, names[0], orders[0]), laid_out(w, names[1], orders[1])], attrs, expected


def pool(d: Draw) -> Case:
    spatial, average = d.rng.randint(1, 3), d.rng.random() < 0.5
    names = "NC" + LETTERS[spatial]
    window, stride = d.each(spatial, 1, 3), d.each(spatial, 1, 3)
    padding = [d.rng.randint(0, k // 2) for k in window]
    dilation = [1] * spatial if average else d.each(spatial, 1, 2)
    size = [(k - 1) * e + 1 + d.rng.randint(0, 4) for k, e in zip(window, dilation, strict=True)]
    ceil = d.rng.random() < 0.5
    x = d.array(1, 2, *size)
    attrs: dict[str, Any] = {"pool_size": window, "strides": stride, "padding": padding, "ceil_mode": ceil}
    given: dict[str, Any] = {"stride": stride, "padding": padding, "ceil_mode": ceil}
    if average:
        attrs["count_include_pad"] = given["count_include_pad"] = d.rng.random() < 0.5
    else:
        attrs["dilation"] = given["dilation"] = dilation
    kind = "avg" if average else "max"
    expected = getattr(F, f"{kind}_pool{spatial}d")(torch.tensor(x), window, **given).numpy()
    attrs["layout"] = order = shuffled(d, names)
    return f"nn.{kind}_pool{spatial}d", [laid_out(x, names, order)], attrs, laid_out(expected, names, order)


def adaptive(d: Draw) -> Case:
    spatial = d.rng.randint(1, 3)
    names = "NC" + LETTERS[spatial]
    x, size = d.array(2, 2, *d.each(spatial, 1, 7)), d.each(spatial, 1, 5)
    expected = getattr(F, f"adaptive_avg_pool{spatial}d")(torch.tensor(x), size).numpy()
    order = shuffled(d, names)
    attrs = {"output_size": size, "layout": order}
    return f"nn.adaptive_avg_pool{spatial}d", [laid_out(x, names, order)], attrs, laid_out(expected, names, order)


def resize(d: Draw) -> Case:
    spatial = d.one(2, 2, 3)
    names = "NC" + LETTERS[spatial]
    x, size = d.array(1, 2, *d.each(spatial, 1, 7)), d.each(spatial, 1, 9)
    mode = d.one("nearest", "nearest-exact", "linear", *(["cubic"] if spatial == 2 else []))
    corners = mode in ("linear", "cubic") and d.rng.random() < 0.5
    attrs: dict[str, Any] = {"method": mode, "coordinate_transformation_mode": "half_pixel"}
    given: dict[str, Any] = {}
    if mode in ("linear", "cubic"):
        attrs["coordinate_transformation_mode"] = "align_corners" if corners else "half_pixel"
        attrs["cubic_alpha"] = -0.75
        given["align_corners"] = corners
        mode = {"linear": "bilinear" if spatial == 2 else "trilinear", "cubic": "bicubic"}[mode]
    else:
        attrs["method"] = "nearest_neighbor"
        attrs["rounding_method"] = "round_prefer_ceil" if mode == "nearest-exact" else "floor"
        attrs["coordinate_transformation_mode"] = "half_pixel" if mode == "nearest-exact" else "asymmetric"
    expected = F.interpolate(torch.tensor(x), size=size, mode=mode, **given).numpy()
    attrs["layout"] = order = shuffled(d, names)
    return f"image.resize{spatial}d", [laid_out(x, names, order), tuple(size)], attrs, laid_out(expected, names, order)


def sampled(d: Draw) -> Case:
    spatial = d.one(2, 2, 3)
    x = d.array(2, 2, *d.each(spatial, 1, 5))
    grid = (d.array(2, *d.each(spatial, 1, 4), spatial) * d.one(0.6, 1, 3)).astype("float32")
    method = d.one("bilinear", "nearest", *(["bicubic"] if spatial == 2 else []))
    padding, align = d.one("zeros", "border", "reflection"), d.rng.random() < 0.5
    expected = F.grid_sample(torch.tensor(x), torch.tensor(grid), method, padding, align).numpy()
    attrs = {"method": method, "padding_mode": padding, "align_corners": align, "layout": "NC" + LETTERS[spatial]}
    return "image.grid_sample", [x, np.ascontiguousarray(np.moveaxis(grid, -1, 1))], attrs, expected


def affine(d: Draw) -> Case:
    spatial, align = d.one(2, 3), d.rng.random() < 0.5
    theta, size = d.array(2, spatial, spatial + 1), d.each(spatial, 1, 5)
    expected = F.affine_grid(torch.tensor(theta), [2, 1, *size], align_corners=align).numpy()
    return "image.affine_grid", [theta, tuple(size)], {"align_corners": align}, np.moveaxis(expected, -1, 1)


def norm(d: Draw) -> Case:
    kind = d.one("layer", "group", "instance", "batch")
    spatial = d.rng.randint(1, 3)
    channels = d.one(2, 4, 6)
    x = d.array(2, channels, *d.each(spatial, 2, 4))
    g, b = d.array(channels), d.array(channels)
    t = [torch.tensor(v) for v in (x, g, b)]
    axes = list(range(2, 2 + spatial))
    if kind == "layer":
        shape = x.shape[-2:]
        g, b = d.array(*shape), d.array(*shape)
        expected = F.layer_norm(t[0], shape, torch.tensor(g), torch.tensor(b)).numpy()
        return "nn.layer_norm", [x, g, b], {"axes": [-2, -1]}, expected
    if kind == "group":
        groups = d.one(*(n for n in (1, 2, 3) if channels % n == 0))
        expected = F.group_norm(t[0], groups, t[1], t[2]).numpy()
        return "nn.group_norm", [x, g, b], {"num_groups": groups, "channel_axis": 1, "axes": axes}, expected
    if kind == "instance":
        expected = F.instance_norm(t[0], weight=t[1], bias=t[2]).numpy()
        return "nn.instance_norm", [x, g, b], {"channel_axis": 1, "axes": axes}, expected
    mean, spread = d.array(channels), np.abs(d.array(channels)) + np.float32(0.1)
    training, momentum = d.rng.random() < 0.5, 0.1
    own = [torch.tensor(mean.copy()), torch.tensor(spread.copy())]
    expected = F.batch_norm(t[0], *own, t[1], t[2], training=training, momentum=momentum).numpy()
    count = x.size // channels
    moved = [o.numpy() for o in own]
    if training:  # PyTorch keeps the unbiased variance
        axes = [a for a in range(x.ndim) if a != 1]
        moved[1] = ((1 - momentum) * spread + momentum * x.var(tuple(axes))).astype("float32")
        assert count > 1
    return "nn.batch_norm", [x, g, b, mean, spread], {"axis": 1, "training": training, "momentum": momentum}, [
        expected, *moved,
    ]  # fmt: skip


def attended(d: Draw) -> Case:
    batch, heads, width = d.rng.randint(1, 2), d.rng.randint(1, 3), d.rng.randint(1, 5)
    rows, columns = d.rng.randint(1, 6), d.rng.randint(1, 6)
    q, k, v = (
        d.array(batch, rows, heads, width),
        d.array(batch, columns, heads, width),
        d.array(batch, columns, heads, 3),
    )
    scale = d.one(None, 0.3)
    causal = d.one(None, "TopLeft")
    bias = d.array(batch, heads, rows, columns) if causal is None and d.rng.random() < 0.5 else None
    t = [torch.tensor(x.transpose(0, 2, 1, 3).copy()) for x in (q, k, v)]
    mask = None if bias is None else torch.tensor(bias)
    expected = F.scaled_dot_product_attention(*t, attn_mask=mask, is_causal=causal is not None, scale=scale).numpy()
    args = [q, k, v] + ([] if bias is None else [bias])
    name = "nn.attention" if bias is None else "nn.attention_bias"
    return name, args, {"scale": scale, "causal_mask": causal}, expected.transpose(0, 2, 1, 3)


def loss(d: Draw) -> Case:
    classes, rest = d.rng.randint(2, 5), d.each(d.rng.randint(0, 2), 1, 3)
    p = d.array(3, classes, *rest)
    t = d.data.integers(0, classes, (3, *rest))
    weights = np.abs(d.array(classes)) + np.float32(0.1)
    ignored, reduction = d.rng.randint(-1, classes - 1), d.one("mean", "sum", "none")
    expected = F.nll_loss(
        torch.tensor(p), torch.tensor(t), torch.tensor(weights), ignore_index=ignored, reduction=reduction
    ).numpy()
    return "nn.nll_loss", [p, t, weights], {"reduction": reduction, "ignore_index": ignored}, expected


def padded(d: Draw) -> Case:
    mode = d.one("constant", "reflect", "replicate", "circular")
    rank = d.one(3, 4)
    x = d.array(1, 2, *d.each(rank - 2, 3, 5))
    width = d.each(2 * (rank - 2), 0, 2)
    expected = F.pad(
        torch.tensor(x), [w for pair in reversed(list(zip(width[::2], width[1::2], strict=True))) for w in pair], mode
    )
    return "nn.pad", [x], {"pad_width": [0, 0, 0, 0, *width], "pad_mode": mode}, expected.numpy()


def elementwise(d: Draw) -> Case:
    x = d.array(2, 3, 4)
    t = torch.tensor(x)
    choices: list[tuple[str, list[Any], dict[str, Any], Any]] = [
        ("nn.gelu", [x], {}, F.gelu(t)), ("nn.gelu_tanh", [x], {}, F.gelu(t, approximate="tanh")),
        ("nn.silu", [x], {}, F.silu(t)), ("nn.selu", [x], {}, F.selu(t)),
        ("nn.softplus", [x], {"beta": 2.0, "threshold": 3.0}, F.softplus(t, 2.0, 3.0)),
        ("nn.leakyrelu", [x], {"alpha": 0.3}, F.leaky_relu(t, 0.3)),
        ("nn.softmax", [x], {"axis": 1}, F.softmax(t, 1)), ("nn.log_softmax", [x], {"axis": -2}, F.log_softmax(t, -2)),
        ("nn.prelu", [x, x[0, :, 0].copy()], {"axis": 1}, F.prelu(t, torch.tensor(x[0, :, 0]))),
    ]  # fmt: skip
    name, args, attrs, expected = d.rng.choice(choices)
    return name, args, attrs, expected.numpy()


def pixels(d: Draw) -> Case:
    factor = d.rng.randint(1, 3)
    x = d.array(2, 2 * factor * factor, *d.each(2, 1, 4))
    expected = F.pixel_shuffle(torch.tensor(x), factor).numpy()
    return "nn.pixel_shuffle", [x], {"upscale_factor": factor}, expected


def _overlap(a: Any, b: Any) -> float:
    low, high = np.maximum(a[:2], b[:2]), np.minimum(a[2:], b[2:])
    common = float(np.prod(np.maximum(high - low, 0)))
    areas = [float(np.prod(box[2:] - box[:2])) for box in (a, b)]
    return common / (sum(areas) - common)


def suppressed(d: Draw) -> Case:
    """Rows (class, score, box); those kept come first, in the order of their scores, and -1 fills the rest."""
    count, classes = d.rng.randint(1, 8), d.rng.randint(1, 3)
    corner = d.data.uniform(0, 4, (count, 2))
    boxes = np.concatenate([corner, corner + d.data.uniform(0.5, 4, (count, 2))], 1)
    scores = d.data.permutation(count) / 10 + 0.1
    kinds = d.data.integers(0, classes, count)
    rows = np.concatenate([kinds[:, None], scores[:, None], boxes], 1).astype("float32")
    valid, threshold, force = d.rng.randint(0, count), d.one(0.2, 0.5, 0.8), d.rng.random() < 0.3
    top, most = d.one(-1, 2, 4), d.one(-1, 1, 3)
    order = [i for i in np.argsort(-rows[:, 1], kind="stable") if i < valid]
    order = order if top < 0 else order[:top]
    kept: list[int] = []
    for i in order:
        rivals = [j for j in kept if force or rows[i, 0] == rows[j, 0]]
        if all(_overlap(rows[i, 2:].astype("f8"), rows[j, 2:].astype("f8")) < threshold for j in rivals):
            kept.append(i)
    kept = kept if most < 0 else kept[:most]
    expected = np.full((1, count, 6), -1, "float32")
    expected[0, : len(kept)] = rows[kept]
    attrs = {
        "max_output_size": most, "iou_threshold": threshold, "force_suppress": force, "top_k": top, "coord_start": 2,
        "score_index": 1, "id_index": 0, "return_indices": False, "invalid_to_bottom": True,
    }  # fmt: skip
    ids = np.arange(count, dtype="int32")[None]
    return "vision.non_max_suppression", [rows[None], np.array([valid], "int32"), ids], attrs, expected


KINDS: list[Callable[[Draw], Case]] = [
    conv, conv, conv, pool, adaptive, resize, resize, sampled, sampled, affine, norm, attended, loss, padded,
    elementwise, pixels, suppressed,
]  # fmt: skip


def runs(name: str, args: list[Any], attrs: dict[str, Any], symbolic: bool) -> list[Any]:
    """By the interpreter and by native code, each a list of arrays."""
    params: list[Var] = []
    operands: list[Any] = []
    for value in args:
        if not isinstance(value, np.ndarray):
            operands.append(list(value))
            continue
        dims = [Var(f"n{len(params)}_{d}", prim_type("int64")) if symbolic and d == 0 else as_expr(e)
                for d, e in enumerate(value.shape)]  # fmt: skip
        params.append(Var(f"x{len(params)}", TensorType(ShapeExpr(tuple(dims)), dtypes.from_numpy(value.dtype))))
        operands.append(params[-1])
    bb = BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(Op.get(f"relax.{name}")(*operands, **attrs)))
    mod = bb.finalize()
    arrays = [a for a in args if isinstance(a, np.ndarray)]
    vm = supple.relax.VirtualMachine(supple.compile(mod, results="numpy"), supple.cpu())
    found = [Interpreter(mod).run("main", *arrays), vm["main"](*arrays)]
    return [[np.asarray(r) for r in (f if isinstance(f, (tuple, list)) else [f])] for f in found]


def checked(seed: int) -> tuple[str, str | None]:
    """The operator of a case, and what is wrong."""
    d = Draw(seed)
    kind = d.rng.choice(KINDS)
    name, args, attrs, expected = kind(d)
    wanted = [np.asarray(e) for e in (expected if isinstance(expected, list) else [expected])]
    try:
        ways = runs(name, args, attrs, d.rng.random() < 0.2)
    except DiagnosticError as error:
        return name, str(error)
    except SuppleError as error:
        return name, f"{type(error).__name__}: {error}"
    for way, found in zip(("interpreter", "native code"), ways, strict=True):
        for place, (a, e) in enumerate(zip(found, wanted, strict=False)):
            if a.shape != e.shape or not np.allclose(a, e, rtol=1e-4, atol=5e-5, equal_nan=True):
                return name, f"{way}, result {place}: {a.shape} {a.ravel()[:8]}, PyTorch {e.shape} {e.ravel()[:8]}"
    return name, None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=300)
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    for seed in range(options.seed, options.seed + options.cases):
        name, problem = checked(seed)
        counts[name] += 1
        if problem is not None:
            counts["failed"] += 1
            print(f"CASE {seed} {name}: {problem}", flush=True)
    print(dict(sorted(counts.items())))
    return min(counts["failed"], 100)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
