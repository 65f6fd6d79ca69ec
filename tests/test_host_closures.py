"""Functions as values in native code: local functions; closures made, passed, returned, extended and called."""

from __future__ import annotations

import copy
import gc
import pickle
import random
import threading
import weakref

import numpy as np
import pytest
from form_tools import both, machine, module, same, settled

import supple
from supple.base.errors import ArgumentError, ExecutionError
from supple.interp.graph import Interpreter
from supple.ir.structural import assert_structural_equal
from supple.passes.dead_code import dead_code
from supple.passes.lift_functions import lift_functions
from supple.relax.transform import LambdaLift
from supple.script import from_source
from supple.verify.well_formed import check_module

N = 'R.Tensor(("n", 4), "float32")'
F = 'R.Callable((R.Tensor((4,), "float32"),), R.Tensor((4,), "float32"))'
V = 'R.Tensor((4,), "float32")'


def rows(n: int = 3, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, (n, 4)).astype("f4")


def vector(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, 4).astype("f4")


# -------------------------------------------------------------------------------------------------------------- lifting

BEFORE = f"""
@I.ir_module
class Module:
    @R.function
    def main(x: {N}, y: {N}) -> {N}:
        n = T.int64()
        @R.function
        def inner(a: R.Tensor((n, 4), "float32")) -> R.Tensor((n, 4), "float32"):
            b = R.add(a, x)
            return b
        z = inner(y)
        return z
"""

AFTER = f"""
@I.ir_module
class Module:
    @R.function
    def main(x: {N}, y: {N}) -> {N}:
        n = T.int64()
        inner = R.make_closure(Module.inner, (x,))
        z: R.Tensor((n, 4), "float32") = Module.inner(x, y)
        return z

    @R.function(private=True)
    def inner(x: {N}, a: {N}) -> {N}:
        n = T.int64()
        b = R.add(a, x)
        return b
"""


def test_a_local_function_becomes_one_of_the_module():
    lifted = lift_functions(module(BEFORE))
    check_module(lifted)
    assert_structural_equal(lifted, module(AFTER))
    assert_structural_equal(LambdaLift()(module(BEFORE)), lifted)
    assert_structural_equal(from_source(lifted.script()), lifted)
    x, y = rows(), rows(seed=1)
    same(Interpreter(lifted).run("main", x, y), Interpreter(module(BEFORE)).run("main", x, y))
    assert "make_closure" not in dead_code(lifted).script()


def test_a_module_without_local_functions_is_left_alone():
    mod = module(AFTER)
    assert lift_functions(mod) is mod


def test_a_symbol_that_no_shape_gives_is_passed():
    text = """
@R.function
def main(x: R.Tensor(("n * 2",), "float32"), k: R.Prim("int64"), y: R.Tensor(("n",), "float32")):
    n = T.int64()
    @R.function
    def inner(a: R.Tensor((n,), "float32")) -> R.Tensor((n + 1,), "float32"):
        b = R.zeros(R.shape([n + 1]), "float32")
        return b
    z = inner(y)
    return z
"""
    both(text, np.ones(6, "f4"), 3, np.ones(3, "f4"))
    lifted = lift_functions(module(text))
    check_module(lifted)
    inner = lifted["inner"]
    assert [p.name for p in inner.params] == ["n", "a"]


def test_a_local_function_checks_the_symbols_around_it():
    text = """
@R.function
def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(ndim=1, dtype="float32")):
    n, m = T.int64(), T.int64()
    @R.function
    def inner(a: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
        return a
    w = R.match_cast(y, R.Tensor((m,), "float32"))
    z = inner(w)
    return z
"""
    both(text, np.ones(3, "f4"), np.ones(3, "f4"))
    vm = machine(text)
    with pytest.raises(ArgumentError, match="n is 3"):
        vm["main"](np.ones(3, "f4"), np.ones(4, "f4"))


