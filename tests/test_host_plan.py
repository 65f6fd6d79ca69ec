"""Memory planning: live intermediates never overlap, sizes are symbolic, memory is reused, large functions compile."""

from __future__ import annotations

import random

import numpy as np
import pytest
from host_tools import build, machine, op, sym, tensor

import supple
from supple.ir import host as H
from supple.ir.expr import Add, IntImm, Max, Mul, Var, int64
from supple.ir.host import HostFunction, HostVar
from supple.ir.node import children
from supple.ops.calls import call_tir
from supple.passes.plan_memory import plan_memory
from supple.script import tirx as T
from supple.sym.simplify import evaluate


def program(seed: int) -> tuple[HostFunction, dict[int, Mul], list[Var]]:
    """A random host function of allocations, kernel calls and branches; its sizes by memory; its symbols."""
    rng = random.Random(seed)
    n, m = sym("n"), sym("m")
    sizes: dict[int, object] = {}

    def body(live: list[HostVar], depth: int) -> tuple[H.HostStmt, ...]:
        statements: list[H.HostStmt] = []
        for i in range(rng.randrange(2, 9)):
            memory = HostVar(f"t{depth}.{i}", "memory")
            size = rng.choice([
                int64(rng.choice([0, 1, 64, 100, 4096])), Mul(n, int64(rng.choice([4, 64, 100]))),
                Mul(Add(n, int64(1)), int64(4)), Mul(Mul(n, m), int64(4)), Mul(m, int64(8)), Max(n, m),
            ])  # fmt: skip
            sizes[id(memory)] = size
            statements.append(H.Alloc(memory, size))
            inputs = tuple(rng.sample(live, min(len(live), rng.randrange(0, 3))))
            statements.append(H.KernelCall("k", (*inputs, memory), (), (), None))
            live = [*live, memory]
            if depth < 2 and rng.random() < 0.3:
                statements.append(H.Branch(IntImm(1, "bool"), body(live, depth + 1), body(live, depth + 1), None))
        return tuple(statements)

    return HostFunction("f", (), (), body([], 0)), sizes, [n, m]


def paths(body):
    """Every sequence of statements that one run may execute (branches resolved both ways)."""
    runs = [[]]
    for statement in body:
        if isinstance(statement, H.Branch):
            sides = paths(statement.then) + paths(statement.otherwise)
            runs = [run + side for run in runs for side in sides][:24]
        else:
            runs = [[*run, statement] for run in runs]
    return runs


@pytest.mark.parametrize("seed", range(25))
def test_live_intermediates_never_overlap(seed):
    function, sizes, symbols = program(seed)
    planned = plan_memory(function)
    assert not any(isinstance(s, H.Alloc) for s in H.walk(planned.body))
    arena = next(s for s in planned.body if isinstance(s, H.Arena))
    for values in ((0, 0), (1, 1), (3, 200), (200, 3), (63, 64), (1000, 1000)):
        table = dict(zip(symbols, values, strict=True))
        total = evaluate(arena.nbytes, table)
        offsets = {id(s.memory): evaluate(s.offset, table) for s in H.walk(planned.body) if isinstance(s, H.At)}
        for memory, offset in offsets.items():
            assert offset % 64 == 0
            assert offset + evaluate(sizes[memory], table) <= total
        for run in paths(planned.body):
            last = {}
            for position, statement in enumerate(run):
                for var in children(statement):
                    if isinstance(var, HostVar):
                        last[id(var)] = position
            live = {}
            for position, statement in enumerate(run):
                if isinstance(statement, H.At):
                    start = offsets[id(statement.memory)]
                    end = start + evaluate(sizes[id(statement.memory)], table)
                    for other, (a, b) in live.items():
                        if last[other] >= position and start < b and a < end:
                            raise AssertionError(f"seed {seed}: overlap at {values}")
                    live[id(statement.memory)] = (start, end)


def arena_of(mod):
    text = supple.compile(mod).program.text
    return next(line.strip() for line in text.splitlines() if "= arena(" in line)


def test_a_chain_needs_two_places():
    def chain(length):
        def body(bb, x):
            for _ in range(length):
                x = bb.emit(op("add", x, x))
            return x

        return build([Var("x", tensor(sym("n"), 16))], body)

    assert arena_of(chain(3)) == arena_of(chain(12)) == "arena = arena(n * 64 + n * 64)"


def test_smaller_sizes_reuse_larger_places():
    def body(bb, x):
        a = bb.emit(op("add", x, x))
        b = bb.emit(op("sum", a, axis=[1]))
        c = bb.emit(op("add", b, b))
        return bb.emit(op("add", c, c))

    assert arena_of(build([Var("x", tensor(sym("n"), 32))], body)).count("n * 128") == 1


def test_objects_are_released_after_their_last_use():
    name = "test.plan.release"
    supple.register_global_func(name, lambda x: None, override=True)

    def body(bb, x):
        for _ in range(5):
            y = bb.emit(op("add", x, x))
            bb.emit(supple.ops.calls.call_packed(name, y))
        return x

    ex = supple.compile(build([Var("x", tensor(sym("n")))], body, pure=False))
    assert ex.program.text.count("release") >= 10
    counts = []
    supple.register_global_func(name, lambda x: counts.append(supple.runtime.native.live_objects()), override=True)
    ex["main"](np.ones(3, "f4"))
    assert len(set(counts)) == 1
    supple.remove_global_func(name)


@T.prim_func(private=True)
def twice(X: T.Buffer(("n",), "float32"), Y: T.Buffer(("n",), "float32")):
    n = T.int64()
    for i in T.serial(n):
        Y[i] = X[i] + X[i]


def test_thousands_of_bindings():
    n = sym("n")

    def body(bb, x):
        var = bb.add_func(twice, "twice")
        zero = bb.emit(op("subtract", x, x))
        for _ in range(2000):
            zero = bb.emit(call_tir(var, (zero,), tensor(n)))
        return zero

    f = machine(build([Var("x", tensor(n))], body))["main"]
    np.testing.assert_array_equal(f(np.ones(4, "f4")), np.zeros(4))
