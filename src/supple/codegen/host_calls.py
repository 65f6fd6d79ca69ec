"""Calls in host code: kernels, graph functions, Python, closures."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from supple.codegen.host_emitter import Emitter, closure_symbol, host_symbol
from supple.codegen.kernel_builder import llvm_type
from supple.codegen.writer import Writer
from supple.ir import expr as E
from supple.ir import host as H
from supple.ir.host import HostVar
from supple.runtime import abi
from supple.runtime.abi import Status

_NUL = "null"


def kernel_call(host: Emitter, s: H.KernelCall) -> None:
    """Run a kernel; leave the function when it fails."""
    types = ["ptr"] * (1 + len(s.buffers))
    args = ["ptr %ctx", *(f"ptr {host.pointer(b)}" for b in s.buffers)]
    for scalar in s.scalars:
        dtype = E.scalar_dtype(scalar)
        ty, value = llvm_type(dtype), host.numbers.taken_by_kernels(dtype, host.value(scalar))
        args.append(f"{ty} {value}")
        types.append(ty)
    for symbol in s.symbols:
        args.append(f"i64 {host.value(symbol)}")
        types.append("i64")
    args.append(f"ptr {host.pointer(s.workspace) if s.workspace is not None else _NUL}")
    types.append("ptr")
    host.declarations.add(f"declare i32 @{s.kernel}({', '.join(types)})")
    host.leave_on(host.w.value(f"call i32 @{s.kernel}({', '.join(args)})"), callee="kernel")


def clear_return(host: Emitter, s: H.ClearReturn) -> None:
    """Forget what an earlier kernel returned."""
    at = host.w.value(f"getelementptr i8, ptr %ctx, i64 {abi.CONTEXT_RETURNED}")
    host.w.emit(f"store i32 0, ptr {at}")


def take_return(host: Emitter, s: H.TakeReturn) -> None:
    """What the last kernel returned, and whether it did."""
    flag = host.field("%ctx", abi.CONTEXT_RETURNED, "i32")
    host.numbers.define(s.flag, host.w.value(f"icmp ne i32 {flag}, 0"))
    host.number_at(s.var, "%ctx", abi.CONTEXT_VALUES)


def host_call(host: Emitter, s: H.HostCall) -> None:
    """Call a graph function."""
    args = ", ".join(["ptr %ctx", *(f"ptr {host.pointer(a)}" for a in s.args), "ptr %result"])
    host.leave_on(host.w.value(f"call i32 @{host_symbol(s.function)}({args})"), callee="function")
    host.own(s.var, host.w.value("load ptr, ptr %result"))


def arguments(host: Emitter, args: Sequence[HostVar]) -> None:
    """Objects in the array of arguments."""
    host.widest_call = max(host.widest_call, len(args))
    for i, arg in enumerate(args):
        at = host.w.value(f"getelementptr ptr, ptr %argv, i64 {i}")
        host.w.emit(f"store ptr {host.pointer(arg)}, ptr {at}")


def callback(host: Emitter, index: int, count: int) -> str:
    """Call into Python on the array of arguments; the status."""
    callback = host.field("%ctx", abi.CONTEXT_CALLBACK, "ptr")
    answer_at = host.w.value(f"getelementptr i8, ptr %ctx, i64 {abi.CONTEXT_ANSWER}")
    host.w.emit(f"store i64 0, ptr {answer_at}")
    host.w.emit(f"call i32 {callback}(ptr %ctx, i64 {index}, ptr %argv, i64 {count}, ptr %result)")
    answer = host.w.value(f"load i64, ptr {answer_at}")
    less = host.w.value(f"sub i64 {answer}, 1")
    narrow = host.w.value(f"trunc i64 {less} to i32")
    lost = host.w.value(f"icmp eq i64 {answer}, 0")
    return host.w.value(f"select i1 {lost}, i32 {int(Status.PYTHON_EXCEPTION)}, i32 {narrow}")


def packed_call(host: Emitter, s: H.PackedCall) -> None:
    """Call into Python."""
    arguments(host, s.args)
    host.leave_on(callback(host, s.index, len(s.args)))
    host.own(s.var, host.w.value("load ptr, ptr %result"))


def of_callee(
    host: Emitter, s: H.CallClosure | H.ExtendClosure, args: Sequence[HostVar], call: Callable[[str], str]
) -> None:
    """``call`` on a closure, which gives a status and sets the result; Python for a callable of Python's."""
    callee = host.pointer(s.callee)
    arguments(host, (s.callee, *args))
    kind = host.field(callee, abi.OBJECT_KIND, "i32")
    code = host.field(callee, abi.OBJECT_CODE, "i32")
    native, other, join = host.w.fresh("native"), host.w.fresh("other"), host.w.fresh("join")
    is_closure = host.w.value(f"icmp eq i32 {kind}, {int(abi.Kind.CLOSURE)}")
    host.w.emit(f"br i1 {is_closure}, label %{native}, label %{other}")
    host.w.label(native)
    host.w.emit(f"store i32 {call(callee)}, ptr %called")
    host.w.emit(f"br label %{join}")
    host.w.label(other)
    came = [host.w.value(f"zext i32 {part} to i64") for part in (kind, code)]
    host.branch_if(host.is_no_callable(kind, code), host.failure(s.site, [*came, "-1"]))
    host.w.emit(f"store i32 {callback(host, s.python, len(args) + 1)}, ptr %called")
    host.w.emit(f"br label %{join}")
    host.w.label(join)
    host.leave_on(host.w.value("load i32, ptr %called"))
    host.own(s.var, host.w.value("load ptr, ptr %result"))


