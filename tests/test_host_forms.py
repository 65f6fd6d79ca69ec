"""The call forms beyond ``call_tir`` as native code: in-place calls, memory, checks, null values, context."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from form_tools import both, machine, module, settled

import supple
from supple import relax
from supple.base.errors import ArgumentError, DiagnosticError, ExecutionError, NotSupportedError
from supple.ir.structural import assert_structural_equal
from supple.ir.types import result_types
from supple.runtime import VirtualMachine

HEAD = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def scale(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32")):
        n = T.int64()
        for i in T.serial(n):
            B[i] = B[i] * A[i]

    @T.prim_func(private=True)
    def increment(B: T.Buffer(("n",), "float32")):
        n = T.int64()
        for i in T.serial(n):
            B[i] = B[i] + T.float32(1)

    @T.prim_func(private=True)
    def split(A: T.Buffer(("n",), "float32"), B: T.Buffer(("n",), "float32"), C: T.Buffer(("n",), "float32")):
        n = T.int64()
        for i in T.serial(n):
            C[i] = A[i] - B[i]
            A[i] = A[i] + B[i]
"""

N = 'R.Tensor(("n",), "float32")'
OUT = 'R.Tensor((n,), "float32")'


def program(body: str, params: str = f"x: {N}, y: {N}", pure: bool = False) -> str:
    lines = "\n".join(f"        {line}" for line in body.strip().split("\n"))
    head = "" if pure else "(pure=False)"
    return f"{HEAD}\n    @R.function{head}\n    def main({params}):\n        n = T.int64()\n{lines}\n"


def numbers(n: int = 5, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1, 1, n).astype("f4")


# ----------------------------------------------------------------------------------------------------------- in place


def test_in_place_on_an_intermediate_reuses_its_memory():
    text = program(f"""
a = R.add(x, y)
b = R.call_tir_inplace(Module.scale, (x, a), [1], out_ty={OUT})
c = R.call_tir_inplace(Module.increment, (b,), [0], out_ty={OUT})
return R.add(c, y)
""")
    both(text, numbers(), numbers(seed=1))
    host = supple.compile(module(text)).as_text()
    assert host.count("alloc") == 0
    assert host.count("arena + ") == 1  # one place for a, b and c


def test_in_place_on_a_parameter_is_seen_by_the_caller():
    vm = machine(program(f"b = R.call_tir_inplace(Module.increment, (x,), [0], out_ty={OUT})\nreturn b"))
    x = np.zeros(3, "f4")
    result = vm["main"](x, x.copy())
    assert result is x
    np.testing.assert_array_equal(x, np.ones(3))


def test_reads_after_an_in_place_call_see_it_and_views_as_well():
    both(program(f"""
a = R.add(x, y)
v = R.reshape(a, [n, 1])
b = R.call_tir_inplace(Module.increment, (a,), [0], out_ty={OUT})
return (R.add(a, a), R.add(v, v), b, a)
"""), numbers(), numbers(seed=1))  # fmt: skip


def test_one_result_in_place_and_one_fresh():
    text = program(f"""
a = R.add(x, y)
t = R.call_tir_inplace(Module.split, (a, y), [0, -1], out_ty=[{OUT}, {OUT}])
u = R.add(t[0], t[1])
return (u, t)
""")
    both(text, numbers(), numbers(seed=1))


def test_in_place_through_branches_calls_and_tuples():
    text = (
        HEAD
        + f"""
    @R.function(private=True, pure=False)
    def bump(v: {N}) -> {N}:
        n = T.int64()
        w = R.call_tir_inplace(Module.increment, (v,), [0], out_ty={OUT})
        return w

    @R.function(pure=False)
    def main(x: {N}, y: {N}, c: R.Tensor((), "bool")):
        n = T.int64()
        if c:
            a = R.add(x, y)
        else:
            a = x
        t = (a, y)
        b = Module.bump(t[0])
        d = Module.bump(t[1])
        return (a, b, d, t)
"""
    )
    for flag in (True, False):
        both(text, numbers(), numbers(seed=1), np.array(flag))