NESTED = f"""
@R.function
def main(x: {V}, c: R.Tensor((), "bool")):
    k = R.add(x, x)
    @R.function
    def outer(a: {V}) -> {V}:
        m = R.multiply(a, k)
        @R.function
        def inner(b: {V}) -> {V}:
            r = R.add(R.add(b, m), x)
            return r
        if c:
            u = inner(a)
        else:
            v = inner(m)
            u = inner(v)
        return u
    s = outer(x)
    t = outer(s)
    return (s, t)
"""


def test_local_functions_inside_local_functions():
    for flag in (True, False):
        both(NESTED, vector(), np.array(flag))
    check_module(lift_functions(module(NESTED)))


RECURSIVE = f"""
@R.function
def main(x: {V}, k: R.Tensor((), "int32"), s: {V}):
    @R.function
    def power(a: {V}, n: R.Tensor((), "int32")) -> {V}:
        c = R.less(n, R.const(1, "int32"))
        if c:
            r = a
        else:
            m = R.subtract(n, R.const(1, "int32"))
            b = power(R.add(a, s), m)
            r = R.add(b, x)
        return r
    z = power(x, k)
    return z
"""


def test_a_local_function_that_calls_itself():
    for depth in (0, 1, 7):
        both(RECURSIVE, vector(), np.array(depth, "i4"), vector(1))
    vm = machine(RECURSIVE)
    before = settled()
    for _ in range(2):
        with pytest.raises(RecursionError):
            vm["main"](vector(), np.array(1_000_000, "i4"), vector(1))
    vm["main"](vector(), np.array(1000, "i4"), vector(1))
    assert settled() == before


# ------------------------------------------------------------------------------------------------------------- closures

RETURNED = f"""
@R.function(pure=False)
def main(x: {V}, y: {V}):
    k = R.add(x, y)
    t = (x, k)
    @R.function
    def inner(a: {V}) -> {V}:
        b = R.multiply(a, t[1])
        return R.add(b, t[0])
    return inner
"""


def test_a_closure_outlives_its_call_and_keeps_the_executable():
    before = settled()
    vm = machine(RETURNED)
    x, y = vector(), vector(1)
    alive, home = weakref.ref(x), weakref.ref(vm.module)
    closure = vm["main"](x, y)
    wanted = vector(2) * (x + y) + x
    for _ in range(30):  # what it captured is not overwritten by later calls
        vm["main"](vector(5), vector(6))
    del vm, x
    gc.collect()
    assert alive() is not None
    assert home() is not None
    for _ in range(3):
        result = closure(vector(2))
        assert isinstance(result, np.ndarray)
        np.testing.assert_array_equal(result, wanted)
    np.testing.assert_array_equal(closure(a=vector(2)), wanted)
    del closure, result
    gc.collect()
    assert alive() is None
    assert home() is None
    assert settled() == before


def test_what_a_closure_captured_can_change():
    vm = machine(f"""
@R.function
def main(x: {V}):
    @R.function
    def inner(a: {V}) -> {V}:
        return R.add(a, x)
    return inner
""")
    x = np.zeros(4, "f4")
    closure = vm["main"](x)
    x[:] = 5
    np.testing.assert_array_equal(closure(np.ones(4, "f4")), np.full(4, 6))


def test_a_closure_checks_its_arguments():
    vm = machine(RETURNED)
    closure = vm["main"](vector(), vector(1))
    before = settled()
    for bad, message in (
        ((), "expected 1 argument"), ((vector(), vector()), "expected 1 argument"), ((3,), "parameter a"),
        ((rows(),), "parameter a"), ((np.ones(5, "f4"),), r"got \(5,\)"), ((np.ones(4, "f8"),), "parameter a"),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match=message):
            closure(*bad)
    with pytest.raises(ArgumentError, match="no parameter 'x'"):
        closure(x=vector())
    assert settled() == before


