"""Passes that users write with the decorators, what is known of them, and the instruments that watch them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pytest

from supple import instrument, relax, transform
from supple.error import DiagnosticError
from supple.ir.module import IRModule
from supple.script import from_source

PROGRAM = """
from supple.script import ir as I, relax as R, tirx as T

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def copy(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("b"):
                v = T.axis.spatial(4, i)
                B[v] = A[v]

    @R.function
    def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")):
        @R.function
        def inner(y: R.Tensor((4,), "float32")):
            with R.dataflow():
                z = R.exp(y)
                R.output(z)
            return z
        if c:
            with R.dataflow():
                p = R.sin(x)
                q = R.cos(p)
                R.output(q)
            r = q
        else:
            r = x
        return r
"""
MODULE: IRModule = from_source(PROGRAM)


def test_passes_of_functions() -> None:
    seen: list[Any] = []

    @relax.transform.function_pass(opt_level=1, name="Mark", required=["relax.transform.FoldConstant"])
    def mark(func: Any, mod: IRModule, context: transform.PassContext) -> Any:
        seen.append((mod, type(context)))
        return func.with_attr("marked", 1)

    assert mark(MODULE)["main"].attrs["marked"] == 1 and "marked" not in MODULE["main"].attrs
    assert seen == [(MODULE, transform.PassContext)]
    assert (mark.info.name, mark.info.opt_level, mark.info.required) == (
        "Mark",
        1,
        ("relax.transform.FoldConstant",),
    )
    assert isinstance(mark, transform.Pass) and isinstance(mark, relax.transform.FunctionPass)
    assert repr(mark).startswith('relax.FunctionPass(pass_info=transform.PassInfo(opt_level=1, name="Mark", required=(')

    @transform.prim_func_pass(opt_level=0)
    def loops(func: Any, mod: IRModule, context: transform.PassContext) -> Any:
        return func.with_attr("marked", 2)

    made = loops(MODULE)
    assert made["copy"].attrs["marked"] == 2 and made["main"] is MODULE["main"] and loops.info.name == "loops"


def test_passes_of_dataflow_blocks_come_in_the_programs_order() -> None:
    seen: list[str] = []

    @relax.transform.dataflowblock_pass(opt_level=0)
    def negate(block: Any, mod: IRModule, context: transform.PassContext) -> Any:
        seen.extend(b.value.op.short_name for b in block.bindings)
        return relax.DataflowBlock(
            [relax.VarBinding(b.var, relax.op.negative(b.value.args[0])) for b in block.bindings]
        )

    text = negate(MODULE)["main"].script()
    assert seen == ["exp", "sin", "cos"] and text.count("R.negative") == 3 and "R.sin" not in text

    lost = relax.transform.dataflowblock_pass(lambda b, m, c: relax.DataflowBlock(b.bindings[:1]), opt_level=0)
    with pytest.raises(DiagnosticError, match=r"output variable q is not bound"):
        lost(MODULE)
    matched = from_source("""
@R.function
def f(x: R.Tensor(ndim=1, dtype="float32")):
    n = T.int64()
    with R.dataflow():
        a = R.match_cast(x, R.Tensor((n,), "float32"))
        R.output()
    return R.shape([n])
""")
    empty = relax.transform.dataflowblock_pass(lambda b, m, c: relax.DataflowBlock([]), opt_level=0)
    with pytest.raises(DiagnosticError, match="symbol n is not bound"):
        empty(IRModule.from_expr(matched))


def test_classes_of_passes() -> None:
    @relax.transform.function_pass(opt_level=2)
    class Number:
        """Numbers functions."""

        def __init__(self, value: int) -> None:
            self.value = value

        def transform_function(self, func: Any, mod: IRModule, context: transform.PassContext) -> Any:
            return func.with_attr("n", self.value)

    assert (Number.__name__, Number.__doc__, Number(3).value, Number(3).info.name) == (
        "Number",
        "Numbers functions.",
        3,
        "Number",
    )
    assert transform.Sequential([Number(3), Number(4)])(MODULE)["main"].attrs["n"] == 4
    with transform.PassContext(opt_level=1):  # a sequence leaves out what is above the level, a call does not
        assert "n" not in transform.Sequential([Number(3)])(MODULE)["main"].attrs
        assert Number(3)(MODULE)["main"].attrs["n"] == 3

    @relax.transform.dataflowblock_pass(opt_level=0)
    class Blocks:
        def transform_dataflowblock(self, block: Any, mod: IRModule, context: transform.PassContext) -> Any:
            return block

    assert Blocks()(MODULE)["main"] is MODULE["main"]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda t: t.function_pass(lambda f, m, c: f), ValueError, "opt_level must be given"),
        (lambda t: t.module_pass(lambda m, c: m), ValueError, "opt_level must be given"),
        (lambda t: t.function_pass(3, opt_level=0), TypeError, "a function or a class"),
        (lambda t: t.function_pass(len, opt_level=0, required="A"), TypeError, "a list or a tuple"),
        (lambda t: t.function_pass(type("N", (), {}), opt_level=0)(), TypeError, "needs a method transform_function"),
        (lambda t: t.function_pass(lambda f, m, c: 3, opt_level=0)(MODULE), TypeError, "must return a Function"),
        (lambda t: t.function_pass(lambda f, m, c: None, opt_level=0)(MODULE), TypeError, "must return a Function"),
        (lambda t: t.dataflowblock_pass(lambda f, m, c: 3, opt_level=0)(MODULE), TypeError, "must return a Dataflow"),
        (lambda t: t.prim_func_pass(lambda f, m, c: 3, opt_level=0)(MODULE), TypeError, "must return a PrimFunc"),
        (lambda t: t.function_pass(lambda f, m, c: 1 // 0, opt_level=0)(MODULE), ZeroDivisionError, "zero"),
        (lambda t: t.function_pass(lambda f, m, c: f, opt_level=0)(MODULE["main"]), TypeError, "expected an IRModule"),
        (
            lambda t: t.Sequential([t.module_pass(lambda m, c: m, opt_level=0, required=["FuseOp"])])(MODULE),
            KeyError,
            "no pass named 'FuseOp'",
        ),
    ],
)
def test_wrong_passes_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(transform)


def test_instruments(capsys: pytest.CaptureFixture[str]) -> None:
    log: list[Any] = []

    @instrument.pass_instrument
    class Watch:
        def enter_pass_ctx(self) -> None:
            log.append("enter")

        def exit_pass_ctx(self) -> None:
            log.append("exit")

        def should_run(self, mod: IRModule, info: transform.PassInfo) -> bool:
            return info.name != "skipped"

        def run_before_pass(self, mod: IRModule, info: transform.PassInfo) -> None:
            log.append(info.name)

    one = transform.module_pass(lambda m, c: m, opt_level=0, name="one")
    skipped = transform.module_pass(lambda m, c: 1 // 0, opt_level=0, name="skipped")
    timing = instrument.PassTimingInstrument()
    with transform.PassContext(instruments=[Watch(), timing]) as context:
        transform.Sequential([one, skipped])(MODULE)
        lines = timing.render().splitlines()
        context.override_instruments([])
    assert log == ["enter", "sequential", "one", "exit"]
    assert lines[0].startswith("sequential: ") and lines[1].startswith("\tone: ") and "100.00%" in lines[0]
    with transform.PassContext(instruments=[instrument.PrintAfterAll()]):
        one(MODULE)
    transform.PrintIR("here")(MODULE)
    printed = capsys.readouterr()
    assert printed.out.startswith('After Running Pass: transform.PassInfo(opt_level=0, name="one"')
    assert printed.err.startswith("PrintIR(here):\n")


class _Failing(instrument.PassInstrument):
    """Notes what it is told, and raises when it is told ``at``."""

    def __init__(self, name: str, log: list[str], at: str = "") -> None:
        self.name, self.log, self.at = name, log, at

    def _told(self, event: str) -> None:
        self.log.append(f"{self.name}.{event}")
        if event == self.at:
            raise KeyError(event)

    def enter_pass_ctx(self) -> None:
        self._told("enter")

    def exit_pass_ctx(self) -> None:
        self._told("exit")

    def should_run(self, mod: IRModule, info: transform.PassInfo) -> bool:
        self._told("should")
        return self.at != "skips"

    def run_before_pass(self, mod: IRModule, info: transform.PassInfo) -> None:
        self._told("before")

    def run_after_pass(self, mod: IRModule, info: transform.PassInfo) -> None:
        self._told("after")


@pytest.mark.parametrize(("at", "told"), [
    ("enter", "a.enter b.enter a.exit"),
    ("exit", "ABC a.should b.should c.should a.before b.before c.before a.after b.after c.after a.exit b.exit"),
    ("should", "ABC a.should b.should a.exit b.exit c.exit"),
    ("before", "ABC a.should b.should c.should a.before b.before a.exit b.exit c.exit"),
    ("after", "ABC a.should b.should c.should a.before b.before c.before a.after b.after a.exit b.exit c.exit"),
    ("skips", "ABC a.should b.should c.should a.exit b.exit c.exit"),
])  # fmt: skip
def test_instruments_that_raise(at: str, told: str) -> None:
    log: list[str] = []
    context = transform.PassContext(instruments=[_Failing("a", log), _Failing("b", log, at), _Failing("c", log)])
    one = transform.module_pass(lambda m, c: m, opt_level=0, name="one")
    with pytest.raises(KeyError, match=at) if at != "skips" else nullcontext(), context:
        one(MODULE)
    assert log == told.replace("ABC", "a.enter b.enter c.enter").split()
    assert transform.PassContext.current().instruments == []
    assert len(context.instruments) == (0 if at in ("enter", "exit") else 3)


def test_contexts_end_as_they_began_and_belong_to_a_thread() -> None:
    with transform.PassContext(opt_level=3), ThreadPoolExecutor(1) as pool:
        assert pool.submit(lambda: transform.PassContext.current().opt_level).result() == 2
    outer, inner = transform.PassContext(opt_level=3), transform.PassContext(opt_level=1)
    with outer:
        inner.__enter__()
        with pytest.raises(RuntimeError, match="in the order opposite"):
            outer.__exit__(None, None, None)
        inner.__exit__(None, None, None)
        assert transform.PassContext.current() is outer
    with pytest.raises(RuntimeError, match="in the order opposite"):
        outer.__exit__(None, None, None)


def test_times_after_a_pass_that_raised_are_refused() -> None:
    bad = transform.module_pass(lambda m, c: 1 // 0, opt_level=0, name="bad")
    timing = instrument.PassTimingInstrument()
    with transform.PassContext(instruments=[timing]):
        with pytest.raises(ZeroDivisionError):
            transform.Sequential([bad])(MODULE)
        with pytest.raises(RuntimeError, match="not ended: sequential, bad"):
            timing.render()
