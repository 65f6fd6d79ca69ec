"""Operators on sizes that only the data says: errors while running name operator, place and numbers, the same
interpreted and native; sizes without names run natively."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_ops_dynamic import flat

import supple
from supple.base.errors import ExecutionError, TypeCheckError
from supple.interp.graph import Interpreter
from supple.ir.module import IRModule
from supple.script import from_source

_HEADER = "from supple.script import ir as I, relax as R, tirx as T\n@I.ir_module\nclass M:\n"

X, Y = 'x: R.Tensor(("n",), "float32")', 'y: R.Tensor(("m",), "float32")'
X2, I1 = 'x: R.Tensor(("n", 4), "float32")', 'i: R.Tensor(("m",), "int64")'


def module(functions: dict[str, tuple[str, str]]) -> IRModule:
    text = _HEADER
    for name, (params, body) in functions.items():
        lines = "".join(f"        {line}\n" for line in body.split("; "))
        text += f"    @R.function\n    def {name}({params}):\n{lines}"
    made = from_source(text)
    assert isinstance(made, IRModule)
    return made


def array(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


def outcomes(mod: IRModule, vm: Any, name: str, args: Any) -> list[Any]:
    """What the interpreter and native code make of a call: results or the error."""
    found: list[Any] = []
    for function in (lambda *a: Interpreter(mod).run(name, *a), vm[name]):
        try:
            found.append(flat(function(*args)))
        except supple.error.SuppleError as error:
            found.append(error)
    return found


# name: parameters, body, arguments, the message's common part, what is expected, interpreted and native
BAD = np.array([0, -5], "int64")
ERRORS: dict[str, tuple[str, str, tuple[Any, ...], str, str | None]] = {
    "take": (f"{X2}, {I1}", "gv = R.take(x, i, axis=0); return gv", (array(3, 4), BAD),
             "index -5 is out of bounds for axis 0", "-3 <= index < 3"),
    "after": (f"{X2}, {I1}", "lv = R.take(x, i, axis=0); gv = R.add(lv, lv); return gv", (array(3, 4), BAD),
              "index -5 is out of bounds for axis 0", "-3 <= index < 3"),
    "scatter": (f"{X2}, {I1}, u: R.Tensor(('m', 4), 'float32')", "gv = R.index_put(x, (i,), u); return gv",
                (array(3, 4), BAD, array(2, 4)), "index -5 is out of bounds for axis 0", "-3 <= index < 3"),
    "classes": ('p: R.Tensor((2, 5), "float32"), i: R.Tensor((2,), "int64")', "gv = R.nn.nll_loss(p, i); return gv",
                (array(2, 5), np.array([1, 7])), "index 7 is out of bounds for axis 1", "0 <= index < 5"),
    "stride": (f"{X}, s: R.Tensor((1,), 'int64')", "gv = R.dynamic_strided_slice(x, s, s, s); return gv",
               (array(3), np.zeros(1, "int64")), "a stride is 0", None),
    "inbound": (f"{X}, s: R.Shape(['k'])", "k = T.int64(); "
                "gv = R.strided_slice(x, [0], [k], [k + 2], assume_inbound=True); return gv", (array(4), (3,)),
                "index 4 is out of bounds for axis 0", "0 <= index < 4"),
    "weights": (f"{X2}, {I1}, w: R.Tensor(('k',), 'float32')", "gv = R.nn.rms_norm(x, w, axes=[-1]); return gv",
                (array(3, 4), BAD, array(3)), "", None),
    "groups": (f"x: R.Tensor(('n', 'm'), 'float32'), w: R.Tensor(('m',), 'float32')",  # noqa: F541
               "gv = R.nn.group_norm(x, w, w, num_groups=2, channel_axis=1, axes=[]); return gv",
               (array(2, 3), array(3)), "", None),
    "mirror": (X, "gv = R.nn.pad(x, [3, 0], pad_mode='reflect'); return gv", (array(3),), "", None),
    "together": (f"{X}, {Y}", "gv = R.add(x, y); return gv", (array(3), array(2)), "broadcast", None),
    "huge": ("s: R.Shape(['k'])", "k = T.int64(); gv = R.zeros((k, 2), 'float32'); return gv", ((2**61,),), "", None),
}  # fmt: skip


@pytest.fixture(scope="module")
def failing() -> tuple[IRModule, Any]:
    mod = module({name: case[:2] for name, case in ERRORS.items()})
    return mod, supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())


@pytest.mark.parametrize("name", ERRORS)
def test_errors_while_running_say_where_and_what(failing: tuple[IRModule, Any], name: str) -> None:
    _, body, args, message, expected = ERRORS[name]
    line = next(part for part in body.split("; ") if "R." in part)
    for error in outcomes(*failing, name, args):
        assert isinstance(error, ExecutionError) and error.span is not None
        assert message in error.message and line in str(error)
        assert expected is None or error.expected == expected


def test_a_size_that_is_wrong_gives_no_numbers(failing: tuple[IRModule, Any]) -> None:
    mod, vm = failing
    for name, args in (("weights", (array(3, 4), BAD, array(4))), ("groups", (array(2, 4), array(4)))):
        wanted, actual = outcomes(mod, vm, name, args)
        np.testing.assert_allclose(actual[0], wanted[0], rtol=1e-5)


# name: parameters, body, arguments that fit, arguments that do not
UNNAMED: dict[str, tuple[str, str, list[Any], list[Any]]] = {
    "add": (f"{X}, {Y}", "return R.add(x, y)",
            [(array(3), array(3)), (array(1), array(4)), (array(4), array(1)), (array(0), array(1))],
            [(array(3), array(2)), (array(0), array(2))]),
    "where": ("c: R.Tensor(('a', 'b'), 'bool'), x: R.Tensor(('n', 'k'), 'float32'), y: R.Tensor(('m',), 'float32')",
              "return R.where(c, x, y)",
              [(array(3, 2) > 2, array(3, 2), array(2)), (array(3, 1) > 1, array(1, 2), array(1))],
              [(array(1, 1) > 2, array(2, 2), array(3))]),
    "concat": (f"{X2}, z: R.Tensor(('m', 'k'), 'float32')",
               "return R.concat((R.unique(x, axis=0), R.unique(z, axis=0)), axis=0)",
               [(array(3, 4), array(2, 4)), (array(0, 4), array(1, 4))], [(array(3, 4), array(2, 3))]),
    "matmul": ("x: R.Tensor(('a', 'n', 'k'), 'float32'), z: R.Tensor(('b', 'j', 'm'), 'float32')",
               "lv = R.permute_dims(R.unique(z, axis=0), [0, 2, 1]); return R.matmul(R.unique(x, axis=0), lv)",
               [(array(2, 3, 4), array(2, 5, 4)), (array(1, 3, 4), array(2, 5, 4))],
               [(array(3, 3, 4), array(2, 5, 4)), (array(2, 3, 4), array(2, 5, 3))]),
    "index": (f"{X2}, {I1}, j: R.Tensor(('k',), 'int64')", "return R.index_tensor(x, (i, j))",
              [(array(3, 4), np.array([0, -1]), np.array([2, 3])), (array(3, 4), np.array([0]), np.array([2, 3, -1]))],
              [(array(3, 4), np.array([0, 1]), np.array([2, 3, -1])), (array(3, 4), np.array([0, 7]), np.array([2]))]),
    "many": (f"{X}, s: R.Shape(['k'])",
             "k = T.int64(); a = R.unique(x); b = R.expand_dims(R.flatten(a), [1]); c = R.nn.softmax(b, axis=0); "
             "return (R.cumsum(c, axis=0), R.flatten(a), R.strided_slice(a, [0], [k], [k + 2]), "
             "R.nn.pad(a, [1, 2]), R.einsum((a, a), subscripts='i,i->'))",
             [(array(5), (1,)), (array(5), (4,)), (array(5), (9,)), (array(0), (0,))], []),
    "norm": (f"{X2}, w: R.Tensor(('m',), 'float32')", "return R.nn.rms_norm(R.unique(x, axis=0), w, axes=[-1])",
             [(array(3, 4), array(4))], [(array(3, 4), array(3))]),
}  # fmt: skip


@pytest.fixture(scope="module")
def unnamed() -> tuple[IRModule, Any]:
    mod = module({name: case[:2] for name, case in UNNAMED.items()})
    return mod, supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())


@pytest.mark.parametrize("name", UNNAMED)
def test_sizes_without_names_run_natively(unnamed: tuple[IRModule, Any], name: str) -> None:
    _, _, fitting, others = UNNAMED[name]
    for args in fitting:
        wanted, actual = outcomes(*unnamed, name, args)
        for a, w in zip(actual, wanted, strict=True):
            np.testing.assert_allclose(a, w, rtol=1e-5, atol=1e-6)
    for args in others:
        for error in outcomes(*unnamed, name, args):
            assert isinstance(error, ExecutionError) and error.span is not None


def test_symbolic_bounds_below_zero_count_from_the_end() -> None:
    last, back = "R.strided_slice(x, [0], [n - 3], [n])", "R.strided_slice(x, [0], [n - 1], [n - 4], [-1])"
    far = f"R.strided_slice(x, [0], [0], [n - 2], [{2**63 - 1}])"
    mod = module({"main": (X, f"n = T.int64(); return ({last}, {back}, {far})")})
    vm = supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())
    for n in (0, 1, 2, 3, 7):
        x = array(n)
        wanted = [x[n - 3 : n], x[n - 1 : n - 4 : -1], x[0 : n - 2 : 2**63 - 1]]
        for found in outcomes(mod, vm, "main", (x,)):
            for a, w in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(a, w)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("R.layout_transform(x, index_map=lambda i: (i // 2, i % 2), pad_value=300)", "does not fit the dtype"),
        ("R.layout_transform(x, index_map=lambda i: (i // 2, i % 2), pad_value=float('inf'))", "no integer"),
        ("R.layout_transform(x, index_map=lambda i: (i ^ 1,))", "no bounds that are known"),
        ("R.call_tir_inplace(cls.f, (x,), [0], out_ty=R.Tensor((n + 1,), 'int8'))", "its type is another"),
        ("R.call_tir_inplace(cls.f, (x,), [0], out_ty=R.Tensor((n,), 'int32'))", "its type is another"),
    ],
)
def test_refused_while_building(body: str, message: str) -> None:
    text = _HEADER + "    @T.prim_func\n    def f(A: T.Buffer((4,), 'int8')):\n        A[0] = T.int8(1)\n"
    text += f"    @R.function\n    def main(x: R.Tensor(('n',), 'int8')):\n        n = T.int64()\n        cls = M\n"  # noqa: F541
    with pytest.raises(TypeCheckError, match=message):
        from_source(text + f"        return {body}\n")


def test_layouts_with_bit_operations() -> None:
    params = 'x: R.Tensor((8, 8), "float32")'
    mod = module({"main": (params, "return R.layout_transform(x, index_map=lambda i, j: (i, j ^ (i % 4)))")})
    x, i = array(8, 8), np.arange(8)
    wanted = np.zeros((8, 8), "float32")
    wanted[i[:, None], i ^ (i[:, None] % 4)] = x
    vm = supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())
    for found in outcomes(mod, vm, "main", (x,)):
        np.testing.assert_array_equal(found[0], wanted)


def test_views_by_every_name() -> None:
    body = "return (R.nn.batch_flatten(x), R.flatten(x), R.reshape(x, (0, -1)))"
    mod = module({"main": ('x: R.Tensor(("n", "m", 2), "float32")', body)})
    vm = supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())
    for shape in ((2, 3, 2), (0, 3, 2), (2, 0, 2)):
        wanted, actual = outcomes(mod, vm, "main", (array(*shape),))
        assert [a.shape for a in actual] == [w.shape for w in wanted]


def test_inner_dimensions_that_nothing_relates() -> None:
    module = from_source("""
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), w: R.Tensor((3, 2), "float32"), v: R.Tensor(("k", "j"), "float32")):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.einsum((x, v), subscripts="ij,jk->ik")
            R.output(a, b)
        return (a, b)
""")
    x, w, v = (np.arange(6, dtype="float32").reshape(s) for s in ((2, 3), (3, 2), (3, 2)))
    main = supple.compile(module)["main"]
    for run in (main, lambda *args: Interpreter(module).run("main", *args)):
        for found in flat(run(x, w, v)):
            np.testing.assert_array_equal(found, x @ w)
        for bad in ((x[:, :2].copy(), w, v[:2].copy()), (x, w, v[:2].copy())):
            with pytest.raises(ExecutionError):
                run(*bad)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("R.concat((x, x), axis=None)", "tensors of one dimension"),
        ("R.scatter_elements(x, R.zeros((2,), 'int64'), R.zeros((2,), 'float32'))", "rank of the data"),
    ],
)
def test_ranks(call: str, message: str) -> None:
    with pytest.raises(TypeCheckError, match=message):
        from_source(f"@R.function\ndef f(x: R.Tensor((2, 3), 'float32')):\n    y = {call}\n    return y\n")