APPLY = f"""
@I.ir_module
class Module:
    @R.function
    def double(a: {V}) -> {V}:
        return R.add(a, a)

    @R.function
    def twice(f: {F}, a: {V}) -> {V}:
        b = f(a)
        c = f(b)
        return c

    @R.function
    def choose(c: R.Tensor((), "bool"), x: {V}) -> {F}:
        @R.function
        def shift(a: {V}) -> {V}:
            return R.add(a, x)
        if c:
            f = Module.double
        else:
            f = shift
        return f

    @R.function
    def main(x: {V}, c: R.Tensor((), "bool")):
        f = Module.double
        @R.function
        def shift(a: {V}) -> {V}:
            return R.subtract(a, x)
        u = Module.twice(f, x)
        v = Module.twice(shift, u)
        g = Module.choose(c, v)
        w = g(v)
        z = Module.twice(g, w)
        return (u, v, w, z)
"""


def test_functions_are_arguments_results_and_values_of_branches():
    for flag in (True, False):
        both(APPLY, vector(), np.array(flag))


def test_functions_from_python_and_back():
    before = settled()
    vm = machine(APPLY)
    x = vector()
    f = vm["choose"](np.array(False), x)
    np.testing.assert_array_equal(f(x), x + x)
    np.testing.assert_array_equal(vm["twice"](f, x), x + x + x)
    calls = []

    def python(a):
        calls.append(a)
        return np.asarray(a) * 2

    np.testing.assert_array_equal(vm["twice"](python, x), x * 4)
    np.testing.assert_array_equal(vm["twice"](vm["double"], x), x * 4)
    assert len(calls) == 2
    other = machine(APPLY)
    np.testing.assert_array_equal(other["twice"](f, x), x + x + x)  # another executable's closure
    with pytest.raises(ArgumentError, match="parameter f: expected a function, got int 3"):
        vm["twice"](3, x)

    def wrong(a):
        return np.zeros(5, "f4")

    with pytest.raises(ExecutionError, match="result of f"):
        vm["twice"](wrong, x)

    def fails(a):
        raise ZeroDivisionError("in a callback")

    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            vm["twice"](fails, x)
    with pytest.raises(RecursionError):
        loop = lambda a: vm["twice"](loop, a)  # noqa: E731
        vm["twice"](loop, x)
    del f, loop, vm, other
    calls.clear()
    assert settled() == before


def test_closures_reach_python_and_come_back():
    got = []

    def keep(f):
        got.append(f)
        return f

    supple.register_global_func("test.closures.keep", keep, override=True)
    before = settled()
    vm = machine(f"""
@R.function(pure=False)
def main(x: {V}):
    k = R.add(x, x)
    @R.function
    def inner(a: {V}) -> {V}:
        return R.add(a, k)
    f = R.call_packed("test.closures.keep", inner, ty_args={F})
    t = R.call_packed("test.closures.keep", (inner, x), ty_args=R.Tuple({F}, {V}))
    g = t[0]
    y = f(x)
    z = g(y)
    return z
""")
    x = vector()
    np.testing.assert_array_equal(vm["main"](x), x + (x + x) + (x + x))
    np.testing.assert_array_equal(np.asarray(got[0](x)), x + (x + x))
    del vm
    np.testing.assert_array_equal(np.asarray(got[1][0](x)), x + (x + x))
    got.clear()
    gc.collect()
    assert settled() == before
    supple.remove_global_func("test.closures.keep")


PARTIAL = f"""
@I.ir_module
class Module:
    @R.function(private=True)
    def blend(a: {V}, b: {V}, c: {V}) -> {V}:
        return R.add(R.multiply(a, b), c)

    @R.function(private=True, pure=False)
    def finish(f: R.Callable, c: {V}) -> {V}:
        r = R.invoke_closure(f, (c,), ty_args={V})
        return r

    @R.function(pure=False)
    def main(x: {V}, y: {V}):
        f = R.make_closure(Module.blend, (x,))
        g = R.make_closure(f, (y,))
        h = R.make_closure(g, (x,))
        a = R.invoke_closure(f, (x, y), ty_args={V})
        b = R.invoke_pure_closure(f, (y, x), ty_args={V})
        c = R.invoke_closure(g, (y,), ty_args={V})
        d = R.invoke_closure(h, R.tuple(), ty_args={V})
        e = Module.finish(g, c)
        i = R.make_closure(Module.blend, R.tuple())
        j = R.invoke_closure(i, (x, y, e), ty_args={V})
        return (a, b, c, d, e, j)
"""


