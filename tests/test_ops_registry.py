"""Every operator and sample: inferred type = reference type, lowered value = reference value, by the interpreter."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import supple.ops  # noqa: F401 - declares the operators
from supple.base import dtypes
from supple.build.block_builder import BlockBuilder
from supple.build.infer import infer
from supple.build.te import TensorValue, as_placeholders
from supple.build.te_functions import create_prim_func
from supple.interp.loops import run_prim_func, symbol_values
from supple.ir.expr import Call, IntImm, Var, as_expr
from supple.ir.graph import ShapeExpr
from supple.ir.loop import PrimFunc
from supple.ir.op import OPS, Op
from supple.ir.structural import assert_structural_equal
from supple.ir.types import TensorType, TupleType, prim_type
from supple.ops.declare import Sample, ShapeOf, random_array
from supple.script import from_source
from supple.sym.relate import tensor_dims
from supple.sym.simplify import evaluate

CASES = [(op, sample) for _, op in OPS.items() if op.samples is not None for sample in op.samples()]


def ids(case: Any) -> str:
    return case.short_name if isinstance(case, Op) else repr(case.args)[:40] if isinstance(case, Sample) else ""


def arrays_of(sample: Sample) -> list[Any]:
    """Concrete arguments: arrays, lists of arrays, shapes."""

    def make(value: Any, seed: int) -> Any:
        if isinstance(value, list) and not all(isinstance(v, int) for v in value):
            return [make(v, seed * 10 + i) for i, v in enumerate(value)]
        if isinstance(value, tuple):
            return random_array(value, "float32", seed)
        return value

    return [make(value, seed) for seed, value in enumerate(sample.args)]


def prepared(op: Op, sample: Sample) -> Sample:
    """The sample's arguments in the signature's own order, its conveniences resolved."""
    prepare = op.facts.get("prepare")
    return sample if prepare is None else Sample(*prepare(*sample.args, **sample.attrs), static=sample.static)


def variables(arrays: list[Any], symbols: dict[int, Var] | None) -> list[Any]:
    """Graph variables of the arrays' types; with ``symbols``, equal extents above 1 become one symbol."""

    def dim(extent: int) -> Any:
        if symbols is None or extent < 2:
            return as_expr(extent)
        return symbols.setdefault(extent, Var(f"s{extent}", prim_type("int64")))

    def make(value: Any) -> Any:
        if isinstance(value, list):
            return [as_expr(v) if isinstance(v, int) else make(v) for v in value]
        if isinstance(value, ShapeOf):
            return list(value.values)
        if isinstance(value, (int, float)):
            return as_expr(value)
        shape = ShapeExpr(tuple(dim(e) for e in value.shape))
        return Var("x", TensorType(shape, dtypes.from_numpy(value.dtype)))

    return [make(a) for a in arrays]


def symbol_table(sample: Sample) -> dict[int, Var] | None:
    """Where symbols go that stand for extents; None when the sample cannot be symbolic."""
    return None if sample.static or any(isinstance(a, ShapeOf) for a in sample.args) else {}


def reference(op: Op, sample: Sample, arrays: list[Any], attrs: dict[str, Any]) -> Any:
    plain = [list(a.values) if isinstance(a, ShapeOf) else a for a in arrays]
    assert op.ref is not None
    result = op.ref(*plain, **attrs)
    return [np.asarray(r) for r in result] if isinstance(result, (tuple, list)) else [np.asarray(result)]


def flat(arrays: list[Any]) -> list[Any]:
    return [
        b for a in arrays if not isinstance(a, (ShapeOf, int, float)) for b in (flat(a) if isinstance(a, list) else [a])
    ]


def lowered(op: Op, args: list[Any], attrs: dict[str, Any], arrays: list[Any]) -> PrimFunc:
    """The loop function of a call; ``args`` are `variables` of ``arrays``."""
    given = [
        [IntImm(v, "int64") for v in a.values] if isinstance(a, ShapeOf) else b
        for a, b in zip(arrays, args, strict=True)
    ]
    assert op.lower is not None
    tensors, inputs = as_placeholders(given)
    result = op.lower(*tensors, **attrs)
    outputs = [result] if isinstance(result, TensorValue) else list(result)
    func, extra = create_prim_func([t for t, _ in inputs], outputs)
    assert not extra, "the samples' symbols all stand alone in a shape"
    return func


def interpreted(func: PrimFunc, arrays: list[Any], *, vectorized: bool = True) -> list[Any]:
    """What the interpreter makes of a loop function that takes ``arrays``."""
    values = flat(arrays)
    probe = type(func)(func.params[: len(values)], func.body)
    symbols = symbol_values(probe, values)
    results = [
        np.empty(tuple(evaluate(d, symbols) for d in out.shape), dtypes.to_numpy(out.dtype))
        for out in func.params[len(values) :]
    ]
    run_prim_func(func, [*values, *results], vectorized=vectorized)
    return results