def test_a_constant_is_copied_before_it_is_overwritten():
    text = program("""
k = R.const([1.0, 2.0], "float32")
b = R.call_tir_inplace(Module.increment, (k,), [0], out_ty=R.Tensor((2,), "float32"))
return (b, R.add(k, x))
""", params='x: R.Tensor((2,), "float32")').replace("n = T.int64()\n        k =", "k =")  # fmt: skip
    vm = machine(text)
    for _ in range(2):
        b, rest = vm["main"](np.zeros(2, "f4"))
        np.testing.assert_array_equal(b, [2, 3])
        np.testing.assert_array_equal(rest, [1, 2])


def test_memory_that_may_not_be_written_is_refused():
    vm = machine(program(f"b = R.call_tir_inplace(Module.increment, (x,), [0], out_ty={OUT})\nreturn b"))
    frozen = np.zeros(4, "f4")
    frozen.flags.writeable = False
    before = settled()
    for bad in (frozen, np.zeros(8, "f4")[::2], np.frombuffer(b"abcdefgh", "f4")):
        with pytest.raises(ExecutionError, match="may not be written"):
            vm["main"](bad, np.zeros(len(bad), "f4"))
    assert settled() == before
    assert (frozen == 0).all()


def test_a_read_only_array_that_python_returns_is_not_written():
    frozen = np.zeros(4, "f4")
    frozen.flags.writeable = False
    supple.register_global_func("test.forms.frozen", lambda: frozen, override=True)
    text = program("""
k = R.call_packed("test.forms.frozen", ty_args=R.Tensor((4,), "float32"))
b = R.call_tir_inplace(Module.increment, (k,), [0], out_ty=R.Tensor((4,), "float32"))
return b
""")
    vm = machine(text)
    with pytest.raises(ExecutionError, match="may not be written"):
        vm["main"](numbers(4), numbers(4))
    own = np.zeros(4, "f4")
    supple.register_global_func("test.forms.frozen", lambda: own, override=True)
    vm["main"](numbers(4), numbers(4))
    np.testing.assert_array_equal(own, np.ones(4))
    supple.remove_global_func("test.forms.frozen")


def test_what_is_written_overlaps_no_other_argument():
    vm = machine(program(f"b = R.call_tir_inplace(Module.scale, (x, y), [1], out_ty={OUT})\nreturn b"))
    x = numbers(8)
    for a, b in ((x, x), (x[:4], x[2:6]), (x[2:6], x[:4])):
        with pytest.raises(ExecutionError, match="shares memory"):
            vm["main"](a, b)
    vm["main"](x[:4], x[4:])
    empty = x[:0]
    vm["main"](empty, empty)


def test_an_in_place_result_must_have_the_declared_shape():
    vm = machine(program("""
b = R.call_tir_inplace(Module.increment, (x,), [0], out_ty=R.Tensor((4,), "float32"))
return b
"""))  # fmt: skip
    vm["main"](numbers(4), numbers(4))
    with pytest.raises(ExecutionError, match=r"expected Tensor\(\(4,\), float32\)"):
        vm["main"](numbers(5), numbers(5))


def test_call_tir_dyn_writes_where_the_loop_function_does():
    text = program("""
a = R.add(x, y)
_ = R.vm.call_tir_dyn(Module.scale, (x, a))
_1 = R.vm.call_tir_dyn(Module.increment, (y,))
return (a, y)
""")
    both(text, numbers(), numbers(seed=1))
    vm = machine(text)
    frozen = numbers()
    frozen.flags.writeable = False
    vm["main"](frozen, numbers())
    with pytest.raises(ExecutionError, match="argument 0: its memory may not be written"):
        vm["main"](numbers(), frozen)
    with pytest.raises(NotSupportedError, match="writes into a constant"):
        machine(program("""
k = R.const([1.0, 2.0], "float32")
_ = R.vm.call_tir_dyn(Module.increment, (k,))
return k
"""))  # fmt: skip


def test_call_tir_dyn_passes_symbols_last():
    text = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def fill(B: T.Buffer((4,), "int64"), n: T.int64, m: T.int64):
        for i in range(4):
            B[i] = n * m

    @R.function(pure=False)
    def main(x: R.Tensor(("k", "l"), "float32")):
        k, l = T.int64(), T.int64()
        a = R.builtin.alloc_tensor(R.shape([4]), R.dtype("int64"), R.prim_value(0))
        s = R.shape([k, l + 1])
        _ = R.vm.call_tir_dyn(Module.fill, (a, s))
        return a
