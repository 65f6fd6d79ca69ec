"""What long runs found (compositions.py, operator_agreement.py, operator_legalized.py), one case for each kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from operator_legalized import checked
from test_ops_dynamic import flat

import supple
from supple.base.errors import ExecutionError, NotSupportedError
from supple.interp.graph import Interpreter
from supple.ir.expr import Var
from supple.ir.module import IRModule
from supple.ir.op import Op
from supple.ir.structural import assert_structural_equal
from supple.ir.types import prim_type
from supple.passes.legalize import legalize
from supple.script import from_source
from supple.sym.simplify import product

_HEADER = "from supple.script import ir as I, relax as R, tirx as T\n@I.ir_module\nclass M:\n"
X = 'x: R.Tensor(("n", "m"), "float32")'
VAR_LEN = 'q: R.Tensor((1, "n", 1, 2), "float32"), s: R.Tensor(("k",), "int32"), l: R.Tensor((), "int32")'


ONES = np.ones((1, 3, 1, 2), "float32")


def module(functions: dict[str, tuple[str, str]]) -> IRModule:
    text = _HEADER
    for name, (params, body) in functions.items():
        text += f"    @R.function\n    def {name}({params}):\n"
        text += "".join(f"        {line}\n" for line in body.split("; "))
    made = from_source(text)
    assert isinstance(made, IRModule)
    return made


def array(*shape: int) -> Any:
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


# name: parameters, body, arguments and the results by numpy (None: it fails while it runs)
FOUND: dict[str, tuple[str, str, list[tuple[tuple[Any, ...], list[Any] | None]]]] = {
    "one_part": (X, "a = R.split(x, 1, axis=0); b = R.meshgrid((R.flatten(x),)); return (a, b[0])",
                 [((array(2, 3),), [array(2, 3), array(6)])]),
    "gone": (X, "return R.squeeze(x, axis=[0])", [((array(1, 3),), [array(3)]), ((array(2, 3),), None)]),
    "choice": (X, "m = T.int64(); y = R.strided_slice(x, [1], [m - 1], [0], [-2]); return R.nn.softmax(y, axis=0)",
               [((array(1, 5),), [np.ones((1, 2), "f4")]), ((array(1, 0),), [np.ones((1, 0), "f4")])]),
    "top": (X, "return R.topk(x, k=2, axis=1, largest=False)",
            [((array(1, 3),), [array(1, 2), np.array([[0, 1]], "i4")]), ((array(0, 1),), None)]),
    "order": (VAR_LEN, "return R.nn.attention_var_len(q, q, q, s, l)",
              [((ONES, np.array(s, "i4"), np.array(3, "i4")), [ONES]) for s in ([0, 1, 3], [0, 0, 3, 3])]
              + [((ONES, np.array(s, "i4"), np.array(3, "i4")), None)
                 for s in ([0, 2, 1, 3], [0, 2], [1, 3], [0, 4], [0, -1, 3], [])]),
    "classes": ('p: R.Tensor(("n", 2), "float32"), t: R.Tensor(("k",), "int64")',
                'return R.nn.nll_loss(p, t, reduction="sum")',
                [((array(3, 2), np.zeros(3, "i8")), [np.float32(-6)]), ((array(3, 2), np.zeros(2, "i8")), None)]),
    "edges": ('x: R.Tensor(("n",), "float32"), b: R.Tensor((3,), "float32")', "return R.bucketize(x, b)",
              [((array(3), np.array([2, 0, 1], "f4")), [np.array([0, 1, 2])])]),
    "nothing": ('x: R.Tensor(("n", 0, 2), "float32")', "return R.median(x, axis=[0, 2])",
                [((array(2, 0, 2),), [array(0)])]),
}  # fmt: skip


@pytest.fixture(scope="module")
def found() -> tuple[IRModule, Any]:
    mod = module({name: case[:2] for name, case in FOUND.items()})
    return mod, supple.relax.VirtualMachine(supple.compile(mod, results="numpy"), supple.cpu())


@pytest.mark.parametrize("name", FOUND)
def test_what_long_runs_found(found: tuple[IRModule, Any], name: str) -> None:
    mod, vm = found
    for args, wanted in FOUND[name][2]:
        for function in (lambda *a: Interpreter(mod).run(name, *a), vm[name]):
            if wanted is None:
                with pytest.raises(ExecutionError) as error:
                    function(*args)
                assert error.value.span is not None
                continue
            for a, w in zip(flat(function(*args)), wanted, strict=True):
                np.testing.assert_allclose(a, w, rtol=1e-6)


def test_text_does_not_depend_on_what_was_seen_first() -> None:
    texts = []
    for first in (0, 1):
        symbols = [Var(name, prim_type("int64")) for name in ("a", "b")]
        product([symbols[first], symbols[first]])
        texts.append(str(product([symbols[0], symbols[1], symbols[0]])))
    assert texts[0] == texts[1]


def test_equal_choices_are_equal_sizes() -> None:
    mod = module({"main": (X, "m = T.int64(); y = R.strided_slice(x, [1], [m - 1], [0], [-2]); return R.add(y, y)")})
    assert_structural_equal(from_source(mod.script()), mod)


@pytest.mark.parametrize(
    ("body", "message"),
    [("R.squeeze(x)", r"R\.squeeze\(x, axis"), ("R.gather_nd(x, i)", "match_cast the indices"),
     ("R.split(y, 2)", "the shape and dtype of y")],
)  # fmt: skip
def test_refusals_say_what_to_do(body: str, message: str) -> None:
    mod = module({"main": (f'{X}, i: R.Tensor(("k", "d"), "int64"), y: R.Tensor("float32")', f"return {body}")})
    with pytest.raises(NotSupportedError, match=message) as error:
        legalize(mod)
    assert error.value.span is not None


def test_an_index_out_of_bounds_is_one_of_the_data() -> None:
    params = f'{X}, i: R.Tensor(("k", 1), "int64"), u: R.Tensor(("k", "m"), "float32")'
    mod = module({"main": (params, "return R.scatter_nd(x, i, u)")})
    vm = supple.relax.VirtualMachine(supple.compile(mod), supple.cpu())
    with pytest.raises(ExecutionError, match="index 9 is out of bounds for axis 0 of x"):
        vm["main"](array(3, 4), np.array([[9]]), array(1, 4))


LEGALIZED = [
    "nn.conv2d", "nn.group_norm", "nn.pixel_shuffle", "nn.attention_var_len", "split", "topk", "median", "gather_nd",
    "scatter_nd", "image.resize2d",
]  # fmt: skip


@pytest.mark.parametrize("name", LEGALIZED)
def test_legalized_modules_have_no_operators_and_read_back(name: str) -> None:
    """The rest by `python tests/operator_legalized.py`: all samples, by value."""
    op = Op.get(f"relax.{name}")
    assert op.samples is not None
    for sample in op.samples()[:2]:
        checked(op, sample, True, native=False)
