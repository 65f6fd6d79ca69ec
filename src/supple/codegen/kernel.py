"""Loop functions to LLVM text: the calling convention of kernels (see docs/architecture.md)."""

from __future__ import annotations

from dataclasses import dataclass

from supple.analysis.returns import result_dtype
from supple.base import dtypes
from supple.base.errors import NotSupportedError
from supple.base.target import Target
from supple.codegen import kernel_memory as memory
from supple.codegen.kernel_builder import Value, llvm_type, quoted
from supple.codegen.kernel_parallel import with_private_buffers
from supple.codegen.kernel_state import State, Storage, drive
from supple.codegen.kernel_stmt import dispatch
from supple.ir.expr import IntImm, Var
from supple.ir.loop import PrimFunc, buffer_type
from supple.ir.node import Expr
from supple.ir.types import BufferType, PrimType
from supple.ir.walk import free_symbols
from supple.passes.lower_loops import lower_loops
from supple.runtime.abi import ErrorSite
from supple.sym import poly as P
from supple.sym.simplify import from_poly


@dataclass(frozen=True)
class KernelCode:
    """One compiled loop function.

    ``llvm_text`` is a module that defines
    ``i32 @name(ptr ctx, buffers..., scalars..., i64 symbols..., ptr workspace)``.
    ``params`` are the function's parameters in order; ``symbols`` the dimensions passed after them;
    ``workspace_bytes`` is an int64 expression over the symbols.
    """

    name: str
    llvm_text: str
    params: tuple[Var, ...]
    symbols: tuple[Var, ...]
    workspace_bytes: Expr

    @property
    def buffers(self) -> tuple[Var, ...]:
        """The parameters that are buffers, in the order they are passed."""
        return tuple(p for p in self.params if not isinstance(p.ty, PrimType))

    @property
    def scalars(self) -> tuple[Var, ...]:
        """The parameters that are scalars, passed after the buffers."""
        return tuple(p for p in self.params if isinstance(p.ty, PrimType))


def kernel_symbols(func: PrimFunc) -> tuple[Var, ...]:
    """The symbols that the buffers' shapes introduce, in order of first appearance, scalar parameters excluded."""
    known = {id(p) for p in func.params}
    found: list[Var] = []
    for buffer in func.buffers:
        ty = buffer_type(buffer)
        for part in (*ty.shape, *ty.strides, *(() if ty.elem_offset is None else (ty.elem_offset,))):
            for symbol in free_symbols(part):
                if id(symbol) not in known:
                    known.add(id(symbol))
                    found.append(symbol)
    return tuple(found)


def emit_kernel(
    func: PrimFunc, name: str, target: Target, sites: list[ErrorSite], *, title: str | None = None,
    distrust: bool = False,
) -> KernelCode:  # fmt: skip
    """The LLVM text of a loop function, scheduled or not.

    ``name`` is the symbol; ``title`` is what messages call the function (the same by default).
    Places that may fail when the kernel runs are appended to ``sites``, the executable's table. Raises
    `NotSupportedError` naming what native code cannot do (GPU threads, calls of external functions...).
    With ``distrust`` the accesses that rules proved are checked at run time too, which tests use.
    """
    func = with_private_buffers(lower_loops(func))
    buffers = func.buffers
    scalars = tuple(p for p in func.params if isinstance(p.ty, PrimType))
    if len(buffers) + len(scalars) != len(func.params):
        odd = next(p for p in func.params if not isinstance(p.ty, (PrimType, BufferType)))
        raise NotSupportedError(f"{name}: parameter {odd.name} is neither a buffer nor a scalar", odd.span)
    symbols = kernel_symbols(func)
    state = State(name if title is None else title, target, sites, scalars, name)
    state.distrust = distrust
    state.result_dtype = result_dtype(func)
    arguments = ["ptr noalias %ctx"]
    alias = "noalias " if func.attrs.get("tirx.noalias") is True else ""
    for position, buffer in enumerate(buffers):
        arguments.append(f"ptr {alias}%b{position}")
        if alias:
            state.noalias.add(f"%b{position}")
        _declare_parameter(state, name, buffer, f"%b{position}")
    for position, scalar in enumerate(scalars):
        arguments.append(f"{llvm_type(scalar.dtype)} %s{position}")
        state.bind(scalar, Value(f"%s{position}", scalar.dtype))
    for position, symbol in enumerate(symbols):
        arguments.append(f"i64 %n{position}")
        state.bind(symbol, Value(f"%n{position}", "int64"))
    arguments.append("ptr noalias %workspace")
    sizes = (*symbols, *(s for s in scalars if s.dtype == "int64"))
    state.symbols = {P.intern_atom(P.Atom("var", var=size)) for size in sizes}
    drive(state, dispatch, func.body)
    state.builder.emit("ret i32 0")
    needed = state.workspace_bytes
    bytes_needed = IntImm(needed.constant, "int64") if needed.constant is not None else from_poly(needed)
    text = [f"define i32 @{quoted(name)}({', '.join(arguments)}) #0 {{"]
    text.append(state.builder.body())
    text.append("}")
    text.extend(state.outlined)
    text.extend(sorted(state.builder.declarations))
    text.append(f'attributes #0 = {{ nounwind "prefer-vector-width"="{target.vector_bits}" }}')
    return KernelCode(name, "\n".join(text) + "\n", func.params, symbols, bytes_needed)


def _declare_parameter(state: State, name: str, buffer: Var, ref: str) -> None:
    ty = buffer_type(buffer)
    if dtypes.lanes(ty.dtype) != 1 or dtypes.row(ty.dtype).kind == "handle":
        raise NotSupportedError(f"{name}: buffer {buffer.name} of dtype {ty.dtype} is not supported", buffer.span)
    shape = [state.context.poly(extent) for extent in ty.shape]
    strides = memory.compact_strides(shape)
    if ty.strides and tuple(state.context.poly(s) for s in ty.strides) != strides:
        raise NotSupportedError(f"{name}: buffer parameter {buffer.name} with strides is not supported", buffer.span)
    if ty.elem_offset is not None and state.context.poly(ty.elem_offset) != P.ZERO:
        raise NotSupportedError(f"{name}: buffer parameter {buffer.name} with an offset is not supported", buffer.span)
    state.storage[id(buffer)] = Storage(Value(ref, "handle"), ty.dtype, strides, P.ZERO)
    if ty.data is not None:
        state.storage[id(ty.data)] = state.storage[id(buffer)]