def tolerance(dtype: np.dtype[Any], actual: Any, expected: Any) -> None:
    if dtype.kind == "f":
        rtol = {2: 2e-3, 4: 2e-6, 8: 1e-14}[dtype.itemsize] * 20
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=rtol, equal_nan=True)
    else:
        np.testing.assert_array_equal(actual, expected)


def forms(*names: str) -> Any:
    """Each sample in each form. Where it has no symbols, ``symbolic`` is ``static``, which is tested once."""
    found = [
        pytest.param(op, sample, form, id=f"{ids(op)}-{ids(sample)}-{form}")
        for (op, sample), symbolic in zip(CASES, symbolic_cases(), strict=True)
        for form in dict.fromkeys(name if symbolic else name.replace("symbolic", "static") for name in names)
    ]
    return pytest.mark.parametrize(("op", "sample", "form"), found)


@functools.cache
def symbolic_cases() -> list[bool]:
    """Which samples have extents that symbols can stand for."""
    return [has_symbols(prepared(op, sample)) for op, sample in CASES]


def has_symbols(sample: Sample) -> bool:
    symbols = symbol_table(sample)
    if symbols is not None:
        variables(arrays_of(sample), symbols)
    return bool(symbols)


@forms("static", "symbolic")
def test_type_and_lowering_agree_with_the_reference(op: Op, sample: Sample, form: str) -> None:
    symbolic = form == "symbolic"
    sample = prepared(op, sample)
    arrays = arrays_of(sample)
    symbols = symbol_table(sample) if symbolic else None
    args = variables(arrays, symbols)
    call = op(*args, **sample.attrs)
    expected = reference(op, sample, arrays, call.attrs)
    whole = infer(call)
    types = whole.fields if isinstance(whole, TupleType) else (whole,)
    values = {v: extent for extent, v in (symbols or {}).items()}
    for ty, value in zip(types, expected, strict=True):
        assert isinstance(ty, TensorType)
        assert ty.dtype == dtypes.from_numpy(value.dtype)
        dims = tensor_dims(ty)
        assert dims is not None
        assert tuple(evaluate(d, values) for d in dims) == value.shape
    func = lowered(op, args, call.attrs, arrays)
    # one iteration at a time is slow: only where there are few
    small = sum(np.size(b) for b in flat(arrays)) * expected[0].size < 3000
    for vectorized in (True, False) if small else (True,):
        results = interpreted(func, arrays, vectorized=vectorized)
        for actual, value in zip(results, expected, strict=True):
            assert actual.shape == value.shape
            tolerance(value.dtype, actual, value)


def test_every_operator_with_a_lowering_has_a_reference_and_samples() -> None:
    missing = [name for name, op in OPS.items() if op.lower is not None and (op.ref is None or op.samples is None)]
    assert not missing
    undocumented = [name for name, op in OPS.items() if not op.doc]
    assert not undocumented


def test_builder_deduces_and_normalises() -> None:
    n = Var("n", prim_type("int64"))
    x = Var("x", TensorType(ShapeExpr((n, as_expr(784))), "float32"))
    w = Var("w", TensorType(ShapeExpr((as_expr(784), as_expr(128))), "float32"))
    b = Var("b", TensorType(ShapeExpr((as_expr(128),)), "float32"))
    bb = BlockBuilder()
    with bb.function("main", [x, w, b]):
        with bb.dataflow():
            lv = bb.emit(Op.get("relax.matmul")(x, w) + b)
            gv = bb.emit_output(Op.get("relax.nn.relu")(lv))
        bb.emit_func_output(gv)
    func = bb.finalize()["main"]
    dims = tensor_dims(func.ret_ty)  # type: ignore[union-attr, arg-type]
    assert dims is not None and dims[0] is n
    assert [binding.var.name for block in func.body.blocks for binding in block.bindings] == ["lv", "lv1", "gv"]  # type: ignore[union-attr]
    assert TupleType is not None


@pytest.mark.parametrize(("op", "sample"), CASES, ids=ids)
def test_print_and_parse_give_the_same_call(op: Op, sample: Sample) -> None:
    sample = prepared(op, sample)
    params: list[Var] = []
    symbols = symbol_table(sample)

    def fresh(value: Any) -> Any:
        if isinstance(value, list):
            return [fresh(v) for v in value]
        if isinstance(value, Var):
            params.append(Var(f"x{len(params)}", value.ty))
            return params[-1]
        return value

    args = [
        list(a.values) if isinstance(a, ShapeOf) else fresh(b)
        for a, b in zip(arrays_of(sample), variables(arrays_of(sample), symbols), strict=True)
    ]
    bb = BlockBuilder()
    bb.begin_function("main", params, {"global_symbol": "main"})
    func = bb.end_function(bb.emit(op_call(op, args, sample.attrs)))
    again = from_source(func.script())
    assert_structural_equal(func, again)


def op_call(op: Op, args: list[Any], attrs: dict[str, Any]) -> Call:
    """The call with arguments in the signature's own order (no conveniences)."""
    plain = Op(op.name, op.doc, op.params, op.infer)
    bound = plain(*args, **attrs)
    return Call(op, bound.args, bound.attrs)