"""
    np.testing.assert_array_equal(both(text, np.zeros((2, 3), "f4")), [8, 8, 8, 8])


def test_in_place_packed_functions():
    def bump(x, y):
        np.asarray(x)[...] += np.asarray(y)
        return x, np.asarray(y) * 2

    supple.register_global_func("test.forms.bump", bump, override=True)
    text = program(f"""
a = R.add(x, y)
t = R.call_inplace_packed("test.forms.bump", a, y, inplace_indices=[0, -1], ty_args=[{OUT}, {OUT}])
return (t, a, R.add(a, a))
""")
    both(text, numbers(), numbers(seed=1))
    wrong = program(f"""
t = R.call_inplace_packed("test.forms.bump", x, y, inplace_indices=[0, -1], ty_args=[{OUT}, R.Tensor((7,), "float32")])
return t
""")
    with pytest.raises(ExecutionError, match="result 1 of packed function"):
        machine(wrong)["main"](numbers(), numbers())
    supple.remove_global_func("test.forms.bump")


# -------------------------------------------------------------------------------------------------------- small forms


def test_builtins_get_the_machine():
    seen = []

    def second(machine, x):
        seen.append(machine)
        return machine["other"](x)

    supple.register_global_func("test.forms.second", second, override=True)
    text = (
        HEAD
        + f"""
    @R.function
    def other(x: {N}) -> {N}:
        return R.add(x, x)

    @R.function(pure=False)
    def main(x: {N}) -> {N}:
        a = R.call_builtin_with_ctx("test.forms.second", (x,), ty_args={N})
        return a
"""
    )
    vm = machine(text)
    another = VirtualMachine(vm.module, supple.cpu())
    calls = [vm["main"], another["main"], vm.module["main"]]
    vm.save_function("main", "saved", np.ones(3, "f4"))
    for call in calls:
        np.testing.assert_array_equal(call(np.ones(3, "f4")), [2, 2, 2])
    vm["saved"]()
    vm.set_input("main", np.ones(3, "f4"))
    vm.invoke_stateful("main")
    vm.set_instrument(lambda *_: None)
    vm["main"](np.ones(3, "f4"))
    assert seen == [vm, another, vm, vm, vm, vm]
    alone = supple.compile(supple.script.from_source(text))
    alone["main"](np.ones(3, "f4"))  # no machine: one is made
    assert isinstance(seen[-1], VirtualMachine) and seen[-1].module is alone
    supple.remove_global_func("test.forms.second")


def test_assertions():
    text = program("""
_ = R.assert_op(c, x, n, format="x is {} of {}")
a = R.add(x, x)
_1 = R.assert_op(R.const(True))
return a
""", params=f'x: {N}, c: R.Tensor((), "bool")')  # fmt: skip
    both(text, numbers(), np.array(True))
    vm = machine(text)
    before = settled()
    for _ in range(3):
        with pytest.raises(ExecutionError, match=r"assert_op: x is \[1\. 1\.\] of 2"):
            vm["main"](np.ones(2, "f4"), np.array(False))
    assert settled() == before
    plain = machine("""
@R.function(pure=False)
def main(c: R.Tensor((), "bool")):
    _ = R.assert_op(c)
    return c
""")
    with pytest.raises(ExecutionError, match="the condition is false"):
        plain["main"](np.array(False))
    scalar = program("_ = R.assert_op(k > 3, k, format='k is {}')\nreturn x", params=f'x: {N}, k: R.Prim("int64")')
    machine(scalar)["main"](numbers(), 4)
    with pytest.raises(ExecutionError, match="k is 3"):
        machine(scalar)["main"](numbers(), 3)


def test_an_assertion_shows_an_intermediate():
    vm = machine(program("""
a = R.add(x, x)
_ = R.assert_op(c, a, format="a is {}")
return R.add(a, x)
""", params=f'x: {N}, c: R.Tensor((), "bool")'))  # fmt: skip
    with pytest.raises(ExecutionError, match=r"a is \[2\.\]"):
        vm["main"](np.ones(1, "f4"), np.array(False))
    np.testing.assert_array_equal(vm["main"](np.ones(1, "f4"), np.array(True)), [3])


def test_null_values_travel():
    got = []
    supple.register_global_func("test.forms.null", lambda a, b: got.append((a, b)), override=True)
    text = program("""
