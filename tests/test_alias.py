"""Scripts in TVM's spelling run on Supple through the alias; the table's every row resolves."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from supple.compat import ROWS
from supple.compat.places import PLACES

EXAMPLE = Path(__file__).parent.parent / "examples" / "mlp.py"

MAIN = """
import tvm

rng = np.random.default_rng(0)
x = rng.standard_normal((5, 784)).astype("float32")
w = [rng.standard_normal(s).astype("float32") for s in ((784, 256), (256,), (256, 10), (10,))]
vm = tvm.relax.VirtualMachine(tvm.compile(Module, target="llvm"), tvm.cpu())
out = vm["main"](x, *w)
print(type(out).__module__, type(out).__name__)
np.testing.assert_allclose(out.numpy(), numpy_mlp(x, *w), rtol=1e-3, atol=1e-3)
tvm.ir.assert_structural_equal(tvm.script.from_source(Module.script()), Module)
given = tvm.runtime.tensor(x)
tvm.testing.assert_allclose(vm["main"](given, *w).numpy(), out.numpy())
import tvm.relax.op.nn
from tvm.relax.op.base import call_tir
from tvm.relax.op.image import resize2d
assert tvm.relax.op.nn.relu is tvm.script.relax.nn.relu and isinstance(tvm.relax.op.nn.pad(
    tvm.relax.Var("x", tvm.script.relax.Tensor((2,), "float32")), [1, 1]).attrs, tvm.ir.Attrs)
print("done")
"""


def run(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *args], input=code, capture_output=True, text=True, env=dict(os.environ))


def test_a_script_in_the_other_spelling_runs(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text(EXAMPLE.read_text().replace("from supple.script", "from tvm.script") + MAIN)
    done = run("", "-m", "supple.cli.main", "run", "--as-tvm", str(script), "an argument")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["supple.runtime.tensor", "Tensor", "done"]


def test_the_alias_refuses_when_the_real_one_is_imported() -> None:
    code = """
import sys, types
sys.modules["tvm"] = types.ModuleType("tvm")
import supple.compat
try:
    supple.compat.install_as_tvm()
except supple.error.SuppleError as error:
    print("refused:", error)
"""
    done = run(code, "-")
    assert "refused: the real tvm is imported already" in done.stdout, done.stderr


def test_without_the_alias_there_is_no_tvm() -> None:
    done = run("import supple\ntry:\n    import tvm\nexcept ImportError:\n    print('none')", "-")
    assert done.stdout.strip() == "none", "this test needs an environment without the real tvm"


INNER = """
import numpy as np
import supple.compat
supple.compat.install_as_tvm()
import tvm
from tvm import relax, tirx
from tvm.relax.op.base import Expr, call_tir
from tvm.relax.op.nn.nn import relu
from tvm.topi.nn.dense import dense
import tvm.topi.nn.dense
assert callable(tvm.topi.nn.dense) and relu is tvm.relax.op.nn.relu and tvm.ir.SourceName("f").name == "f"
span = tvm.ir.Span(tvm.ir.SourceName("f.py"), 1, 2, 3, 4)
assert (span.line, span.end_line, span.column, span.end_column, str(span.source_name)) == (1, 2, 3, 4, "f.py")
assert isinstance(relax.const(1), tvm.Object) and not isinstance(3, tvm.Object) and not hasattr(tirx, "tvm_bmma_sync")
from tvm.script.parser.core import doc
from tvm.script.parser.core.diagnostics import Source
from tvm.script.parser.core.evaluator import ExprEvaluator, eval_assign
tree = Source("x + 1").as_ast()
assert isinstance(tree, doc.Module) and ExprEvaluator.eval(None, {"x": 2}, tree.body[0].value) == 3
assert eval_assign(None, doc.parse("a, b = 1").body[0].targets[0], (1, 2)) == {"a": 1, "b": 2}
x = relax.Var("x", relax.TensorType([4], "float32"))
bb = relax.BlockBuilder()
with bb.function("main", [x]):
    bb.emit_func_output(relax.testing.emit_checkpoint(lambda v: bb.emit(relax.op.add(v, v)), x))
bare = relax.BlockBuilder()
with bare.function("main", [x]):
    bare.emit_func_output(bare.emit(relax.op.add(x, x)))
given = tvm.runtime.tensor(np.arange(4, dtype="float32"))
for mode in ("bytecode", "compiled"):
    ex = relax.build(relax.get_pipeline("zero")(bare.get()), "llvm", exec_mode=mode)
    assert relax.VirtualMachine(ex, tvm.cpu())["main"](given).numpy().tolist() == [0, 2, 4, 6]