def open_params(host: Emitter, callee: str) -> str:
    """How many arguments a closure still takes."""
    params = host.field(callee, abi.CLOSURE_PARAMS, "i64")
    return host.w.value(f"sub i64 {params}, {host.field(callee, abi.LIST_LENGTH, 'i64')}")


def call_closure(host: Emitter, s: H.CallClosure) -> None:
    """Call a closure on exactly the arguments that it still takes."""

    def call(callee: str) -> str:
        wanted = open_params(host, callee)
        wrong = host.w.value(f"icmp ne i64 {wanted}, {len(s.args)}")
        host.branch_if(wrong, host.failure(s.count, [wanted]))
        code = host.field(callee, abi.CLOSURE_CODE, "ptr")
        args = host.w.value("getelementptr ptr, ptr %argv, i64 1")
        return host.w.value(f"call i32 {code}(ptr %ctx, ptr {callee}, ptr {args}, ptr %result)")

    of_callee(host, s, s.args, call)


def extend_closure(host: Emitter, s: H.ExtendClosure) -> None:
    """A closure with more arguments fixed."""

    def extend(callee: str) -> str:
        wanted = open_params(host, callee)
        few = host.w.value(f"icmp slt i64 {wanted}, {len(s.captured)}")
        host.branch_if(few, host.failure(s.count, [wanted]))
        pointer = host.api("closure_extend", "ptr", f"ptr {callee}, i64 {len(s.captured)}")
        host.branch_if(host.w.value(f"icmp eq ptr {pointer}, null"), "fail.memory")
        length = host.field(callee, abi.LIST_LENGTH, "i64")
        behind = host.w.value(f"getelementptr ptr, ptr {pointer}, i64 {length}")
        host.store_objects(behind, abi.CLOSURE_CAPTURED, s.captured)
        host.w.emit(f"store ptr {pointer}, ptr %result")
        return "0"

    of_callee(host, s, s.captured, extend)


def make_closure(host: Emitter, s: H.MakeClosure) -> None:
    """A new closure of a function of the module."""
    code = f"ptr @{closure_symbol(s.name)}"
    pointer = host.api("closure_new", "ptr", f"i64 {len(s.captured)}, {code}, i64 {s.params}, i32 {s.index}")
    host.made(s.var, pointer)
    host.store_objects(pointer, abi.CLOSURE_CAPTURED, s.captured)


def call_on_array(w: Writer, name: str, count: int, array: str) -> str:
    """Call a graph function on the objects of an array; the status."""
    args = ["ptr %ctx"]
    for i in range(count):
        at = w.value(f"getelementptr ptr, ptr {array}, i64 {i}")
        args.append(f"ptr {w.value(f'load ptr, ptr {at}')}")
    args.append("ptr %result")
    return w.value(f"call i32 @{host_symbol(name)}({', '.join(args)})")


def closure_code(name: str, count: int) -> str:
    """What a closure's ``code`` points at: the function on what is captured, followed by the arguments."""
    w = Writer()
    room = w.value(f"alloca ptr, i64 {max(1, count)}")
    length = w.field("%closure", abi.LIST_LENGTH, "i64")
    captured = w.value(f"getelementptr i8, ptr %closure, i64 {abi.CLOSURE_CAPTURED}")
    taken = w.value(f"mul i64 {length}, 8")
    rest = w.value(f"sub i64 {8 * count}, {taken}")
    behind = w.value(f"getelementptr i8, ptr {room}, i64 {taken}")
    w.emit(f"call void @llvm.memcpy.p0.p0.i64(ptr {room}, ptr {captured}, i64 {taken}, i1 false)")
    w.emit(f"call void @llvm.memcpy.p0.p0.i64(ptr {behind}, ptr %args, i64 {rest}, i1 false)")
    status = call_on_array(w, name, count, room)
    w.emit(f"ret i32 {status}")
    head = f"define internal i32 @{closure_symbol(name)}(ptr %ctx, ptr %closure, ptr %args, ptr %result)"
    return f"{head} {{\n{w.text()}\n}}\n"
