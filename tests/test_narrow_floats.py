"""bfloat16 and the float8 kinds: conversions bit for bit as ml_dtypes has them, arithmetic in float32 rounded once,
sums in float32, natively and interpreted, on every target; arrays in and out; constants in every form of a program."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from host_tools import python_frames
from kernel_tools import Kernel
from test_ops_registry import (
    CASES,
    arrays_of,
    flat,
    has_symbols,
    ids,
    interpreted,
    lowered,
    prepared,
    reference,
    symbol_table,
    variables,
)

import supple
import supple.runtime as rt
from supple.base import dtypes
from supple.base.errors import ArgumentError
from supple.base.target import host, target
from supple.build import te
from supple.build.te import TensorValue
from supple.build.te_functions import create_prim_func
from supple.codegen.kernel import emit_kernel
from supple.codegen.llvm import compile_text
from supple.interp.graph import Interpreter
from supple.interp.loops import run_prim_func
from supple.ir import expr as E
from supple.ir import intrinsics as T_
from supple.ir.expr import Var, cast, const
from supple.ir.intrinsics import intrinsic
from supple.ir.loop import PrimFunc
from supple.ir.op import Op
from supple.ir.serialize import load_json, save_json
from supple.ir.structural import structural_equal, structural_hash
from supple.ir.types import prim_type
from supple.ops.declare import Sample
from supple.runtime.elf import elf_symbols
from supple.schedule.default import schedule_func
from supple.script import from_source
from supple.script import ir as I
from supple.script import relax as R
from supple.script import tirx as T

pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in cast")  # numpy, of NaN that stays NaN

CODED = [name for name, row in dtypes.DTYPES.items() if row.is_coded]
MODELS = ["bfloat16", "float8_e4m3fn", "float8_e5m2"]  # what weights are stored in; the others cost the same code
SPECS = ["llvm", "llvm -mcpu=x86-64", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v4", "llvm -mtriple=aarch64-linux-gnu"]
BY_LEVEL = [spec for spec in SPECS[:4] if host().arch.startswith("x86") or spec == "llvm"]


def can_run(spec: str) -> bool:
    machine, mine = target(spec), host()
    return machine.arch == mine.arch and machine.vector_bits <= mine.vector_bits


def codes(name: str) -> Any:
    """Every value of a dtype of at most 16 bits."""
    kind = dtypes.to_numpy(name)
    return np.arange(1 << (8 * kind.itemsize)).astype(f"u{kind.itemsize}").view(kind)


def bits(array: Any) -> Any:
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")


def assert_same_bits(actual: Any, expected: Any, x: Any = None) -> None:
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    wrong = np.flatnonzero(bits(actual).ravel() != bits(expected).ravel())
    shown = [(None if x is None else x.ravel()[i], expected.ravel()[i], actual.ravel()[i]) for i in wrong[:3]]
    assert not wrong.size, f"{wrong.size} of {actual.size} differ: (from, expected, actual) {shown}"


def single_precision() -> Any:
    """float32 values around every boundary: all values, all midpoints and their neighbours, specials, random bits."""
    rng = np.random.default_rng(0)
    parts = [rng.integers(0, 1 << 32, 50_000, dtype="u8").astype("u4")]
    for name in (*CODED, "float16"):
        with np.errstate(all="ignore"):
            values = codes(name).astype("float64")
        values = np.unique(values[np.isfinite(values)])
        last = values[-1] + (values[-1] - values[-2]) / 2
        with np.errstate(over="ignore"):
            edges = np.concatenate([values, (values[1:] + values[:-1]) / 2, [last, -last]]).astype("float32").view("u4")
        if name in ("bfloat16", "float16"):
            edges = edges[:: 5 if name == "bfloat16" else 3]
        parts += [edges + np.uint32(step % (1 << 32)) for step in (-2, -1, 0, 1, 2)]
    parts += [np.arange(0, 1 << 24, 1999, dtype="u4"), np.arange(0, 1 << 32, 1 << 18, dtype="u8").astype("u4")]
    parts += [(start + np.arange(0, 1 << 23, 8209)).astype("u4") for start in (0x7F800000, 0xFF800000)]  # NaN payloads
    return np.concatenate(parts).view("float32")


SINGLE = single_precision()


def casts(source: str, targets: list[str]) -> PrimFunc:
    """A loop function that converts an array to several dtypes."""
    n = Var("n", prim_type("int64"))
    x = te.placeholder((n,), source, "x")
    return loops_of([x], [te.compute((n,), lambda i, t=t: cast(t, x[i]), f"to_{t}") for t in targets])


def loops_of(inputs: list[TensorValue], outputs: list[TensorValue]) -> PrimFunc:
    return create_prim_func(inputs, outputs)[0]


def run_kernel(func: PrimFunc, *args: Any, **options: Any) -> None:
    Kernel(func, **options)(*args)


# ---------------------------------------------------------------------------------------------------------- conversions


def test_rows_follow_numpy_and_dlpack() -> None:
    assert dtypes.row("bfloat16").dlpack == 4
    assert [dtypes.row(name).dlpack for name in CODED if name != "bfloat16"] == list(range(7, 15))
    for name in CODED:
        kind = dtypes.to_numpy(name)
        assert dtypes.from_numpy(kind) == name and kind.itemsize == dtypes.nbytes(name)
        assert dtypes.check_dtype(f"{name}x4") == f"{name}x4" and dtypes.element(f"{name}x4") == name
        assert dtypes.is_float(name) and dtypes.is_narrow(name) and dtypes.accumulator(name) == "float32"
    assert dtypes.is_narrow("float16") and not dtypes.is_narrow("float32") and not dtypes.is_narrow("int8")
    for name in ("float4_e2m1fn", "float6_e3m2fn"):
        with pytest.raises(TypeError, match=f"'{name}' is not supported"):
            dtypes.check_dtype(name)


@pytest.mark.parametrize("form", ["scheduled", "written", "interpreted", "one-by-one"])
@pytest.mark.parametrize("name", CODED)
def test_every_value_widens_to_the_value_ml_dtypes_gives(name: str, form: str) -> None:
    x = codes(name)
    x = x[:: 97 if form == "one-by-one" and x.size > 256 else 1].copy()
    outs = [np.empty(x.shape, "float32"), np.empty(x.shape, "float64")]
    func = casts(name, ["float32", "float64"])
    if form in ("scheduled", "written"):
        run_kernel(func, x, *outs, schedule=form == "scheduled")
    else:
        run_prim_func(func, [x, *outs], vectorized=form == "interpreted")
    assert_same_bits(outs[0], x.astype("float32"), x)
    assert_same_bits(outs[1], x.astype("float64"), x)


@pytest.mark.parametrize("form", ["scheduled", "written", "interpreted", "one-by-one"])
def test_float32_narrows_as_ml_dtypes_does(form: str) -> None:
    x = SINGLE[::997] if form == "one-by-one" else SINGLE
    func = casts("float32", CODED)
    outs = [np.empty(x.shape, dtypes.to_numpy(name)) for name in CODED]
    if form in ("scheduled", "written"):
        run_kernel(func, np.ascontiguousarray(x), *outs, schedule=form == "scheduled")
    else:
        run_prim_func(func, [x, *outs], vectorized=form == "interpreted")
    with np.errstate(all="ignore"):
        for name, out in zip(CODED, outs, strict=True):
            assert_same_bits(out, x.astype(dtypes.to_numpy(name)), x)


@pytest.mark.parametrize("spec", BY_LEVEL[1:])
def test_every_level_of_the_processor_gives_the_same_bits(spec: str) -> None:
    if not can_run(spec):
        pytest.skip("this processor has no such instructions")
    names = [*CODED, "float16"]
    x = SINGLE[:: 1 if spec == BY_LEVEL[-1] else 5].copy()
    outs = [np.empty(x.shape, dtypes.to_numpy(name)) for name in names]
    run_kernel(casts("float32", names), x, *outs, target=target(spec))
    with np.errstate(all="ignore"):
        for name, out in zip(names, outs, strict=True):
            expected = x.astype(dtypes.to_numpy(name))
            numbers = ~np.isnan(expected) if name == "float16" else np.ones(x.shape, bool)  # hardware quiets NaN
            assert np.isnan(out[~numbers]).all()
            assert_same_bits(out[numbers], expected[numbers], x[numbers])
    for name in names:
        value = codes(name)
        out = np.empty(value.shape, "float32")
        run_kernel(casts(name, ["float32"]), value, out, target=target(spec))
        expected = value.astype("float32")
        numbers = ~np.isnan(expected) if name == "float16" else np.ones(value.shape, bool)
        assert_same_bits(out[numbers], expected[numbers], value[numbers])


def samples_of(name: str) -> Any:
    """Values of any dtype that matter for conversions."""
    row, kind = dtypes.row(name), dtypes.to_numpy(name)
    rng = np.random.default_rng(7)
    if row.kind == "bool":
        return np.array([True, False, True])
    if row.kind == "float" and row.bits <= 16:
        return codes(name)[:: 3 if row.bits == 16 else 1].copy()
    if name == "float32":
        return SINGLE[::31].copy()
    if name == "float64":
        near = np.repeat(SINGLE[::91].astype("float64"), 3)
        with np.errstate(all="ignore"):
            near[1::3] *= 1 + 2**-45
            near[2::3] *= 1 - 2**-45
        return near
    info = np.iinfo(kind)
    if row.bits <= 16:
        return np.arange(info.min, info.max + 1, 1 if row.bits == 8 else 7).astype(kind)
    powers = np.array(1, "u8") << np.arange(row.bits, dtype="u8")
    many = rng.integers(0, 1 << 63, 3000, dtype="u8") >> rng.integers(0, 63, 3000, dtype="u8")
    whole = np.concatenate([powers, powers - np.uint64(1), powers + np.uint64(1), many])
    return np.concatenate([whole.astype(kind), (~whole).astype(kind)])


@pytest.mark.parametrize("source", [name for name in dtypes.DTYPES if name != "handle"])
def test_casts_between_all_dtypes_agree_natively_and_interpreted(source: str) -> None:
    names = [n for n in dtypes.DTYPES if n not in ("handle", source)]
    if not dtypes.row(source).is_coded:
        names = CODED
    x = samples_of(source)
    native = [np.empty(x.shape, dtypes.to_numpy(name)) for name in names]
    func = casts(source, names)
    run_kernel(func, x, *native)
    interpreted = [np.empty_like(out) for out in native]
    run_prim_func(func, [x, *interpreted])
    for name, out, again in zip(names, native, interpreted, strict=True):
        assert_same_bits(again, dtypes.convert(x, name), x)
        if name == "float16":
            numbers = ~np.isnan(again)
            assert np.isnan(out[~numbers]).all()
            out, again = out[numbers], again[numbers]
        assert_same_bits(out, again)
        if dtypes.row(name).is_coded and not dtypes.row(source).is_coded:
            with np.errstate(all="ignore"):
                assert_same_bits(out, x.astype(dtypes.to_numpy(name)), x)


# ----------------------------------------------------------------------------------------------------------- arithmetic

OPERATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "add": (E.Add, np.add),
    "sub": (E.Sub, np.subtract),
    "mul": (E.Mul, np.multiply),
    "div": (E.Div, np.divide),
    "min": (E.Min, np.minimum),
    "max": (E.Max, np.maximum),
    "mod": (E.Mod, np.fmod),
    "lt": (E.LT, np.less),
    "ge": (E.GE, np.greater_equal),
    "ne": (E.NE, np.not_equal),
    "eq": (E.EQ, np.equal),
    "fma": (lambda x, y: intrinsic("fma", x, y, y), lambda x, y: (x.astype("f8") * y + y).astype("f4")),
    "sqrt": (lambda x, y: intrinsic("sqrt", x), lambda x, y: np.sqrt(x)),
    "floor": (lambda x, y: intrinsic("floor", x), lambda x, y: np.floor(x)),
    "round": (lambda x, y: intrinsic("round", x), lambda x, y: np.rint(x)),
    "fabs": (lambda x, y: intrinsic("fabs", x), lambda x, y: np.abs(x)),
    "copysign": (lambda x, y: intrinsic("copysign", x, y), np.copysign),
    "isnan": (lambda x, y: intrinsic("isnan", x), lambda x, y: np.isnan(x)),
    "isinf": (lambda x, y: intrinsic("isinf", x), lambda x, y: np.isinf(x)),
    "select": (lambda x, y: E.Select(E.GT(x, y), x, y), lambda x, y: np.where(x > y, x, y)),
    "twice": (lambda x, y: E.Add(E.Mul(x, y), y), None),  # type: ignore[dict-item]
}


def canonical(array: Any) -> Any:
    """Bits with one NaN."""
    if not dtypes.is_float_array(array):
        return array
    return np.where(np.isnan(array), np.full((), np.nan, array.dtype), array)


@pytest.mark.parametrize("schedule", [True, False], ids=["scheduled", "written"])
@pytest.mark.parametrize("name", MODELS)
def test_operations_are_computed_in_float32_and_rounded_once(name: str, schedule: bool) -> None:
    kind = dtypes.to_numpy(name)
    if name == "bfloat16":
        rng = np.random.default_rng(3)
        x, y = (rng.integers(0, 1 << 16, 20_000).astype("u2").view(kind) for _ in range(2))
        with np.errstate(all="ignore"):
            y[::2] = (x[::2].astype("f4") * rng.uniform(0.4, 2.5, 10_000)).astype(kind)  # of similar size
    else:
        x, y = (np.ascontiguousarray(v).ravel() for v in np.meshgrid(codes(name), codes(name)))
    n = Var("n", prim_type("int64"))
    a, b = te.placeholder((n,), name, "a"), te.placeholder((n,), name, "b")
    made = [te.compute((n,), lambda i, f=f: f(a[i], b[i]), key) for key, (f, _) in OPERATIONS.items()]
    func = loops_of([a, b], made)
    native = [np.empty(x.shape, dtypes.to_numpy(t.dtype)) for t in made]
    run_kernel(func, x, y, *native, schedule=schedule)
    interpreted = [np.empty_like(out) for out in native]
    run_prim_func(func, [x, y, *interpreted])
    with np.errstate(all="ignore"):
        wide_x, wide_y = x.astype("float32"), y.astype("float32")
        for (key, (_, meaning)), out, again in zip(OPERATIONS.items(), native, interpreted, strict=True):
            if key == "twice":
                expected = ((wide_x * wide_y).astype(kind).astype("float32") + wide_y).astype(kind)
            else:
                expected = meaning(wide_x, wide_y).astype(out.dtype)
            equal_zeros = key in ("min", "max")  # numpy does not say which of two zeros is the smaller
            for found in (out, again):
                found, wanted = canonical(found), canonical(expected)
                if equal_zeros:
                    zero = wanted.astype("float32") == 0
                    assert (found[zero].astype("float32") == 0).all()
                    found, wanted = found[~zero], wanted[~zero]
                try:
                    assert_same_bits(found, wanted)
                except AssertionError as error:
                    raise AssertionError(f"{name} {key}: {error}") from None


@pytest.mark.parametrize("name", CODED)
def test_nextafter_is_the_neighbour_in_the_dtype_itself(name: str) -> None:
    some = codes(name)
    some = np.concatenate([some[:300], some[0x7F00:0x8100], some[0xFF00:]]) if name == "bfloat16" else some
    x, y = (np.ascontiguousarray(v).ravel() for v in np.meshgrid(some, some))
    n = Var("n", prim_type("int64"))
    a, b = te.placeholder((n,), name, "a"), te.placeholder((n,), name, "b")
    func = loops_of([a, b], [te.compute((n,), lambda i: intrinsic("nextafter", a[i], b[i]), "next")])
    native, interpreted = np.empty_like(x), np.empty_like(x)
    run_kernel(func, x, y, native)
    run_prim_func(func, [x, y, interpreted])
    with np.errstate(all="ignore"):
        expected = np.nextafter(x, y)
        assert_same_bits(canonical(interpreted), canonical(expected))
        differ = x.astype("float32") != y.astype("float32")  # of equal zeros either may be the result
        assert_same_bits(canonical(native)[differ], canonical(expected)[differ])
        np.testing.assert_array_equal(native.astype("float32"), expected.astype("float32"))


def registry_samples() -> list[tuple[Op, Sample]]:
    """Of each operator, every sample of float16 and the first of float32, in bfloat16."""
    found: list[tuple[Op, Sample]] = []
    done: set[str] = set()
    kind = dtypes.to_numpy("bfloat16")
    for op, sample in CASES:
        arrays = arrays_of(sample)
        seen = {a.dtype.name for a in flat(arrays) if isinstance(a, np.ndarray)}
        if "float16" not in seen:
            if "float32" not in seen or op.name in done:
                continue
            done.add(op.name)

        def narrowed(value: Any) -> Any:
            if isinstance(value, list) and not all(isinstance(v, int) for v in value):
                return [narrowed(v) for v in value]
            is_wide = isinstance(value, np.ndarray) and value.dtype.name in ("float16", "float32")
            return value.astype(kind) if is_wide else value

        attrs = {key: "bfloat16" if value == "float16" else value for key, value in sample.attrs.items()}
        found.append((op, Sample(tuple(narrowed(a) for a in arrays), attrs, static=sample.static)))
    return found


def assert_near(actual: Any, expected: Any) -> None:
    assert actual.dtype == expected.dtype and actual.shape == expected.shape
    if not dtypes.is_float_array(expected):
        np.testing.assert_array_equal(actual, expected)
        return
    tolerance = 2 * float(dtypes.finfo(dtypes.from_numpy(expected.dtype)).eps)
    np.testing.assert_allclose(
        actual.astype("float64"), expected.astype("float64"), rtol=tolerance, atol=tolerance, equal_nan=True
    )


@pytest.mark.parametrize(("op", "sample"), registry_samples(), ids=ids)
def test_operators_take_bfloat16(op: Op, sample: Sample) -> None:
    sample = prepared(op, sample)
    arrays = arrays_of(sample)
    call = op(*variables(arrays, None), **sample.attrs)
    expected = reference(op, sample, arrays, call.attrs)
    for symbolic in (False, True):
        symbols = symbol_table(sample) if symbolic else None
        if symbolic and not has_symbols(sample):
            continue
        args = variables(arrays, symbols)
        call = op(*args, **sample.attrs)
        func = lowered(op, args, call.attrs, arrays)
        results = interpreted(func, arrays)
        native = [np.empty_like(value, order="C") for value in results]
        run_kernel(func, *(np.array(a, order="C") for a in flat(arrays)), *native)
        for value, again, wanted in zip(native, results, expected, strict=True):
            assert_near(again, wanted)
            assert_near(value, wanted)


@pytest.mark.parametrize("spec", SPECS)
def test_machine_code_calls_nothing_and_holds_no_value_of_these_types(spec: str) -> None:
    machine = target(spec)

    def everything(name: str) -> PrimFunc:
        n = Var("n", prim_type("int64"))
        a, b = te.placeholder((n,), name, "a"), te.placeholder((n,), name, "b")
        k = te.reduce_axis((0, n), "k")
        few = ("add", "mod", "max", "lt", "fma", "round", "copysign", "isinf", "select")
        made = [te.compute((n,), lambda i, f=f: OPERATIONS[f][0](a[i], b[i]), f) for f in few]
        made.append(te.compute((n,), lambda i: intrinsic("exp", a[i]), "exp"))
        made += [te.compute((n,), lambda i, t=t: cast(t, a[i]), f"to_{t}") for t in ("int64", "uint64", "float64")]
        made.append(te.compute((n,), lambda i: cast(name, cast("int64", a[i])), "back"))
        made.append(te.compute((), lambda: te.max(a[k], axis=k), "top"))
        return loops_of([a, b], made)

    for name in ("bfloat16", "float16", "float8_e4m3fn", "float8_e8m0fnu"):
        func = everything(name)
        text = emit_kernel(schedule_func(func, machine), "kernel", machine, []).llvm_text
        assert "bfloat" not in text
        if " half" in text:  # by conversions only
            assert name == "float16" or (name != "bfloat16" and machine.has_half_conversion)
            assert not re.search(r"= (f(add|sub|mul|div|neg|cmp)|call)\b[^@\n]*half", text)
        symbols = elf_symbols(compile_text(text, machine))
        assert symbols is not None and symbols[1] == set(), name


# --------------------------------------------------------------------------------------------------- sums, contractions


def matmul_of(name: str, out: str, dims: tuple[Any, Any, Any]) -> Any:
    m, k, n = dims

    @R.function
    def main(x: R.Tensor((m, k), name), w: R.Tensor((k, n), name)):
        with R.dataflow():
            y = R.matmul(x, w, out_dtype=out)
            R.output(y)
        return y

    return main


def compiled(program: Any) -> Any:
    return supple.relax.VirtualMachine(supple.compile(program, target="llvm"), supple.cpu())["main"]


def check_product(y: Any, x: Any, w: Any) -> None:
    """Within the error of a float32 sum, rounded once."""
    wide_x, wide_w = x.astype("float64"), w.astype("float64")
    exact, size = wide_x @ wide_w, np.abs(wide_x) @ np.abs(wide_w)
    limits = dtypes.finfo(dtypes.from_numpy(y.dtype))
    rounding = float(limits.eps) / 2 * np.abs(exact) + float(limits.smallest_subnormal) / 2
    bound = 2.0**-23 * max(1, x.shape[1]) * size + (1 + 2.0**-20) * rounding
    assert (np.abs(y.astype("float64") - exact) <= bound).all()


@pytest.mark.parametrize("out", ["float32", "same"])
@pytest.mark.parametrize("name", ["float16", *MODELS])
def test_products_are_summed_in_float32_for_every_shape(name: str, out: str) -> None:
    kind = dtypes.to_numpy(name)
    rng = np.random.default_rng(5)
    out = name if out == "same" else out
    symbolic = compiled(matmul_of(name, out, ("m", "k", "n")))
    for k, n in ((0, 3), (1, 1), (17, 13), (29, 97), (64, 128)):
        x, w = (rng.uniform(-0.5, 0.5, s).astype(kind) for s in ((41, k), (k, n)))
        whole = symbolic(x, w)
        check_product(whole, x, w)
        for m in (0, 1, 2, 3, 5, 6, 7, 13):  # a row's bits do not depend on the number of rows
            assert_same_bits(symbolic(x[:m].copy(), w), whole[:m])
    x, w = rng.uniform(-0.5, 0.5, (31, 29)).astype(kind), rng.uniform(-0.5, 0.5, (29, 97)).astype(kind)
    static = compiled(matmul_of(name, out, (31, 29, 97)))
    assert_same_bits(static(x, w), symbolic(x, w))
    assert_same_bits(static(np.asfortranarray(x), w[:, ::-1].copy()[:, ::-1]), symbolic(x, w))  # not compact


def test_products_with_constants_and_transposed_operands() -> None:
    rng = np.random.default_rng(6)
    for name in ("bfloat16", "float8_e4m3fn"):
        kind = dtypes.to_numpy(name)
        x, w = rng.uniform(-0.5, 0.5, (19, 37)).astype(kind), rng.uniform(-0.5, 0.5, (37, 150)).astype(kind)

        @R.function
        def main(x: R.Tensor(("m", 37), name)):
            with R.dataflow():
                y = R.matmul(x, R.const(w), out_dtype="float32")  # noqa: B023 - read at once
                R.output(y)
            return y

        @R.function
        def transposed(x: R.Tensor((37, "m"), name), w: R.Tensor((150, 37), name)):
            with R.dataflow():
                y = R.matmul(R.permute_dims(x), R.permute_dims(w), out_dtype="float32")
                R.output(y)
            return y

        expected = compiled(matmul_of(name, "float32", ("m", 37, 150)))(x, w)
        vm = supple.relax.VirtualMachine(supple.compile(transposed, target="llvm"), supple.cpu())
        assert_same_bits(compiled(main)(x), expected)
        assert_same_bits(vm["transposed"](x.T.copy(), w.T.copy()), expected)
        check_product(expected, x, w)


def test_products_in_bfloat16_run_in_register_tiles() -> None:
    """Same dtype out, too: the contraction rule applies, and the operands are widened outside of its inner loop."""
    for name, out in (("bfloat16", "float32"), ("bfloat16", "bfloat16"), ("float16", "float32")):
        x, w = te.placeholder((64, 128), name, "x"), te.placeholder((128, 256), name, "w")
        product = Op.get("relax.matmul").lower(x, w, out_dtype=out)
        func = schedule_func(loops_of([x, w], [product]), host())
        text = func.script()
        assert "fma" in text and '"local"' in text and "rows = T.alloc_buffer" in text and "packed" in text


def test_reductions_are_summed_in_float32() -> None:
    ones = np.full((3, 5000), 1.0, dtypes.to_numpy("bfloat16"))  # in bfloat16 alone the sum would stop at 256

    @R.function
    def main(x: R.Tensor(("n", "m"), "bfloat16")):
        with R.dataflow():
            total = R.sum(x, axis=[1])
            average = R.mean(x, axis=[1])
            R.output(total, average)
        return total, average

    total, average = compiled(main)(ones)
    assert total.astype("float32").tolist() == [4992.0] * 3 and average.astype("float32").tolist() == [1.0] * 3
    assert total.dtype == average.dtype == ones.dtype
    total, average = compiled(main)(ones[:, :0])
    assert total.astype("float32").tolist() == [0.0] * 3 and np.isnan(average).all()


def test_the_network_of_the_page_in_bfloat16() -> None:
    name = "bfloat16"

    @R.function
    def main(
        data: R.Tensor(("n", 784), name), w0: R.Tensor((784, 128), name), b0: R.Tensor((128,), name),
        w1: R.Tensor((128, 10), name), b1: R.Tensor((10,), name),
    ):  # fmt: skip
        with R.dataflow():
            lv0 = R.nn.relu(R.matmul(data, w0) + b0)
            lv1 = R.matmul(lv0, w1) + b1
            R.output(lv1)
        return lv1

    rng = np.random.default_rng(8)
    weights = [rng.standard_normal(s) * 0.05 for s in ((784, 128), (128,), (128, 10), (10,))]
    narrow = [w.astype(dtypes.to_numpy(name)) for w in weights]
    run = compiled(main)
    everything = rng.uniform(0, 1, (67, 784)).astype(dtypes.to_numpy(name))
    whole = run(everything, *narrow)
    for n in (0, 1, 2, 7, 67):
        x = everything[:n].copy()
        assert_same_bits(run(x, *narrow), whole[:n])
    assert_same_bits(Interpreter(main).run("main", everything[:7], *narrow), whole[:7])
    x, w0, b0, w1, b1 = (v.astype("float64") for v in (everything, *narrow))
    hidden = np.maximum(x @ w0 + b0, 0)
    size = np.abs(hidden) @ np.abs(w1) + np.abs(b1)
    exact = hidden @ w1 + b1
    eps = 2.0**-8  # half of the last place: the product, the sum with the bias, and again
    assert (np.abs(whole.astype("float64") - exact) <= 2 * eps * size + 3 * eps * np.abs(exact)).all()


# ------------------------------------------------------------------------------------------------------------- programs


def program(name: str, values: Any) -> Any:
    @I.ir_module
    class Module:
        @T.prim_func
        def scale(a: T.handle, b: T.handle):
            n = T.int64()
            A = T.match_buffer(a, (n, 4), name)
            B = T.match_buffer(b, (n, 4), name)
            for i, j in T.grid(n, 4):
                with T.sblock("s"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vi, vj] * T.Cast(name, T.float32(0.5)) + T.max(A[vi, vj], T.Cast(name, 1))

        @R.function
        def main(x: R.Tensor(("n", 4), name), y: R.Tensor((2, 4), name)) -> R.Tensor(("n", 4), name):
            n = T.int64()
            cls = Module
            with R.dataflow():
                s = R.call_tir(cls.scale, (x,), out_ty=R.Tensor((n, 4), name))
                t = R.add(s, R.const(1.5, name))
                u = t + R.sum(y + R.const(values), axis=[0], keepdims=True)
                R.output(u)
            return u

    return Module


@pytest.mark.parametrize("name", CODED)
def test_programs_round_trip_and_run(name: str) -> None:
    kind = dtypes.to_numpy(name)
    values = np.array([[1.5, -2, 0.25, np.nan], [0, -0.0, np.inf, 3]]).astype(kind)
    mod = program(name, values)
    for again in (from_source(mod.script()), load_json(save_json(mod)), pickle.loads(pickle.dumps(mod)),
                  copy.deepcopy(mod)):  # fmt: skip
        assert structural_equal(mod, again) and structural_hash(mod) == structural_hash(again)
    run = compiled(mod)
    y = np.ones((2, 4)).astype(kind)
    for n in (0, 1, 7, 33):
        x = np.random.default_rng(n).uniform(-3, 3, (n, 4)).astype(kind)
        out = run(x, y)
        assert out.dtype == kind
        assert_same_bits(out, Interpreter(mod).run("main", x, y))
        assert_same_bits(run(np.asfortranarray(x), y), out)


@pytest.mark.parametrize("name", CODED)
def test_constants_keep_every_bit(name: str) -> None:
    everything = R.const(codes(name))
    assert everything.ty.dtype == name
    for again in (load_json(save_json(everything)), pickle.loads(pickle.dumps(everything))):
        assert_same_bits(np.asarray(again.data), codes(name))
        assert structural_equal(everything, again)

    @R.function
    def main() -> R.Tensor((codes(name).size,), name):
        return R.const(codes(name))

    assert structural_equal(from_source(main.script(show_meta=True)), main)
    assert_same_bits(compiled(main)().numpy(), codes(name))


def test_constants_are_compared_by_dtype_and_bits() -> None:
    byte = np.array([0x38], "uint8")
    kinds = [R.const(byte.view(dtypes.to_numpy(name))) for name in CODED if name != "bfloat16"]
    for i, a in enumerate(kinds):
        for j, b in enumerate(kinds):
            assert structural_equal(a, b) == (i == j)
    assert not structural_equal(R.const(0.0, "bfloat16"), R.const(-0.0, "bfloat16"))
    assert structural_equal(const(float("nan"), "bfloat16"), const(float("nan"), "bfloat16"))
    assert not structural_equal(const(1.0, "bfloat16"), const(1.0, "float8_e5m2"))
    assert structural_equal(const(1.0001, "bfloat16"), const(1.0, "bfloat16"))  # the same number in the dtype


@pytest.mark.parametrize("name", CODED)
def test_literals_limits_and_reinterpretation(name: str) -> None:
    unsigned = f"uint{dtypes.row(name).bits}"

    @T.prim_func
    def main(A: T.Buffer((16,), unsigned), B: T.Buffer((16,), name), C: T.Buffer((16,), unsigned),
             D: T.Buffer((5,), name)):  # fmt: skip
        for i in range(16):
            with T.sblock("b"):
                v = T.axis.spatial(16, i)
                B[v] = T.reinterpret(name, A[v])
        for i in range(16):
            with T.sblock("c"):
                v = T.axis.spatial(16, i)
                C[v] = T.reinterpret(unsigned, B[v]) + T.Cast(unsigned, 1)
        D[0] = T.max_value(name)
        D[1] = T.min_value(name)
        D[2] = getattr(T, name)(1.5)
        D[3] = T.Cast(name, T.float32(0.3))
        D[4] = T.Cast(name, T.float64(2.0) ** T.float64(-1.0))

    assert structural_equal(from_source(main.script()), main)
    x = np.random.default_rng(2).integers(0, 1 << dtypes.row(name).bits, 16).astype(unsigned)
    kind = dtypes.to_numpy(name)
    for run in (lambda *a: run_kernel(main, *a), lambda *a: run_prim_func(main, list(a)),
                lambda *a: run_prim_func(main, list(a), vectorized=False)):  # fmt: skip
        b, c, d = np.empty(16, kind), np.empty(16, unsigned), np.empty(5, kind)
        run(x, b, c, d)
        assert_same_bits(b, x.view(kind))
        assert_same_bits(c, x + np.array(1, unsigned))
        limits = dtypes.finfo(name)
        assert_same_bits(d, np.array([limits.max, limits.min, 1.5, np.float32(0.3), 0.5]).astype(kind))
    if np.isinf(np.array(np.inf).astype(kind)):
        assert float(T_.infinity(name).value) == float("inf")  # type: ignore[attr-defined]
    else:
        with pytest.raises(TypeError, match="has no infinity"):
            T_.infinity(name)


def test_types_are_checked_like_those_of_other_floats() -> None:
    header = "from supple.script import ir as I, relax as R, tirx as T\n"
    body = '@R.function\ndef main(x: R.Tensor((4,), "{0}"), y: R.Tensor((4,), "{1}")):\n    z = {2}\n    return z\n'

    def read(*parts: str) -> Any:
        return from_source(header + body.format(*parts))

    assert read("bfloat16", "bfloat16", "x * y + R.const(2.0, 'bfloat16')").ret_ty.dtype == "bfloat16"
    assert read("bfloat16", "bfloat16", "x * 2").ret_ty.dtype == "bfloat16"
    assert read("float8_e4m3fn", "bfloat16", "R.astype(x, 'bfloat16') - y").ret_ty.dtype == "bfloat16"
    assert read("bfloat16", "bfloat16", "R.less(x, y)").ret_ty.dtype == "bool"
    for left, right in (("bfloat16", "float16"), ("bfloat16", "float32"), ("float8_e4m3fn", "float8_e5m2")):
        with pytest.raises(ValueError, match="dtype"):
            read(left, right, "R.add(x, y)")
    with pytest.raises((TypeError, ValueError), match="float4_e2m1fn"):
        read("float4_e2m1fn", "float4_e2m1fn", "x")


# -------------------------------------------------------------------------------------------------------------- runtime


def doubled(name: str) -> Any:
    @R.function
    def main(x: R.Tensor(("n", 4), name)) -> R.Tensor(("n", 4), name):
        with R.dataflow():
            y = R.add(x, x)
            R.output(y)
        return y

    return compiled(main)


@pytest.mark.parametrize("name", CODED)
def test_arrays_and_tensors_of_these_dtypes_come_and_go(name: str) -> None:
    kind = dtypes.to_numpy(name)
    run = doubled(name)
    x = np.arange(12).reshape(3, 4).astype(kind)
    with np.errstate(all="ignore"):
        expected = (x.astype("float32") * 2).astype(kind)
    out = run(x)
    assert type(out) is np.ndarray and out.dtype == kind
    assert_same_bits(out, expected)
    assert_same_bits(run(np.asfortranarray(x)), expected)
    held = run(rt.tensor(x))
    assert isinstance(held, rt.Tensor) and held.dtype == name and name in repr(held)
    assert_same_bits(held.numpy(), expected)
    again = rt.from_dlpack(held)  # DLPack both ways
    assert again.dtype == name
    assert_same_bits(again.numpy(), expected)
    assert_same_bits(run(again).numpy(), run(held).numpy())
    made = rt.tensor([[1.5, 2, 3, 4]], name)
    assert made.dtype == name and rt.empty((2, 3), name).numpy().dtype == kind
    assert made.copyfrom(np.ones((1, 4), kind)).numpy().astype("float32").tolist() == [[1.0] * 4]
    with pytest.raises(TypeError, match=name):
        made.copyfrom(np.ones((1, 4), "float32"))
    with pytest.raises(ArgumentError, match=rf"parameter x: expected Tensor\(\(n, 4\), {name}\), got .*float32"):
        run(np.ones((3, 4), "float32"))
    with pytest.raises(ArgumentError, match=rf"parameter x: expected Tensor\(\(n, 4\), {name}\), got"):
        run(bits(x))
    with pytest.raises(ArgumentError, match="4"):
        run(np.ones((3, 5), kind))


def test_the_fast_entry_takes_them() -> None:
    run = doubled("bfloat16")
    x = np.ones((3, 4), dtypes.to_numpy("bfloat16"))
    run(x)
    assert python_frames(run, x) == 0


def test_shared_memory_is_neither_copied_nor_left_read_only() -> None:
    x = np.ones((2, 3), dtypes.to_numpy("bfloat16"))
    shared = rt.from_dlpack(rt.Tensor(x))
    x[1, 2] = 5
    assert shared.numpy()[1, 2] == 5
    strided = rt.from_dlpack(rt.Tensor(x[:, ::2])).numpy()
    assert_same_bits(strided, x[:, ::2])
    assert rt.from_dlpack(rt.Tensor(x[:0])).shape == (0, 3)


def test_torch_tensors_of_these_dtypes() -> None:
    torch = pytest.importorskip("torch")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"):
        run = doubled(name)
        x = torch.arange(1, 13).reshape(3, 4).to(torch.float32).to(getattr(torch, name))
        out = run(x)
        assert isinstance(out, torch.Tensor) and out.dtype == x.dtype
        again = torch.from_dlpack(run(rt.from_dlpack(x)))
        assert again.dtype == x.dtype and torch.equal(out.view(torch.uint8), again.view(torch.uint8))
        shared = rt.from_dlpack(x)
        assert torch.from_dlpack(shared).data_ptr() == x.data_ptr()
        assert torch.equal(run(x.t().contiguous().t()).view(torch.uint8), out.view(torch.uint8))
        with pytest.raises(ArgumentError, match=name):
            run(torch.ones(3, 4))


def test_numbers_of_these_dtypes_are_numbers() -> None:
    seen: list[Any] = []
    rt_name = "test_narrow_floats.see"
    supple.register_global_func(rt_name, seen.append, override=True)

    @R.function(pure=False)
    def main(x: R.Any):
        _ = R.call_packed(rt_name, x, ty_args=R.Tuple([]))
        return x

    compiled(main)(dtypes.to_numpy("bfloat16").type(1.5))
    assert seen == [1.5]