a = R.null_value()
_ = R.call_packed("test.forms.null", a, x, ty_args=R.Tuple())
if c:
    b = a
else:
    b = R.null_value()
return (a, b, x)
""", params=f'x: {N}, c: R.Tensor((), "bool")')  # fmt: skip
    both(text, numbers(), np.array(True))
    assert all(a is None for a, _ in got)
    supple.remove_global_func("test.forms.null")
    got.clear()


def test_tensor_to_shape():
    known = """
@R.function
def main(x: R.Tensor((2,), "int64"), y: R.Tensor(("n",), "float32")):
    n, k, m = T.int64(), T.int64(), T.int64()
    s = R.tensor_to_shape(x)
    t = R.match_cast(s, R.Shape([k, m]))
    w = R.match_cast(y, R.Tensor((k * m,), "float32"))
    z = R.reshape(w, R.shape([k, m]))
    return (z, s, t)
"""
    both(known, np.array([2, 3]), numbers(6))
    vm = machine(known)
    with pytest.raises(ExecutionError, match="k \\* m is 8"):
        vm["main"](np.array([2, 4]), numbers(6))
    with pytest.raises(ExecutionError, match="negative size -2"):
        vm["main"](np.array([-2, -3]), numbers(6))
    unknown = """
@R.function
def main(x: R.Tensor(("n",), "int64")):
    s = R.tensor_to_shape(x)
    return s
"""
    for values in ([], [3], [1, 2, 3]):
        both(unknown, np.array(values, "int64"))


# -------------------------------------------------------------------------------------------------------------- memory


def test_storage_and_views_share_memory():
    text = program("""
s = R.memory.alloc_storage(R.shape([32]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
a = R.memory.alloc_tensor(s, R.prim_value(0), R.shape([4]), R.dtype("float32"))
b = R.memory.alloc_tensor(s, R.prim_value(16), R.shape([4]), R.dtype("float32"))
w = R.memory.alloc_tensor(s, R.prim_value(0), R.shape([2, 4]), R.dtype("float32"))
_ = R.vm.call_tir_dyn(Module.copy, (x, a))
_1 = R.vm.call_tir_dyn(Module.copy, (y, b))
v = R.add(w, w)
c = R.memory.view(b, R.shape([2]), R.dtype("float32"), R.prim_value(8))
d = R.add(c, c)
_2 = R.memory.kill_tensor(a)
_3 = R.memory.kill_storage(s)
return RESULT
""", params='x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")')  # fmt: skip
    text = text.replace("        n = T.int64()\n        s =", "        s =").replace(
        "    @R.function", """    @T.prim_func(private=True)
    def copy(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i]

    @R.function""")  # fmt: skip
    for result in ("(v, d)", "(w, c, v, d)", "c", "(a, b)"):
        both(text.replace("RESULT", result), numbers(4), numbers(4, 1))


def test_views_of_parameters_constants_and_intermediates():
    text = """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), o: R.Prim("int64")):
    n = T.int64()
    a = R.memory.view(x, R.shape([2, 4]), R.dtype("float32"), o)
    b = R.memory.view(x, R.tuple(), R.dtype("int32"), R.tuple())
    e = R.null_value()
    c = R.memory.view(R.const([1.0, 2.0], "float32"), e, R.dtype("int32"), e)
    i = R.add(x, x)
    d = R.memory.view(i, R.shape([4]), e, R.prim_value(16))
    z = R.memory.ensure_zero_offset(d)
    return (a, b, c, R.add(z, z), d)
"""
    x = np.arange(20, dtype="f4").reshape(5, 4)
    for offset in (0, 16, 48):
        both(text, x, offset)
    vm = machine(text)
    before = settled()
    for offset, message in ((-4, "negative"), (2, "no multiple of 4"), (52, "do not fit in 80 bytes"), (2**62, "fit")):
        with pytest.raises(ExecutionError, match=message):
            vm["main"](x, offset)
    assert settled() == before
    a = vm["main"](x, 16)[0]
    assert np.shares_memory(a, x)


def test_memory_of_symbolic_size():
    text = """
@R.function
def main(x: R.Tensor(("n",), "float32")):
    n = T.int64()
    s = R.vm.alloc_storage(R.shape([n * 8]), R.prim_value(0), R.dtype("uint8"))
    a = R.vm.alloc_tensor(s, n * 4, R.shape([n]), R.dtype("float32"))
    _ = R.vm.kill_object(s)
    return R.shape_of(a)
