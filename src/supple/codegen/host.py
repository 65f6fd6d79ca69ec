"""Host IR to LLVM text: one module for all graph functions of an executable.

The module refers to kernels by name and to nothing else: the runtime's functions, the constants and the callback into
Python come through the context (layouts in ``runtime.abi``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from supple.base import dtypes
from supple.base.errors import InternalError
from supple.codegen import host_calls as calls
from supple.codegen.host_emitter import Emitter, entry_symbol, host_symbol
from supple.codegen.host_numbers import number_type
from supple.codegen.writer import Writer
from supple.ir import expr as E
from supple.ir import host as H
from supple.ir.expr import Var
from supple.ir.host import HostFunction, HostStmt, HostVar
from supple.ir.node import Expr
from supple.passes.host_values import nbytes_of
from supple.runtime import abi
from supple.runtime.abi import ErrorSite, Status

_HELPERS = """
define internal void @clear_slots(ptr %slots, i64 %count) {
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %i.next, %clear ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %clear, label %done
clear:
  %slot = getelementptr ptr, ptr %slots, i64 %i
  store ptr null, ptr %slot
  %i.next = add i64 %i, 1
  br label %next
done:
  ret void
}

define internal void @release_slots(ptr %slots, i64 %count, ptr %decref) {
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %i.next, %release ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %release, label %done
release:
  %slot = getelementptr ptr, ptr %slots, i64 %i
  %object = load ptr, ptr %slot
  call void %decref(ptr %object)
  %i.next = add i64 %i, 1
  br label %next
done:
  ret void
}
"""


def emit_host(
    functions: Sequence[HostFunction], public: Sequence[str], sites: list[ErrorSite], closures: Sequence[str] = ()
) -> str:
    """The LLVM module of host functions, with an entry for each name in ``public`` and in ``closures``, the functions
    that are used as values.

    Places that can fail are appended to ``sites``, the executable's table.
    """
    parts: list[str] = [_HELPERS]
    declarations: set[str] = set()
    arity = {f.name: len(f.params) for f in functions}
    for function in functions:
        emitter = HostEmitter(function, sites, declarations)
        parts.append(emitter.emit())
    parts.extend(_entry(name, arity[name]) for name in dict.fromkeys((*public, *closures)))
    parts.extend(calls.closure_code(name, arity[name]) for name in closures)
    if closures:
        declarations.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
    return "\n".join(sorted(declarations)) + "\n" + "\n".join(parts)


def _entry(name: str, count: int) -> str:
    """Unpacks the argument array; the first native frame of a thread sets the limit of the stack."""
    w = Writer()
    limit_at = w.value(f"getelementptr i8, ptr %ctx, i64 {abi.CONTEXT_STACK_LIMIT}")
    limit = w.value(f"load i64, ptr {limit_at}")
    fresh = w.value(f"icmp eq i64 {limit}, 0")
    budget = w.field("%ctx", abi.CONTEXT_STACK_BUDGET, "i64")
    frame = w.value("call ptr @llvm.frameaddress.p0(i32 0)")
    here = w.value(f"ptrtoint ptr {frame} to i64")
    lowest = w.value(f"sub i64 {here}, {budget}")
    chosen = w.value(f"select i1 {fresh}, i64 {lowest}, i64 {limit}")
    w.emit(f"store i64 {chosen}, ptr {limit_at}")
    status = calls.call_on_array(w, name, count, "%args")
    good = w.value(f"icmp eq i32 {status}, 0")
    w.emit(f"br i1 {good}, label %describe, label %done")
    w.label("describe")
    api = w.field("%ctx", abi.CONTEXT_API, "ptr")
    describe_at = w.value(f"getelementptr ptr, ptr {api}, i64 {abi.API.index('describe')}")
    describe = w.value(f"load ptr, ptr {describe_at}")
    w.emit(f"call void {describe}(ptr %result)")
    w.emit("br label %done")
    w.label("done")
    w.emit(f"ret i32 {status}")
    return f"define i32 @{entry_symbol(name)}(ptr %ctx, ptr %args, ptr %result) {{\n{w.text()}\n}}\n"


class HostEmitter(Emitter):
    """The emission of one function's statements."""

    def emit(self) -> str:
        """The text of the function."""
        function = self.function
        params: list[str] = ["ptr %ctx"]
        for i, param in enumerate(function.params):
            self.pointers[id(param)] = f"%p{i}"
            params.append(f"ptr %p{i}")
        params.append("ptr %out")
        self._body(function.prologue)
        self._body(function.body)
        code = self.w.text()
        head = self._head()
        tail = self._tail()
        return f"define i32 @{host_symbol(self.name)}({', '.join(params)}) {{\n{head}\n{code}\n{tail}\n}}\n"

    def _head(self) -> str:
        w = Writer()
        w.label("entry")
        w.emit("%status = alloca i32")
        w.emit("%result = alloca ptr")
        w.emit("%called = alloca i32")
        w.emit("%arena = alloca ptr")
        w.emit(f"%slots = alloca ptr, i64 {max(1, len(self.slots))}")
        w.emit(f"%argv = alloca ptr, i64 {max(1, self.widest_call)}")
        w.lines.extend(self.allocas)
        w.emit("store ptr null, ptr %arena")
        if self.slots:
            w.emit(f"call void @clear_slots(ptr %slots, i64 {len(self.slots)})")
        w.emit(f"%api.at = getelementptr i8, ptr %ctx, i64 {abi.CONTEXT_API}")
        w.emit("%api = load ptr, ptr %api.at")
        w.emit(f"%constants.at = getelementptr i8, ptr %ctx, i64 {abi.CONTEXT_CONSTANTS}")
        w.emit("%constants = load ptr, ptr %constants.at")
        w.emit(f"%depth.at = getelementptr i8, ptr %ctx, i64 {abi.CONTEXT_DEPTH}")
        w.emit("%depth.old = load i64, ptr %depth.at")
        w.emit("%depth = add i64 %depth.old, 1")
        w.emit("store i64 %depth, ptr %depth.at")
        w.emit(f"%depth.max.at = getelementptr i8, ptr %ctx, i64 {abi.CONTEXT_DEPTH_LIMIT}")
        w.emit("%depth.max = load i64, ptr %depth.max.at")
        w.emit("%too.deep = icmp sgt i64 %depth, %depth.max")
        w.emit(f"%stack.at = getelementptr i8, ptr %ctx, i64 {abi.CONTEXT_STACK_LIMIT}")
        w.emit("%stack.low = load i64, ptr %stack.at")
        w.emit("%frame = call ptr @llvm.frameaddress.p0(i32 0)")
        w.emit("%frame.at = ptrtoint ptr %frame to i64")
        w.emit("%too.low = icmp ult i64 %frame.at, %stack.low")
        w.emit("%recursion = or i1 %too.deep, %too.low")
        w.emit("br i1 %recursion, label %fail.recursion, label %start")
        w.label("start")
        return w.text()

    def _tail(self) -> str:
        w = Writer()
        w.emit("store i32 0, ptr %status")
        w.emit("br label %exit")
        w.lines.extend(self.failures)
        for label, status in (("recursion", Status.RECURSION), ("memory", Status.OUT_OF_MEMORY)):
            w.label(f"fail.{label}")
            w.emit(f"store i32 {int(status)}, ptr %status")
            w.emit("br label %exit")
        w.label("exit")
        w.emit("store i64 %depth.old, ptr %depth.at")
        if self.slots:
            w.emit(f"%decref.at = getelementptr ptr, ptr %api, i64 {abi.API.index('decref')}")
            w.emit("%decref = load ptr, ptr %decref.at")
            w.emit(f"call void @release_slots(ptr %slots, i64 {len(self.slots)}, ptr %decref)")
        w.emit("%arena.last = load ptr, ptr %arena")
        w.emit("%arena.used = icmp ne ptr %arena.last, null")
        w.emit("br i1 %arena.used, label %put, label %done")
        w.label("put")
        w.emit(f"%put.at = getelementptr ptr, ptr %api, i64 {abi.API.index('arena_put')}")
        w.emit("%put.fn = load ptr, ptr %put.at")
        w.emit("call void %put.fn(ptr %arena.last)")
        w.emit("br label %done")
        w.label("done")
        w.emit("%status.last = load i32, ptr %status")
        w.emit("ret i32 %status.last")
        return w.text()

    # ------------------------------------------------------------------------------------------------------ statements

    def _body(self, body: H.Body) -> None:
        stack: list[Iterator[HostStmt | Callable[[], None]]] = [iter(body)]
        while stack:
            item = next(stack[-1], None)
            if item is None:
                stack.pop()
            elif isinstance(item, H.Branch):
                stack.append(iter(self._branch(item)))
            elif isinstance(item, HostStmt):
                self.here = item.span
                _STATEMENTS[type(item)](self, item)
            else:
                item()

    def _check_object(self, s: H.CheckObject) -> None:
        pointer = self.pointer(s.value)
        kind = self.field(pointer, abi.OBJECT_KIND, "i32")
        code = self.field(pointer, abi.OBJECT_CODE, "i32")
        came = [self.w.value(f"zext i32 {part} to i64") for part in (kind, code)]
        other = self.w.value(f"icmp ne i32 {kind}, {s.kind}")
        if s.kind == abi.Kind.INT and s.dtype != "bool":
            # uint64 numbers say so: then the highest bit is a part of the number, else it is a sign
            unsigned = self.w.value(
                f"icmp {'ne' if s.dtype == 'uint64' else 'eq'} i32 {code}, {abi.dtype_code('uint64')}"
            )
            self.branch_if(other, self.failure(s.site, [*came, "-1"]))
            high = self.w.value(f"icmp slt i64 {self.field(pointer, abi.NUMBER_VALUE, 'i64')}, 0")
            self.branch_if(self.w.value(f"and i1 {high}, {unsigned}"), self.failure(s.site, [*came, "-1"]))
            return
        if s.kind == abi.Kind.CLOSURE:
            other = self.w.value(f"and i1 {other}, {self.is_no_callable(kind, code)}")
        self.branch_if(other, self.failure(s.site, [*came, "-1"]))
        if s.dtype is None and s.ndim < 0:
            return
        count = "-1"  # the rank or length can be read now that the kind is known
        if s.kind in (abi.Kind.TENSOR, abi.Kind.TUPLE, abi.Kind.SHAPE):
            count = self.field(pointer, abi.TENSOR_NDIM if s.kind == abi.Kind.TENSOR else abi.LIST_LENGTH, "i64")
        label = self.failure(s.site, [*came, count])
        if s.dtype is not None:
            self.branch_if(self.w.value(f"icmp ne i32 {code}, {abi.dtype_code(s.dtype)}"), label)
        if s.ndim >= 0:
            self.branch_if(self.w.value(f"icmp ne i64 {count}, {s.ndim}"), label)

    def _check_writable(self, s: H.CheckWritable) -> None:
        flags = self.field(self.pointer(s.value), abi.TENSOR_FLAGS, "i64")
        bit = self.w.value(f"and i64 {flags}, {abi.WRITABLE}")
        self.branch_if(self.w.value(f"icmp eq i64 {bit}, 0"), self.failure(s.site, []))

    def _check_aligned(self, s: H.CheckAligned) -> None:
        address = self.w.value(f"ptrtoint ptr {self.pointer(s.memory)} to i64")
        rest = self.w.value(f"urem i64 {address}, {s.nbytes}")
        self.branch_if(self.w.value(f"icmp ne i64 {rest}, 0"), self.failure(s.site, []))

    def _check_disjoint(self, s: H.CheckDisjoint) -> None:
        starts = [self.w.value(f"ptrtoint ptr {self.pointer(m)} to i64") for m in (s.a, s.b)]
        sizes = [self.value(n) for n in (s.a_bytes, s.b_bytes)]
        ends = [self.w.value(f"add i64 {start}, {size}") for start, size in zip(starts, sizes, strict=True)]
        before = self.w.value(f"icmp ult i64 {starts[0]}, {ends[1]}")
        behind = self.w.value(f"icmp ult i64 {starts[1]}, {ends[0]}")
        filled = [self.w.value(f"icmp ne i64 {size}, 0") for size in sizes]
        overlap = self.w.value(f"and i1 {before}, {behind}")
        overlap = self.w.value(f"and i1 {overlap}, {filled[0]}")
        self.branch_if(self.w.value(f"and i1 {overlap}, {filled[1]}"), self.failure(s.site, []))

    def _require(self, s: H.Require) -> None:
        condition = self.value(s.condition)
        values = [self.wide(v) for v in s.values]
        label = self.failure(s.site, values)
        self.branch_if(self.w.value(f"xor i1 {condition}, true"), label)

    def _load_dim(self, s: H.LoadDim) -> None:
        base = abi.LIST_ITEMS if s.of_shape else abi.TENSOR_DIMS
        self.numbers.define(s.var, self.field(self.pointer(s.value), base + 8 * s.axis, "i64"))

    def _load_number(self, s: H.LoadNumber) -> None:
        self.number_at(s.var, self.pointer(s.value), abi.NUMBER_VALUE)

    def _load_scalar(self, s: H.LoadScalar) -> None:
        row = dtypes.row(s.dtype)
        value = self.w.value(f"load {row.llvm}, ptr {self.pointer(s.memory)}")
        if row.kind == "bool":
            value = self.w.value(f"icmp ne i8 {value}, 0")
        elif row.kind in ("int", "uint") and row.bits < 64:
            value = self.w.value(f"{'sext' if row.kind == 'int' else 'zext'} {row.llvm} {value} to i64")
        self.numbers.define(s.var, value)

    def _compute(self, s: H.Compute) -> None:
        self.numbers.define(s.var, self.value(s.value))

    def _arena(self, s: H.Arena) -> None:
        pointer = self.api("arena_get", "ptr", f"i64 {self.value(s.nbytes)}")
        self.branch_if(self.w.value(f"icmp eq ptr {pointer}, null"), "fail.memory")
        self.w.emit(f"store ptr {pointer}, ptr %arena")
        self.pointers[id(s.memory)] = pointer

    def _alloc(self, s: H.Alloc) -> None:
        raise InternalError(f"{self.name}: memory was not planned ({s.memory.name})")

    def _at(self, s: H.At) -> None:
        offset = self.value(s.offset)
        self.pointers[id(s.memory)] = self.w.value(f"getelementptr i8, ptr {self.pointer(s.base)}, i64 {offset}")

    def _new_tensor(self, s: H.NewTensor) -> None:
        dims = [self.value(d) for d in s.shape]
        nbytes = self.value(nbytes_of(s.shape, s.dtype))
        pointer = self.api("tensor_new", "ptr", f"i64 {len(dims)}, i32 {abi.dtype_code(s.dtype)}, i64 {nbytes}")
        self.made(s.var, pointer)
        self._store_dims(pointer, abi.TENSOR_DIMS, dims)

    def _store_dims(self, pointer: str, offset: int, dims: list[str]) -> None:
        for axis, dim in enumerate(dims):
            at = self.w.value(f"getelementptr i8, ptr {pointer}, i64 {offset + 8 * axis}")
            self.w.emit(f"store i64 {dim}, ptr {at}")

    def _view_of(self, s: H.ViewOf) -> None:
        source = self.pointer(s.source)
        dims = [self.value(d) for d in s.shape]
        nbytes = self.value(nbytes_of(s.shape, s.dtype))
        data = self.pointer(s.memory)
        head = f"i64 {len(dims)}, i32 {abi.dtype_code(s.dtype)}, i64 {nbytes}"
        pointer = self.api("tensor_view", "ptr", f"{head}, ptr {data}, ptr {source}")
        self.made(s.var, pointer)
        self._store_dims(pointer, abi.TENSOR_DIMS, dims)

    def _data_of(self, s: H.DataOf) -> None:
        self.pointers[id(s.memory)] = self.field(self.pointer(s.value), abi.TENSOR_DATA, "ptr")

    def _constant_at(self, s: H.ConstantAt) -> None:
        self.pointers[id(s.memory)] = self.field("%constants", 8 * s.index, "ptr")

    def _constant_object(self, s: H.ConstantObject) -> None:
        pointer = self.field("%constants", 8 * s.index, "ptr")
        self.api("incref", "void", f"ptr {pointer}")
        self.own(s.var, pointer)

    def _copy(self, s: H.Copy) -> None:
        self.declarations.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        target, source = self.pointer(s.target), self.pointer(s.source)
        nbytes = self.value(s.nbytes)
        self.w.emit(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {nbytes}, i1 false)")

    def _make_tuple(self, s: H.MakeTuple) -> None:
        pointer = self.api("tuple_new", "ptr", f"i64 {len(s.fields)}")
        self.made(s.var, pointer)
        self.store_objects(pointer, abi.LIST_ITEMS, s.fields)

    def _tuple_field(self, s: H.TupleField) -> None:
        item = self.field(self.pointer(s.value), abi.LIST_ITEMS + 8 * s.index, "ptr")
        self.api("incref", "void", f"ptr {item}")
        self.own(s.var, item)

    def _make_shape(self, s: H.MakeShape) -> None:
        values = [self.value(v) for v in s.values]
        pointer = self.api("shape_new", "ptr", f"i64 {len(values)}")
        self.made(s.var, pointer)
        self._store_dims(pointer, abi.LIST_ITEMS, values)

    def _shape_from(self, s: H.ShapeFrom) -> None:
        self.declarations.add("declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)")
        length = self.value(s.length)
        pointer = self.api("shape_new", "ptr", f"i64 {length}")
        self.made(s.var, pointer)
        items = self.w.value(f"getelementptr i8, ptr {pointer}, i64 {abi.LIST_ITEMS}")
        nbytes = self.w.value(f"mul i64 {length}, 8")
        source = self.pointer(s.memory)
        self.w.emit(f"call void @llvm.memcpy.p0.p0.i64(ptr {items}, ptr {source}, i64 {nbytes}, i1 false)")

    def _make_number(self, s: H.MakeNumber) -> None:
        dtype = E.scalar_dtype(s.value)
        ty, code = number_type(dtype), abi.dtype_code(dtype)
        value = self.value(s.value)
        if ty in ("i64", "i1"):
            wide = self.wide(s.value) if ty == "i1" else value
            self.made(s.var, self.api("int_new", "ptr", f"i64 {wide}, i32 {code}"))
        else:
            wide = self.w.value(f"fpext float {value} to double") if ty == "float" else value
            self.made(s.var, self.api("float_new", "ptr", f"double {wide}, i32 {code}"))

    def _branch(self, s: H.Branch) -> list[HostStmt | Callable[[], None]]:
        """Starts a branch; what is to be emitted next: both bodies, and what comes before and after each."""
        condition = self.value(s.condition)
        then, otherwise, join = self.w.fresh("then"), self.w.fresh("else"), self.w.fresh("join")
        if isinstance(s.var, Var):
            number_slot = f"%{self.w.fresh('number')}"
            self.allocas.append(f"  {number_slot} = alloca {number_type(E.scalar_dtype(s.var))}")
            self.number_slots[id(s.var)] = number_slot
        self.w.emit(f"br i1 {condition}, label %{then}, label %{otherwise}")

        def begin(label: str) -> None:
            self.w.label(label)
            self.numbers.scopes.append({})

        def end() -> None:
            self.numbers.scopes.pop()
            self.w.emit(f"br label %{join}")

        def finish() -> None:
            self.w.label(join)
            if isinstance(s.var, Var):
                ty = number_type(E.scalar_dtype(s.var))
                self.numbers.define(s.var, self.w.value(f"load {ty}, ptr {self.number_slots[id(s.var)]}"))
            elif s.var is not None:
                self.pointers[id(s.var)] = self.w.value(f"load ptr, ptr {self.slot(s.var)}")

        first, second = partial(begin, then), partial(begin, otherwise)
        return [first, *s.then, end, second, *s.otherwise, end, finish]

    def _yield(self, s: H.Yield) -> None:
        if isinstance(s.target, Var):
            assert isinstance(s.value, Expr)
            ty = number_type(E.scalar_dtype(s.target))
            self.w.emit(f"store {ty} {self.value(s.value)}, ptr {self.number_slots[id(s.target)]}")
        else:
            assert isinstance(s.value, HostVar)
            value = self.pointer(s.value)
            self.api("incref", "void", f"ptr {value}")
            self.w.emit(f"store ptr {value}, ptr {self.slot(s.target)}")

    def _release(self, s: H.Release) -> None:
        self.api("decref", "void", f"ptr {self.pointer(s.var)}")
        self.w.emit(f"store ptr null, ptr {self.slot(s.var)}")

    def _return(self, s: H.Return) -> None:
        value = self.pointer(s.value)
        self.api("incref", "void", f"ptr {value}")
        self.w.emit(f"store ptr {value}, ptr %out")