def test_closures_of_closures():
    both(PARTIAL, vector(), vector(1))


def test_wrong_calls_of_closures_are_named():
    text = f"""
@R.function(pure=False)
def main(f: R.Any, x: {V}):
    a = R.invoke_closure(f, (x, x), ty_args={V})
    g = R.make_closure(f, (x, x, x))
    return (a, g)
"""
    vm = machine(text)
    one = machine(RETURNED)
    for bad, kind in ((3, "a number"), ("text", "a string"), (vector(), "a tensor"), (None, "a tuple")):
        with pytest.raises(ExecutionError, match=f"expected a function, got {kind}"):
            vm["main"](bad, vector())
    with pytest.raises(ArgumentError, match="expected 1 argument"):  # another executable's closure is Python's
        vm["main"](one["main"](vector(), vector()), vector())
    inside = f"""
@R.function(pure=False)
def main(x: {V}):
    @R.function
    def inner(a: {V}) -> {V}:
        return R.add(a, x)
    t: R.Any = R.call_packed("test.closures.same", inner)
    BODY
    return a
"""
    supple.register_global_func("test.closures.same", lambda f: f, override=True)
    for body, message in (
        (f"a = R.invoke_closure(t, (x, x), ty_args={V})", "the function takes 1 arguments, got 2"),
        ("a = R.make_closure(t, (x, x))", "the function takes 1 arguments, 2 are given"),
        ('a = R.invoke_closure(t, (x,), ty_args=R.Tensor((5,), "float32"))', "result of t"),
        ('a = R.invoke_closure(t, (R.const(1, "int32"),), ty_args=R.Any)', "parameter a"),
    ):
        broken = machine(inside.replace("BODY", body))
        before = settled()
        for _ in range(2):
            with pytest.raises((ExecutionError, ArgumentError), match=message):
                broken["main"](vector())
        assert settled() == before
    supple.remove_global_func("test.closures.same")


TWICE = f"""
@R.function
def main(f: {F}, x: {V}):
    a = f(x)
    b = f(a)
    return (a, b)
"""


def test_python_functions_with_arguments_fixed():
    vm = machine(f"""
@R.function(pure=False)
def main(f: R.Callable, x: {V}):
    g = R.make_closure(f, (x, x))
    a = R.invoke_closure(g, (x,), ty_args={V})
    return (a, g)
""")
    x = vector()
    both(TWICE, lambda a: np.asarray(a) + 1, x)
    a, g = vm["main"](lambda *v: sum(np.asarray(i) for i in v), x)
    np.testing.assert_allclose(a, 3 * x, rtol=1e-6)
    np.testing.assert_allclose(np.asarray(g()), 2 * x, rtol=1e-6)


def test_registered_functions_are_values():
    supple.register_global_func("test.closures.plus", lambda a: np.asarray(a) + 1, override=True)
    text = f"""
@I.ir_module
class Module:
    plus = R.ExternFunc("test.closures.plus")

    @R.function(private=True, pure=False)
    def apply(f: R.Any, a: {V}) -> {V}:
        r = R.invoke_closure(f, (a,), ty_args={V})
        return r

    @R.function(pure=False)
    def main(x: {V}):
        f = R.ExternFunc("test.closures.plus")
        a = Module.apply(f, x)
        return a
"""
    both(text, vector())
    supple.remove_global_func("test.closures.plus")


def test_long_chains_of_closures_are_released():
    """Releasing one releases the next: that takes no stack."""
    before = settled()
    vm = machine(f"""
@R.function
def wrap(f: {F}) -> {F}:
    @R.function
    def inner(a: {V}) -> {V}:
        b = f(a)
        return b
    return inner
""")
    f = vm["wrap"](lambda a: a)
    for _ in range(40_000):
        f = vm["wrap"](f)
    with pytest.raises(RecursionError):
        f(vector())
    del f
    other = machine(f"""
@R.function
def wrap(f: {F}) -> {F}:
    @R.function
    def inner(a: {V}) -> {V}:
        b = f(a)
        return b
    return inner
""")
    f = vm["wrap"](lambda a: a)
    for _ in range(3_000):
        f = other["wrap"](vm["wrap"](f))
    del f, vm, other
    assert settled() == before