"""
    text = text.replace("@R.function", "@R.function(pure=False)")
    assert both(text, numbers(5)) == (5,)
    assert both(text, numbers(0)) == (0,)


def test_forms_from_four_threads():
    vm = machine(program(f"""
a = R.add(x, y)
b = R.call_tir_inplace(Module.scale, (x, a), [1], out_ty={OUT})
_ = R.assert_op(R.const(True), b)
s = R.memory.alloc_storage(R.shape([n * 4]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
c = R.memory.alloc_tensor(s, R.prim_value(0), R.shape([n]), R.dtype("float32"))
d = R.call_tir_inplace(Module.increment, (y,), [0], out_ty={OUT})
return (b, d, c)
"""))  # fmt: skip
    before = settled()
    errors = []

    def run(seed: int) -> None:
        try:
            for n in range(1, 60):
                x, y = numbers(n, seed), numbers(n, seed + 100)
                wanted = (x + y) * x, y + np.float32(1)
                b, d, _ = vm["main"](x, y)
                np.testing.assert_array_equal(b, wanted[0])
                np.testing.assert_array_equal(d, wanted[1])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert settled() == before


def test_wrong_arguments_are_named():
    vm = machine(program(f"b = R.call_tir_inplace(Module.increment, (x,), [0], out_ty={OUT})\nreturn b"))
    with pytest.raises(ArgumentError, match="parameter x"):
        vm["main"](np.zeros((2, 2), "f4"), numbers())
    with pytest.raises(ArgumentError, match="parameter y"):
        vm["main"](numbers(4), numbers(5))


def test_values_that_are_written_are_not_folded_to_constants():
    """Reads after a write must see it, so what is written is computed when the program runs."""
    supple.register_global_func("test.forms.plus", lambda a: np.add(a, 1, out=np.asarray(a)), override=True)
    text = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def increment(B: T.Buffer((2,), "float32")):
        for i in range(2):
            B[i] = B[i] + T.float32(1)

    @R.function(private=True, pure=False)
    def bump(v: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        w = R.call_tir_inplace(Module.increment, (v,), [0], out_ty=R.Tensor((2,), "float32"))
        return w

    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")):
        a = R.zeros(R.shape([2]), "float32")
        WRITE
        return (b, a, R.add(a, x))
"""
    for write in (
        'b = R.call_tir_inplace(Module.increment, (a,), [0], out_ty=R.Tensor((2,), "float32"))',
        "b = Module.bump(a)",
        't = (a, a)\n        v = R.reshape(t[1], R.shape([2]))\n        b = Module.bump(v)',
        "b = x\n        _ = R.vm.call_tir_dyn(Module.increment, (a,))",
        'b = R.call_packed("test.forms.plus", a, ty_args=R.Tensor((2,), "float32"))',
        'b = R.call_inplace_packed("test.forms.plus", a, inplace_indices=0, ty_args=R.Tensor((2,), "float32"))',
        'f = R.make_closure(Module.bump, (a,))\n        b = R.invoke_closure(f, R.tuple(), '
        'ty_args=R.Tensor((2,), "float32"))',
    ):  # fmt: skip
        _, a, c = both(text.replace("WRITE", write), np.ones(2, "f4"))
        np.testing.assert_array_equal(a, [1, 1])
        np.testing.assert_array_equal(c, [2, 2])
    supple.remove_global_func("test.forms.plus")


def test_a_loop_function_that_writes_its_inputs_does_not_write_read_only_memory():
    text = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def wrong(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i]
            A[i] = T.float32(7)

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        b = R.call_tir(Module.wrong, (x,), out_ty=R.Tensor((4,), "float32"))
        return b
"""
    both(text, numbers(4))
    vm = machine(text)
    for bad in (np.frombuffer(bytes(16), "f4"), np.zeros(8, "f4")[::2]):
        with pytest.raises(ExecutionError, match="call_tir of wrong: argument 0: its memory may not be written"):
            vm["main"](bad)


def test_in_place_packed_functions_need_memory_that_can_be_written():
    supple.register_global_func("test.forms.fill", lambda x: np.asarray(x).fill(3), override=True)
    vm = machine("""
@R.function(pure=False)
def main(x: R.Tensor(("n",), "float32")):
    b = R.call_inplace_packed("test.forms.fill", x, inplace_indices=0, ty_args=R.Tensor(ndim=1, dtype="float32"))
    return b
""")
    x = np.zeros(8, "f4")
    assert vm["main"](x) is x
    assert (x == 3).all()
    with pytest.raises(ExecutionError, match=r"call_inplace_packed of .*: argument 0"):
        vm["main"](x[::2])
    supple.remove_global_func("test.forms.fill")


def test_what_is_written_in_place_is_known_not_to_overlap():
    text = program(f"""
a = R.call_tir_inplace(Module.scale, (x, y), [1], out_ty={OUT})
t = R.call_tir_inplace(Module.split, (a, x), [0, -1], out_ty=[{OUT}, {OUT}])
return t
""")
    lowered = supple.lower(module(text))
    assert lowered["scale"].attrs["tirx.noalias"] is True
    assert lowered["split"].attrs["tirx.noalias"] is True
    both(text, numbers(40), numbers(40, 1))


def test_a_view_needs_aligned_memory():
    text = """
@R.function
def main(x: R.Tensor((16,), "uint8")):
    a = R.memory.view(x, R.shape([2]), R.dtype("float64"), R.tuple())
    return R.add(a, a)
"""
    both(text, np.arange(16, dtype="u1"))
    vm = machine(text)
    memory = np.zeros(40, "u1")
    start = -memory.ctypes.data % 8
    vm["main"](memory[start : start + 16])
    with pytest.raises(ExecutionError, match="not aligned for float64"):
        vm["main"](memory[start + 1 : start + 17])


def test_legalized_calls_stay_on_their_virtual_devices():
    mod = supple.script.from_source(
        f"""
{HEAD}    I.module_global_infos({{"vdevice": [I.vdevice("llvm"), I.vdevice("cuda")]}})
    @R.function
    def main(x: R.Tensor((2, 4), "float32", "llvm"), y: R.Tensor((2, 4), "float32", "cuda")):
        with R.dataflow():
            z = R.to_vdevice(x, "cuda:0")
            w = R.add(z, y)
            v = R.add(y, y)
            s = R.split(w, 2, axis=1)
            u = (v, s)
            R.output(u)
        return u
"""
    )
    legal = relax.transform.LegalizeOps()(mod)
    values = {b.var.name: b.value for b in legal["main"].body.blocks[0].bindings}
    assert values["z"].op.name == "relax.to_vdevice"
    for name, count in (("w", 1), ("v", 1), ("s", 2)):
        devices = [ty.vdevice.kind for ty in result_types(values[name].ty_args)]
        assert devices == ["cuda"] * count, name
    assert "to_vdevice" not in supple.lower(mod).script()


@pytest.mark.parametrize(("dtype", "value"), [("float32", 2.5), ("int64", 7), ("float16", 0.1), ("uint64", 2**64 - 3)])
def test_numbers_beside_tensors(dtype: str, value: float):
    """Elementwise operators take a number of the tensor's dtype, on either side; it reaches kernels as an argument."""
    text = f"""
@R.function
def main(x: R.Tensor(("n", 3), "{dtype}"), s: R.Prim("{dtype}"), t: R.Prim("{dtype}")):
    with R.dataflow():
        a = R.add(x, s)
        b = R.multiply(t, a)
        c = R.add(x, t)
        d = x - T.{dtype}(1)
        e = R.greater(x, s)
        f = R.power(x, T.{dtype}(2))
        g = R.clip(b, T.{dtype}(1), s)
        r = (b, c, d, e, f, g)
        R.output(r)
    return r
"""
    both(text, np.array([[1, 2, 3], [4, 5, 6]], dtype), value, 3)
    assert_structural_equal(module(module(text).script()), module(text))


def test_numbers_that_do_not_fit_beside_tensors():
    head = '@R.function\ndef main(x: R.Tensor((2,), "float32"), s: R.Prim("float64"), k: R.Prim("int64")):\n    return '
    for body, message in (
        ("R.add(x, s)", "the operands have different dtypes"),
        ("R.exp(s)", "takes a tensor"),
    ):
        with pytest.raises(DiagnosticError, match=message) as caught:
            module(head + body)
        assert caught.value.span is not None and caught.value.span.line == 3