assert str(bb.get()).count("checkpoint") == 2
again = tvm.runtime.load_param_dict(tvm.runtime.save_param_dict({"a": given}))
assert again["a"].numpy().tolist() == [0, 1, 2, 3]
for wrong in (lambda: relax.build(bare.get(), "llvm", exec_mode="fast"), lambda: relax.get_pipeline("none"),
              lambda: tvm.runtime.load_param_dict(b"no")):
    try:
        wrong()
    except ValueError:
        continue
    raise AssertionError
print("fine")
"""


def test_files_of_the_tree_are_found() -> None:
    done = run(INNER, "-")
    assert done.stdout.strip() == "fine", done.stderr


@pytest.mark.parametrize("row", (*ROWS, *PLACES), ids=lambda row: row.old)
def test_every_row_resolves(row: object) -> None:
    module, _, name = row.new.partition(":")  # type: ignore[attr-defined]
    found = importlib.import_module(module)
    assert not name or hasattr(found, name)


def test_errors_of_a_script_show_its_line(tmp_path: Path) -> None:
    script = tmp_path / "wrong.py"
    text = (
        EXAMPLE.read_text().replace("from supple.script", "from tvm.script").replace("lv1, w1) + b1", "lv1, w0) + b1")
    )
    script.write_text(text)
    done = run("", "-m", "supple.cli.main", "run", "--as-tvm", str(script))
    line = next(n for n, t in enumerate(text.splitlines(), 1) if "lv1, w0) + b1" in t)
    assert done.returncode == 1 and f"wrong.py:{line}:" in done.stderr and "Traceback" not in done.stderr


def test_a_missing_script_is_a_plain_message() -> None:
    done = run("", "-m", "supple.cli.main", "run", "no_such_script.py")
    assert done.returncode == 2 and "no_such_script.py" in done.stderr


def test_everything_can_be_imported_from_a_module() -> None:
    code = (
        "import supple.compat\nsupple.compat.install_as_tvm()\nfrom tvm.relax.dpl import *\nfrom tvm.relax import *\n"
        "from tvm.script import *\nprint(is_op('relax.add')(wildcard(), wildcard()).match(const(1.0)), Var, ir)"
    )
    done = run(code, "-")
    assert done.stdout.startswith("False <class"), done.stderr


def test_no_name_has_two_rows() -> None:
    names = [row.old for row in ROWS]
    assert len(names) == len(set(names))


CONVENTIONS = """
from supple.compat import install_as_tvm
install_as_tvm()
import pytest, tvm
from tvm import relax, tirx
from tvm.script import ir as I, relax as R, tirx as T

@I.ir_module
class Mod:
    @T.prim_func(s_tir=True)
    def f(A: T.Buffer((4,), "int32", elem_offset=0)):
        for i in range(4):
            A[i] = 0
            T.evaluate(0)
        T.evaluate(0)
    @R.function
    def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")):
        with R.dataflow():
            y = R.exp(x)
            R.output(y)
        with R.dataflow():
            z = R.reshape(y, R.shape([n, 1]))
            R.output(z)
        if c:
            t = (x, z)
        else:
            t = (y, z)
        return t

text = Mod.script()
assert "T.evaluate" not in text and "elem_offset" not in text and " = x, z\\n" in text
assert [len(block.bindings) for block in Mod["main"].body.blocks] == [2, 1]
assert str(tvm.ir.PrimType("int64")) == "int64" and repr(tvm.ir.PrimType("int64")) == "T.int64"
names = []
n = tirx.Var("n", "int64")
x = relax.Var("x", R.Tensor((n, 2), "float32"))
relax.analysis.post_order_visit(relax.op.add(x, x), lambda e: names.append(type(e).__name__))
assert names == ["Op", *["Var", "IntImm", "ShapeExpr", "Var"] * 2, "Call"], names
with pytest.raises(AttributeError, match="no option 'tirx.noalia'; did you mean 'tirx.noalias'"):
    tvm.transform.PassContext(config={"tirx.noalia": True})
with pytest.raises(tvm.error.DiagnosticError, match="no virtual device"):
    tvm.script.from_source(
        "@R.function\\ndef g(x: R.Tensor((2,), 'float32', 'cuda:0')):\\n    return x\\n")
n = tirx.Var("n", "int64")
x = relax.Var("x", R.Tensor((3, 4), "float32"))
bb = relax.BlockBuilder()
with bb.function("main", [x]):
    with bb.dataflow():
        y = bb.emit_output(bb.match_cast(relax.op.add(x, x), R.Tensor((n, 4), "float32")))
    with bb.dataflow():
        z = bb.emit_output(relax.op.exp(y))
    bb.emit_func_output(z)
built = bb.get()
assert len(built["main"].body.blocks) == 1
assert built.script().count("R.match_cast(R.add(x, x), R.Tensor((") == 1, built.script()