def test_closures_with_scalars_shapes_and_tuples():
    text = """
@R.function
def main(x: R.Tensor(("n", "m"), "float32"), k: R.Prim("int64")):
    n, m = T.int64(), T.int64()
    s = R.shape([m, n])
    j = R.prim_value(k + 1)
    t = (x, (s, x))
    @R.function
    def inner(a: R.Tensor((n, m), "float32")):
        u = R.reshape(a, R.shape([m, n]))
        v = t[1]
        w = R.add(a, v[1])
        y = R.zeros(R.shape([j]), "float32")
        return (u, w, s, y)
    return inner(x)
"""
    both(text, rows(), 3)


def test_in_place_writes_through_a_closure():
    text = f"""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def increment(B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = B[i] + T.float32(1)

    @R.function(pure=False)
    def main(x: {V}):
        @R.function(pure=False)
        def bump(a: {V}) -> {V}:
            u = R.call_tir_inplace(Module.increment, (x,), [0], out_ty={V})
            v = R.call_tir_inplace(Module.increment, (a,), [0], out_ty={V})
            return v
        k = R.add(x, x)
        w = bump(k)
        return (k, w, x)
"""
    both(text, vector())


def test_closures_from_four_threads():
    vm = machine(APPLY)
    shared = vm["choose"](np.array(False), np.ones(4, "f4"))
    before = settled()
    errors = []

    def run(seed: int) -> None:
        try:
            for _ in range(60):
                x = vector(seed)
                u, *_ = vm["main"](x, np.array(True))
                np.testing.assert_array_equal(u, x * 4)
                f = vm["choose"](np.array(False), x)
                np.testing.assert_array_equal(vm["twice"](f, x), x + x + x)
                np.testing.assert_array_equal(vm["twice"](shared, x), x + np.float32(1) + np.float32(1))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert settled() == before


# -------------------------------------------------------------------------------------------------------------- random


KINDS = (
    "add", "add", "sub", "call", "call", "local", "closure", "if", "inplace", "tuple", "higher", "bump", "view", "same",
    "number", "match",
)  # fmt: skip


