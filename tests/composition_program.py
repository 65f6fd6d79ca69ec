"""A program of random operators with symbolic shapes, and what each of its values is by numpy (see compositions.py)."""

from __future__ import annotations

import collections
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from supple.base import dtypes
from supple.base.errors import DiagnosticError, InternalError
from supple.build.block_builder import BlockBuilder
from supple.ir.expr import Expr, IntImm, TupleGetItem, Var, as_expr
from supple.ir.graph import ShapeExpr, Tuple, constant
from supple.ir.module import IRModule
from supple.ir.op import Op
from supple.ir.types import TensorType, TupleType, prim_type
from supple.passes.dead_code import dead_code
from supple.sym.relate import tensor_dims
from supple.sym.simplify import SHAPES, evaluate

FLOATS = ["float32", "float32", "float32", "float64", "float16", "bfloat16"]
INTS = ["int32", "int64", "int8", "uint8", "uint64"]
SIZES = [0, 1, 2, 3, 4, 5, 8, 17]
LARGEST = 60_000  # elements: programs that grow beyond are not run at those sizes
HALF = ("float16", "bfloat16")
EPS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}


class TooLargeError(Exception):
    """A value with too many elements."""


@dataclass(frozen=True)
class Size:
    """A dimension among the arguments of a step: its number goes to the meaning."""

    expr: Expr


class Env:
    """One run by numpy: arrays of the parameters, numbers of the symbols, values known so far."""

    def __init__(self, symbols: dict[Var, int], arrays: Sequence[Any]) -> None:
        self.symbols, self.arrays = symbols, list(arrays)
        self.known: dict[int, Any] = {}


class Value:
    """A value of the program. ``exact``: the same bits everywhere, so order and equality mean something; ``small``:
    its magnitude is at most 8, so sums of products stay exact. ``eps`` and the ancestors bound the error otherwise."""

    def __init__(
        self, expr: Expr, meaning: Callable[[Env], Any], parents: Sequence[Value], *, exact: bool, small: bool
    ) -> None:
        self.expr, self.meaning, self.exact, self.small = expr, meaning, exact, small
        assert isinstance(expr.ty, TensorType) and expr.ty.dtype is not None  # type: ignore[attr-defined]
        self.dtype: str = expr.ty.dtype  # type: ignore[attr-defined]
        own = EPS.get(self.dtype, 0.0)
        self.eps = max([own, *(p.eps for p in parents if not exact)])
        self.ancestors = {self, *(a for p in parents for a in p.ancestors)}

    @property
    def dims(self) -> tuple[Expr, ...]:
        return dims_of(self.expr)

    @property
    def ndim(self) -> int:
        return len(self.dims)

    def array(self, env: Env) -> Any:
        """By numpy."""
        if id(self) not in env.known:
            env.known[id(self)] = self.meaning(env)
        return env.known[id(self)]

    def __hash__(self) -> int:
        return id(self)


def dims_of(x: Any) -> tuple[Expr, ...]:
    found = tensor_dims(x.ty)
    assert found is not None
    return found


def number(dim: Expr) -> int | None:
    """A dimension's number, if it is one."""
    return dim.value if isinstance(dim, IntImm) else None


def same(a: Expr, b: Expr) -> bool:
    return SHAPES.equal(a, b) is True


def is_float(x: Value) -> bool:
    return dtypes.is_float(x.dtype)


def is_int(x: Value) -> bool:
    return dtypes.is_int(x.dtype)


def wide(a: Any) -> Any:
    """16-bit floats as float32."""
    return a.astype("float32") if dtypes.from_numpy(a.dtype) in HALF else a


def as_dtype(a: Any, dtype: str) -> Any:
    """The result in the deduced dtype: floats rounded, integers wrapped."""
    a = np.asarray(a)
    wanted = dtypes.to_numpy(dtype)
    if a.dtype == wanted:
        return a
    kinds = dtypes.is_float(dtypes.from_numpy(a.dtype)), dtypes.is_float(dtype)
    assert kinds[0] == kinds[1], f"the meaning is {a.dtype}, the deduced dtype {dtype}"
    return a.astype(wanted)


