"""Generated programs: printing and reading back gives the same program, equality implies equal hashes."""

from __future__ import annotations

import contextlib
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Cast, Let, Var, const
from supple.ir.intrinsics import intrinsic
from supple.ir.loop import Buffer, BufferStore, For, ForKind, PrimFunc, SeqStmt
from supple.ir.structural import assert_structural_equal, structural_equal, structural_hash
from supple.ir.types import prim_type
from supple.script import from_source

INTS = ["int32", "int64", "int8", "uint8", "uint32"]
FLOATS = ["float32", "float16", "float64"]


class Maker:
    """Random well-typed scalar expressions over a few variables and a buffer."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.variables = {d: Var(f"x_{d}", prim_type(d)) for d in [*INTS, *FLOATS, "bool"]}
        self.buffers = {d: Buffer(f"B_{d}", (const(8),), d) for d in [*INTS, *FLOATS]}

    def literal(self, dtype: str):
        if dtype == "bool":
            return const(self.rng.random() < 0.5)
        if dtype in FLOATS:
            special = [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 0.1, -1e-7, 65504.0, 1e300]
            return const(self.rng.choice([*special, self.rng.uniform(-100, 100)]), dtype)
        low, high = (0, 200) if dtype.startswith("u") else (-100, 100)
        return const(self.rng.randint(low, high), dtype)

    def make(self, dtype: str, depth: int):
        if depth == 0 or self.rng.random() < 0.1:
            return self.literal(dtype) if self.rng.random() < 0.5 else self.variables[dtype]
        return self.rng.choice(self._choices(dtype))(dtype, depth - 1)

    def _choices(self, dtype: str):
        if dtype == "bool":
            return [self.compare, self.logic, self.negate, self.select, self.choose]
        common = [self.arithmetic, self.arithmetic, self.select, self.cast, self.choose, self.load, self.let]
        return [*common, self.math] if dtype in FLOATS else [*common, self.bits]

    def arithmetic(self, dtype, depth):
        kinds = [E.Add, E.Sub, E.Mul, E.Div, E.Min, E.Max, E.FloorDiv, E.FloorMod, E.Mod]
        return self.rng.choice(kinds)(self.make(dtype, depth), self.make(dtype, depth))

    def compare(self, _dtype, depth):
        operand = self.rng.choice([*INTS, *FLOATS, "bool"])
        kind = self.rng.choice([E.EQ, E.NE, E.LT, E.LE, E.GT, E.GE])
        return kind(self.make(operand, depth), self.make(operand, depth))

    def logic(self, dtype, depth):
        return self.rng.choice([E.And, E.Or])(self.make(dtype, depth), self.make(dtype, depth))

    def negate(self, dtype, depth):
        return E.Not(self.make(dtype, depth))

    def select(self, dtype, depth):
        return E.Select(self.make("bool", depth), self.make(dtype, depth), self.make(dtype, depth))

    def choose(self, dtype, depth):
        return intrinsic("if_then_else", self.make("bool", depth), self.make(dtype, depth), self.make(dtype, depth))

    def cast(self, dtype, depth):
        return Cast(dtype, self.make(self.rng.choice([*INTS, *FLOATS, "bool"]), depth))

    def load(self, dtype, depth):
        return BufferLoad(self.buffers[dtype], (self.make("int32", depth),))

    def let(self, dtype, depth):
        var = Var("let", prim_type(dtype))
        value = self.make(dtype, depth)
        outer, self.variables[dtype] = self.variables[dtype], var
        body = self.make(dtype, depth)
        self.variables[dtype] = outer
        return Let(var, value, body)

    def math(self, dtype, depth):
        name = self.rng.choice(["exp", "tanh", "sqrt", "floor", "pow", "copysign"])
        count = 2 if name in ("pow", "copysign") else 1
        return intrinsic(name, *(self.make(dtype, depth) for _ in range(count)))

    def bits(self, dtype, depth):
        name = self.rng.choice(["bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right", "bitwise_not"])
        count = 1 if name == "bitwise_not" else 2
        return intrinsic(name, *(self.make(dtype, depth) for _ in range(count)))

    def loop(self, depth: int):
        kind = self.rng.choice(list(ForKind)[:4])
        var = Var(self.rng.choice(["i", "x_int32", "T", "class"]), prim_type("int32"))
        low = self.rng.choice([const(0), const(2), self.variables["int32"], self.make("int32", 2)])
        extent = self.rng.choice([const(4), self.variables["int32"], self.make("int32", 2)])
        outer, self.variables["int32"] = self.variables["int32"], var
        body = self.statement(depth - 1)
        self.variables["int32"] = outer
        step = self.rng.choice([None, None, const(2)])
        return For(var, low, extent, kind, body, annotations=self.rng.choice([{}, {"k": 1}]), step=step)

    def statement(self, depth: int):
        if depth > 0 and self.rng.random() < 0.5:
            return self.loop(depth)
        if depth > 0 and self.rng.random() < 0.3:
            return SeqStmt((self.statement(depth - 1), self.statement(depth - 1)))
        dtype = self.rng.choice([*INTS, *FLOATS])
        return BufferStore(self.buffers[dtype], self.make(dtype, 3), (self.make("int32", 1),))

    def function(self) -> PrimFunc:
        params = (*self.variables.values(), *self.buffers.values())
        return PrimFunc(params, self.statement(3), None, {"global_symbol": "f"})


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_generated_loop_functions_read_back(seed):
    func = Maker(seed).function()
    text = func.script()
    again = from_source(text, check_well_formed=False)
    assert_structural_equal(func, again)
    assert structural_hash(func) == structural_hash(again)
    assert again.script() == text


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_equal_functions_hash_alike_and_others_differ(first, second):
    a, b, c = Maker(first).function(), Maker(first).function(), Maker(second).function()
    assert structural_equal(a, b) and structural_hash(a) == structural_hash(b)
    assert structural_equal(a, c) == (structural_hash(a) == structural_hash(c))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(["float16", "float32", "float64"]), st.floats(width=64))
def test_floats_read_back(dtype, value):
    e = const(value, dtype)
    func = PrimFunc((), E_store(e), None, {"global_symbol": "f"})
    assert structural_equal(func, from_source(func.script(), check_well_formed=False))


def E_store(e):
    from supple.ir.loop import Evaluate

    return Evaluate(e)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=20))
def test_names_and_strings_read_back(text):
    var = Var(text, prim_type("int32"))
    buffer = Buffer(text, (const(4),), "int32")
    func = PrimFunc((var, buffer), BufferStore(buffer, var, (var,)), None, {"global_symbol": "f", "text": text})
    again = from_source(func.script())
    assert_structural_equal(func, again)


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=200))
def test_no_text_crashes_the_parser(text):
    for program in (text, f"@R.function\ndef f(x: R.Tensor((2,), 'float32')):\n    return {text}\n"):
        with contextlib.suppress(ValueError):  # a DiagnosticError is one
            from_source(program)
