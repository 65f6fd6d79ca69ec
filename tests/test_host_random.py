"""Random graph functions against numpy: planning, escaping, views, tuples, branches and calls together."""

from __future__ import annotations

import gc
import random

import numpy as np
import pytest
from host_tools import build, op, sym, tensor

import supple
from supple.ir.expr import Call, TupleGetItem, Var
from supple.ir.graph import Tuple, constant
from supple.ops.calls import call_packed
from supple.runtime import VirtualMachine, native

KEEP = "test.random.keep"
KINDS = ("add", "multiply", "max", "relu", "matmul", "view", "tuple", "const", "packed", "if", "call")


class Program:
    """A random function and its meaning: every variable has a numpy function of the arguments."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.n = sym("n")
        self.squares = self.rng.random() < 0.7
        inner = build([Var("a", tensor(sym("k"), 4))], self.inner, "inner", private=True)
        self.inner_var = inner.get_global_var("inner")
        params = [Var("x", tensor(self.n, 4)), Var("y", tensor(self.n, 4)), Var("c", tensor(dtype="bool"))]
        self.meaning = None
        self.mod = build(params, self.main, mod=inner, pure=False)

    def inner(self, bb, a):
        return bb.emit(op("subtract", bb.emit(op("multiply", a, a)), a)) if self.squares else a

    def main(self, bb, x, y, c):
        self.c = c
        values = [(x, lambda e: e[0]), (y, lambda e: e[1])]
        weight = np.arange(16, dtype="f4").reshape(4, 4) / 16
        values.append((constant(np.full((1, 4), 0.5, "f4")), lambda e: np.full((1, 4), 0.5, "f4")))
        rows = values[:2]
        for _ in range(self.rng.randrange(4, 14)):
            rows.append(self.step(bb, rows, values[2], weight, 0))
        count = self.rng.randrange(1, 5)
        chosen = [self.rng.choice([*rows, values[2]]) for _ in range(count)]
        self.meaning = lambda e: tuple(f(e) for _, f in chosen)
        return bb.emit(Tuple(tuple(v for v, _ in chosen)))

    def step(self, bb, rows, const, weight, depth):
        rng = self.rng
        (a, fa), (b, fb) = rng.choice(rows), rng.choice(rows)
        kind = rng.choice(KINDS)
        if kind == "add":
            return bb.emit(op("add", a, b)), lambda e: fa(e) + fb(e)
        if kind == "multiply":
            return bb.emit(op("multiply", a, const[0])), lambda e: fa(e) * const[1](e)
        if kind == "max":
            return bb.emit(op("maximum", a, b)), lambda e: np.maximum(fa(e), fb(e))
        if kind == "relu":
            return bb.emit(op("nn.relu", a)), lambda e: np.maximum(fa(e), 0)
        if kind == "matmul":
            return bb.emit(op("matmul", a, constant(weight))), lambda e: fa(e) @ weight
        if kind == "view":
            flat = bb.emit(op("reshape", a, (-1,)))
            return bb.emit(op("reshape", flat, (self.n, 4))), fa
        if kind == "tuple":
            t = bb.emit(Tuple((a, Tuple((b, a)))))
            inside = bb.emit(TupleGetItem(t, 1))
            return bb.emit(TupleGetItem(inside, 0)), fb
        if kind == "const":
            return bb.emit(op("add", a, const[0])), lambda e: fa(e) + const[1](e)
        if kind == "packed" and depth == 0:
            return bb.emit(call_packed(KEEP, a, ty_args=tensor(self.n, 4))), fa
        if kind == "if" and depth < 2:
            bodies, meanings = [], []
            for _ in range(2):
                bb.begin_branch()
                local = list(rows)
                for _ in range(rng.randrange(0, 3)):
                    local.append(self.step(bb, local, const, weight, depth + 1))
                value, meaning = rng.choice(local)
                bodies.append(bb.end_branch(value))
                meanings.append(meaning)
            return bb.emit_if(self.c, *bodies), lambda e: meanings[0](e) if e[2] else meanings[1](e)
        result = bb.emit(Call(self.inner_var, (a,)))
        return result, (lambda e: fa(e) * fa(e) - fa(e)) if self.squares else fa


@pytest.mark.parametrize("seed", range(30))
def test_random_graphs_agree_with_numpy(seed):
    kept = []

    def keep(x):
        kept.append((x, np.array(x)))
        return x if seed % 2 else np.array(x)

    supple.register_global_func(KEEP, keep, override=True)
    program = Program(seed)
    before = native.live_objects(), native.live_arenas()
    vm = VirtualMachine(supple.compile(program.mod), supple.cpu())
    rng = np.random.default_rng(seed)
    results = []
    for n in (3, 0, 1, 8, 3):
        for flag in (True, False):
            arguments = (
                rng.uniform(-1, 1, (n, 4)).astype("f4"), rng.uniform(-1, 1, (n, 4)).astype("f4"), np.array(flag)
            )  # fmt: skip
            copies = [a.copy() for a in arguments]
            out = vm["main"](*arguments)
            wanted = program.meaning([a.astype("f8") for a in arguments[:2]] + [flag])
            results.append((out, wanted))
            for a, b in zip(arguments, copies, strict=True):
                np.testing.assert_array_equal(a, b)
    del vm
    gc.collect()
    for out, wanted in results:  # after all calls: nothing was overwritten by a later one
        for a, b in zip(out, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)
    for handle, copy in kept:
        np.testing.assert_array_equal(np.asarray(handle), copy)
    supple.remove_global_func(KEEP)
    kept.clear()
    del results, out, a, copies, arguments
    handle = copy = None
    gc.collect()
    assert (native.live_objects(), native.live_arenas()) == before