class Program:
    """A random program under construction."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.data = np.random.default_rng(seed)
        self.symbols = [Var(name, prim_type("int64")) for name in "nm"]
        self.bb = BlockBuilder()
        self.pool: list[Value] = []
        self.used: collections.Counter[str] = collections.Counter()
        self.special = self.rng.random() < 0.1

    # ---------------------------------------------------------------------------------------------------- construction

    def param(self, place: int) -> Var:
        n, m = self.symbols
        c = as_expr(self.rng.choice([1, 2, 3, 4, 6]))
        shapes: list[tuple[Expr, ...]] = [
            (n, c), (n, m), (m,), (n,), (c,), (n * 2, c), (n + 1, m), (as_expr(2), n, c), (n, m, c), (c, m), (m, n), (),
            (as_expr(1), n), (n, as_expr(1)), (n * m,), (as_expr(1), c, n, m),
        ]  # fmt: skip
        shape = self.rng.choice([(n, c), (n, m)]) if place == 0 else self.rng.choice(shapes)
        if place == 1 and self.rng.random() < 0.5:
            shape = (m, *self.rng.choice([(), (c,), (n,)]))
        dtype = self.rng.choice([*FLOATS, *FLOATS, *INTS, "bool"])
        return Var(f"x{place}", TensorType(ShapeExpr(shape), dtype))

    def build(self, steps: int, families: Mapping[Callable[[Program], Any], int]) -> IRModule:
        params = [self.param(p) for p in range(self.rng.randint(2, 4))]
        bound = {d for v in params for d in dims_of(v) if isinstance(d, Var)}
        for symbol in self.symbols:
            if symbol not in bound:
                params.append(Var(f"x{len(params)}", TensorType(ShapeExpr((symbol,)), "float32")))
        for place, var in enumerate(params):
            self.pool.append(Value(var, lambda env, p=place: env.arrays[p], [], exact=True, small=True))
        self.params = params
        with self.bb.function("main", params):
            with self.bb.dataflow():
                for _ in range(3 * steps):
                    if self.used.total() == steps:
                        break
                    family = self.rng.choices(list(families), list(families.values()))[0]
                    try:
                        made = family(self)
                    except DiagnosticError as error:
                        if isinstance(error, InternalError):
                            raise
                        continue  # sizes that are known not to fit
                    if made:
                        self.used[family.__name__] += 1
                        self.pool.extend(made if isinstance(made, list) else [made])
                fresh = self.pool[len(params) :] or self.pool
                last = fresh[-self.rng.randint(1, 3) :]
                self.results = list(dict.fromkeys([*last, self.rng.choice(fresh)]))
                outs = [self.bb.emit_output(v.expr) for v in self.results]
            self.bb.emit_func_output(outs[0] if len(outs) == 1 else Tuple(tuple(outs)))
        return dead_code(self.bb.finalize())  # what fails and is not used does not fail in compiled code

    def pick(self, fits: Callable[[Value], Any] = lambda x: True) -> Value | None:
        """A value that fits, later ones rather than earlier ones."""
        found = [v for v in self.pool if fits(v)]
        if not found:
            return None
        return found[max(self.rng.randrange(len(found)) for _ in range(2))]

    def axis(self, x: Value) -> int:
        """An axis, from the front or from the back."""
        return self.rng.randrange(-x.ndim, x.ndim)

    def emit(
        self,
        name: str,
        *args: Any,
        meaning: Callable[..., Any],
        exact: bool = True,
        small: bool | None = None,
        **attrs: Any,
    ) -> Any:
        """One call. Of ``args``, `Value` and `Size` (and lists of them) go to the meaning as well, in order."""
        parents: list[Value] = []
        sources: list[Value | Size] = []

        def given(a: Any) -> Any:
            if isinstance(a, list):
                return [given(v) for v in a]
            if isinstance(a, tuple):
                return tuple(given(v) for v in a)
            if isinstance(a, Value):
                parents.append(a)
            if isinstance(a, (Value, Size)):
                sources.append(a)
                return a.expr
            return a

        operands = [given(a) for a in args]
        var = self.bb.emit(Op.get(f"relax.{name}")(*operands, **attrs))
        exact = exact and all(p.exact for p in parents)
        small = all(p.small for p in parents) if small is None else small
        many = isinstance(var.ty, TupleType)
        outs = [self.bb.emit(TupleGetItem(var, i)) for i in range(len(var.ty.fields))] if many else [var]
        unknown = [tensor_dims(o.ty) is None for o in outs]
        outs = [self.named(o) if u else o for o, u in zip(outs, unknown, strict=True)]
        found = [o.ty.dtype for o in outs]

        def run(env: Env) -> list[Any]:
            if id(var) not in env.known:
                values = [
                    wide(s.array(env)) if isinstance(s, Value) else evaluate(s.expr, env.symbols) for s in sources
                ]
                with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                    result = meaning(*values)
                    made = [as_dtype(r, d) for r, d in zip(result if many else [result], found, strict=True)]
                if sum(np.size(a) for a in made) > LARGEST:
                    raise TooLargeError
                for out, u, array in zip(outs, unknown, made, strict=True):
                    if u:
                        env.symbols |= dict(zip(dims_of(out), array.shape, strict=True))
                env.known[id(var)] = made
            return env.known[id(var)]

        values = [
            Value(out, lambda env, i=i: run(env)[i], parents, exact=exact, small=small) for i, out in enumerate(outs)
        ]
        return values if many else values[0]

    def named(self, var: Var) -> Var:
        """A value whose dimensions are not known (sizes that broadcast together when it runs), with names for them."""
        assert isinstance(var.ty, TensorType)
        names = tuple(Var(f"b{len(self.pool)}_{d}", prim_type("int64")) for d in range(var.ty.ndim))
        return self.bb.match_cast(var, TensorType(ShapeExpr(names), var.ty.dtype))

    def emit_dynamic(self, name: str, x: Value, *, meaning: Callable[[Any], Any], dims: Sequence[Expr | None]) -> Value:
        """A call whose result's size only the data says: the dimensions that are None get names."""
        fresh = {d: Var(f"k{len(self.pool)}", prim_type("int64")) for d, dim in enumerate(dims) if dim is None}
        found = self.bb.emit(Op.get(f"relax.{name}")(x.expr))
        shape = tuple(fresh[d] if dim is None else dim for d, dim in enumerate(dims))
        var = self.bb.match_cast(found, TensorType(ShapeExpr(shape), found.ty.dtype))

        def run(env: Env) -> Any:
            made = as_dtype(meaning(wide(x.array(env))), found.ty.dtype)
            env.symbols |= {symbol: made.shape[d] for d, symbol in fresh.items()}
            return made

        return Value(var, run, [x], exact=True, small=x.small and name != "nonzero")

    def const(self, array: Any) -> Value:
        """A constant of the program."""
        array = np.asarray(array)
        return Value(constant(array), lambda env: array, [], exact=True, small=bool(np.all(np.abs(wide(array)) <= 8)))

    def tamed(self, x: Value) -> Value:
        """The value in -3 to 3: remainders, so that it stays as varied as it was."""
        if x.small or x.dtype == "bool":
            return x
        seven = self.const(np.array(4 if x.dtype == "uint8" else 7, dtypes.to_numpy(x.dtype)))
        if not x.exact:
            low, high = as_expr(-3.0), as_expr(3.0)
            return self.emit("clip", x, low, high, meaning=lambda a: np.clip(a, -3, 3), small=True)
        rest = self.emit("floor_mod", x, seven, meaning=np.mod)
        rest.small = True
        if x.dtype.startswith("uint"):
            return rest
        three = self.const(np.array(3, dtypes.to_numpy(x.dtype)))
        return self.emit("subtract", rest, three, meaning=np.subtract, small=True)

    # -------------------------------------------------------------------------------------------------------- arguments

    def arrays(self, sizes: dict[Var, int]) -> list[Any]:
        made = []
        for var in self.params:
            shape = tuple(evaluate(d, sizes) for d in dims_of(var))
            if np.prod(shape) > LARGEST:
                raise TooLargeError
            dtype = var.ty.dtype  # type: ignore[union-attr]
            low = 0 if dtype.startswith("uint") or dtype == "bool" else -4
            values = self.data.integers(low, 2 if dtype == "bool" else 5, shape)
            array = values.astype(dtypes.to_numpy(dtype))
            if self.special and dtypes.is_float(dtype) and array.size:
                where = self.data.random(shape) < 0.1
                array = np.where(where, self.data.choice([np.nan, np.inf, -np.inf], shape), wide(array))
                array = array.astype(dtypes.to_numpy(dtype))
            made.append(np.asarray(array))
        return made