class Writer:
    """A random program of local functions, closures, in-place calls, branches and tuples over vectors of four."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def body(self, values: list[str], functions: list[str], depth: int, steps: int, indent: int) -> list[str]:
        """Lines that end with ``return``; ``values`` and ``functions`` are what is visible."""
        rng, lines, pad = self.rng, [], "    " * indent
        values, functions = list(values), list(functions)
        for _ in range(steps):
            name = self.name()
            kind = rng.choice(KINDS)
            a, b = rng.choice(values), rng.choice(values)
            if kind in ("add", "sub"):
                lines.append(f"{pad}{name} = R.{'add' if kind == 'add' else 'subtract'}({a}, {b})")
            elif kind == "call" and functions:
                lines.append(f"{pad}{name} = {rng.choice(functions)}({a})")
            elif kind == "local" and depth < 3:
                param = self.name()
                lines.append(f"{pad}@R.function(pure=False)")
                lines.append(f"{pad}def {name}({param}: {V}) -> {V}:")
                lines += self.body([*values, param], functions, depth + 1, rng.randrange(1, 4), indent + 1)
                functions.append(name)
                continue
            elif kind == "closure":
                closure = self.name()
                lines.append(f"{pad}{closure} = R.make_closure(Module.mix, ({a},))")
                lines.append(f"{pad}{name} = R.invoke_closure({closure}, ({b},), ty_args={V})")
            elif kind == "if":
                lines.append(f"{pad}if c:")
                lines += self.branch(name, values, functions, indent + 1)
                lines.append(f"{pad}else:")
                lines += self.branch(name, values, functions, indent + 1)
            elif kind == "inplace":
                fresh = self.name()
                lines.append(f"{pad}{fresh} = R.add({a}, {b})")
                lines.append(f"{pad}{name} = R.call_tir_inplace(Module.scale, ({b}, {fresh}), [1], out_ty={V})")
                if rng.random() < 0.5:
                    values.append(fresh)
            elif kind == "tuple":
                pair = self.name()
                lines.append(f"{pad}{pair} = ({a}, ({b}, {a}))")
                lines.append(f"{pad}{name} = {pair}[1][0]")
            elif kind == "bump":
                lines.append(f"{pad}{name} = R.call_tir_inplace(Module.increment, ({a},), [0], out_ty={V})")
            elif kind == "view":
                square = self.name()
                lines.append(f"{pad}{square} = R.reshape({a}, R.shape([2, 2]))")
                lines.append(f"{pad}{name} = R.memory.view({square}, R.shape([4]), R.tuple(), R.tuple())")
            elif kind == "same":
                lines.append(f'{pad}{name} = R.call_packed("test.closures.same", {a}, ty_args={V})')
            elif kind == "number":
                lines.append(f'{pad}{name} = R.full(R.shape([4]), R.const({rng.randrange(9)}.0, "float32"), "float32")')
            elif kind == "match":
                lines.append(f"{pad}{name} = R.match_cast({a}, {V})")
            elif kind == "higher" and functions:
                lines.append(f"{pad}{name} = Module.twice({rng.choice(functions)}, {a})")
            else:
                continue
            values.append(name)
        if depth == 0:
            lines.append(f"{pad}return ({', '.join(rng.choice(values) for _ in range(4))}, {values[-1]})")
        else:
            lines.append(f"{pad}return {rng.choice(values)}")
        return lines

    def branch(self, name: str, values: list[str], functions: list[str], indent: int) -> list[str]:
        pad, rng = "    " * indent, self.rng
        inner = self.name()
        if functions and rng.random() < 0.5:
            first = f"{pad}{inner} = {rng.choice(functions)}({rng.choice(values)})"
        else:
            first = f"{pad}{inner} = R.add({rng.choice(values)}, {rng.choice(values)})"
        return [first, f"{pad}{name} = R.subtract({inner}, {rng.choice(values)})"]

    def text(self) -> str:
        body = "\n".join(self.body(["x", "y"], [], 0, self.rng.randrange(4, 14), 2))
        function = F[:-1] + ", purity=False)"
        return f"""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def scale(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = B[i] * A[i]

    @T.prim_func(private=True)
    def increment(B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = B[i] + T.float32(1)

    @R.function(private=True)
    def mix(a: {V}, b: {V}) -> {V}:
        return R.subtract(R.add(a, a), b)

    @R.function(private=True, pure=False)
    def twice(f: {function}, a: {V}) -> {V}:
        b = f(a)
        d = f(b)
        return d

    @R.function(pure=False)
    def main(x: {V}, y: {V}, c: R.Tensor((), "bool")):
{body}
"""


@pytest.mark.parametrize("seed", range(24))
def test_random_programs_agree_with_the_interpreter(seed):
    supple.register_global_func("test.closures.same", lambda value: value, override=True)
    text = Writer(seed).text()
    for flag in (True, False):
        both(text, vector(seed), vector(seed + 1), np.array(flag))


def test_a_copy_of_a_closure_holds_a_reference_of_its_own():
    vm = machine(f"""
@R.function
def main(x: {V}):
    @R.function
    def more(y: {V}) -> {V}:
        return R.add(x, y)
    return more
""")
    before = settled()
    first = vm["main"](vector(1))
    second = copy.copy(first)
    del first
    others = [vm["main"](vector(n)) for n in range(2, 6)]
    same(second(vector(9)), vector(1) + vector(9))
    with pytest.raises(TypeError, match="no deep copy"):
        copy.deepcopy(second)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(second)
    del second, others
    assert settled() == before