_STATEMENTS: dict[type[HostStmt], Callable[[HostEmitter, Any], None]] = {
    H.CheckObject: HostEmitter._check_object,
    H.Require: HostEmitter._require,
    H.CheckWritable: HostEmitter._check_writable,
    H.CheckAligned: HostEmitter._check_aligned,
    H.CheckDisjoint: HostEmitter._check_disjoint,
    H.LoadDim: HostEmitter._load_dim,
    H.LoadNumber: HostEmitter._load_number,
    H.LoadScalar: HostEmitter._load_scalar,
    H.Compute: HostEmitter._compute,
    H.Arena: HostEmitter._arena,
    H.Alloc: HostEmitter._alloc,
    H.At: HostEmitter._at,
    H.NewTensor: HostEmitter._new_tensor,
    H.ViewOf: HostEmitter._view_of,
    H.DataOf: HostEmitter._data_of,
    H.ConstantAt: HostEmitter._constant_at,
    H.ConstantObject: HostEmitter._constant_object,
    H.Copy: HostEmitter._copy,
    H.KernelCall: calls.kernel_call,
    H.ClearReturn: calls.clear_return,
    H.TakeReturn: calls.take_return,
    H.HostCall: calls.host_call,
    H.PackedCall: calls.packed_call,
    H.MakeTuple: HostEmitter._make_tuple,
    H.TupleField: HostEmitter._tuple_field,
    H.MakeShape: HostEmitter._make_shape,
    H.ShapeFrom: HostEmitter._shape_from,
    H.MakeClosure: calls.make_closure,
    H.ExtendClosure: calls.extend_closure,
    H.CallClosure: calls.call_closure,
    H.MakeNumber: HostEmitter._make_number,
    H.Yield: HostEmitter._yield,
    H.Release: HostEmitter._release,
    H.Return: HostEmitter._return,
}