@I.ir_module
class Casts:
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), q: R.Tuple(R.Tensor, R.Tensor(ndim=2))):
        n, k, j = T.int64(), T.int64(), T.int64()
        z = R.match_cast(R.add(R.multiply(x, x), R.exp(x)), R.Tensor((n, k), "float32"))
        u = R.match_cast(q[1], R.Tensor((j, k), "float32"))
        with R.dataflow():
            w = R.match_cast(R.add(z, u), R.Tensor((n, 4), "float32"))
            R.output(w)
        return w

casts = [b.value for block in Casts["main"].body.blocks for b in block.bindings if isinstance(b, relax.MatchCast)]
assert [type(value).__name__ for value in casts] == ["Call", "TupleGetItem", "DataflowVar"]
relax.analysis.well_formed(Casts)
tvm.ir.assert_structural_equal(tvm.script.from_source(Casts.script()), Casts)
import numpy as np
number = lambda value, dtype="int64": tirx.const(value, dtype)
for made in (n + 0, 0 + n, n - 0, n * 1, 1 * n, n // 1):
    assert made is n
for made, value in ((n * 0, 0), (n % 1, 0), (number(7) * 6, 42), (number(-7) // number(2), -4), (number(-7) % 2, 1)):
    tvm.ir.assert_structural_equal(made, number(value))
halves = number(1, "float32") / number(4, "float32") + number(0.5, "float32")
tvm.ir.assert_structural_equal(halves, number(0.75, "float32"))
assert type(n * 2 * 2).__name__ == "Mul" and type(number(1) // 0).__name__ == "FloorDiv"
ones = np.ones((3, 4), "float32")
expected = 2 + np.exp(ones)
for module in (Casts, relax.transform.LegalizeOps()(Casts)):
    found = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())["main"](ones, (ones, ones))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
print("fine")
"""


def test_programs_are_read_and_built_as_relax_does(tmp_path: Path) -> None:
    script = tmp_path / "conventions.py"
    script.write_text(CONVENTIONS)
    done = run("", str(script))
    assert done.stdout == "fine\n", done.stderr


PATTERNS = """
from supple.compat import install_as_tvm
install_as_tvm()
import tvm
from tvm import relax
from tvm.script import relax as R
from tvm.relax.dpl import *

@R.function
def func(x: R.Tensor((4, 4), "float32"), q: R.Tuple(R.Tensor((4, 4), "float32"), R.Tensor((4, 4), "float32"))):
    with R.dataflow():
        t = (R.exp(x), x)
        a = R.add(t[0], t[1])
        b = a
        c = R.multiply(b, R.const(2.0, "float32"))
        d = R.matmul(c, c)
        e = R.match_cast(d, R.Tensor((4, 4), "float32"))
        p = (q[0], q[1])
        f = R.subtract(e, p[1])
        R.output(f, p)
    return (f, p)

@R.function
def expected(x: R.Tensor((4, 4), "float32"), q: R.Tuple(R.Tensor((4, 4), "float32"), R.Tensor((4, 4), "float32"))):
    with R.dataflow():
        t = R.exp(x)
        a = R.divide(t, x)
        c = R.multiply(a, R.const(2.0, "float32"))
        d = R.matmul(c, c)
        g = q[1]
        f = R.subtract(d, g)
        R.output(f)
    return (f, q)

left, right = wildcard(), wildcard()
add = is_op("relax.add")(left, right)
made = rewrite_call(add, lambda e, found: relax.op.divide(found[left], found[right]), func)
tvm.ir.assert_structural_equal(made.with_attr("global_symbol", "f"), expected.with_attr("global_symbol", "f"))
kept = rewrite_call(is_op("relax.sqrt")(left), lambda e, found: e, func)
tvm.ir.assert_structural_equal(kept, func)

def found(make):
    with PatternContext() as context:
        make()
    return context.match_dfb(func.body.blocks[0]) is not None

assert found(lambda: is_op("relax.exp")(is_var("x"))) and found(lambda: is_op("relax.matmul")(*[wildcard()] * 2))
assert not found(lambda: is_op("relax.multiply")(wildcard(), is_const()))
assert not found(lambda: is_op("relax.multiply")(wildcard(), wildcard()))
assert not found(lambda: is_op("relax.matmul")(*[is_var("c")] * 2))
assert found(lambda: is_op("relax.matmul")(*[~is_var("c")] * 2))
print("fine")
"""


def test_patterns_match_and_rewrite_as_in_relax(tmp_path: Path) -> None:
    script = tmp_path / "patterns.py"
    script.write_text(PATTERNS)
    done = run("", str(script))
    assert done.stdout == "fine\n", done.stderr
