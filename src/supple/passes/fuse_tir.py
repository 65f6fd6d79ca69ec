"""FuseTIR: a function that groups calls of loop functions becomes one loop function.

The bodies follow each other; what passed between the calls becomes buffers of the new function's own, and an
elementwise, broadcast or injective step whose elements are read once is computed where they are read. Sizes are those
of the group: symbols of the callees that stand for constants in the group's types become constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from supple.analysis.contraction import read_contraction
from supple.analysis.fusion import moves_operand, step_reads_once
from supple.analysis.nest import loads, read_nest
from supple.analysis.reduction import multiply_add, same_expr
from supple.analysis.regions import infer_regions
from supple.ir import expr as E
from supple.ir.expr import BufferLoad, Call, IntImm, Var
from supple.ir.graph import DataflowBlock, Function, GlobalVar, Tuple, VarBinding
from supple.ir.loop import (
    AllocBuffer,
    Bind,
    Buffer,
    BufferStore,
    DeclBuffer,
    For,
    IterType,
    IterVar,
    MatchBufferRegion,
    PrimFunc,
    SBlock,
    SBlockRealize,
    SeqStmt,
    buffer_type,
    seq,
)
from supple.ir.module import IRModule
from supple.ir.node import Expr, Node, Stmt, children, replace
from supple.ir.types import BufferType, TensorType
from supple.ir.walk import free_symbols, pre_order, substitute, transform
from supple.ops.calls import CALL_TIR
from supple.passes.fuse_ops import PRIMITIVE
from supple.passes.remarks import Remarks, remark
from supple.schedule import loops as L
from supple.sym.relate import tensor_dims
from supple.sym.simplify import SHAPES

MAX_TREE = 2000
"""The most nodes of a value, written out as a tree, that steps computed in place may add up to."""

_STEP = "fuse_tir"


def fuse_tir(mod: IRModule, remarks: Remarks | None = None) -> IRModule:
    """Make one loop function of every private function marked ``Primitive``, and its calls ``call_tir``.

    Before::

        lv1 = cls.fused_add_relu(x, b)            # two calls of loop functions

    After::

        lv1 = R.call_tir(cls.fused_add_relu, (x, b), out_ty=R.Tensor((n, 128), dtype="float32"))

        @T.prim_func(private=True)
        def fused_add_relu(x, b, gv):
            for i, j in T.grid(n, 128):
                with T.sblock("relu"):
                    gv[v_i, v_j] = T.max(x[v_i, v_j] + b[v_j], 0)

    A function that is not a group of such calls stays as it is. Loop functions that are not called any more stay until
    `dead_code`.
    """
    fused: dict[str, PrimFunc] = {}
    for var, func in mod.items():
        if isinstance(func, Function) and PRIMITIVE in func.attrs and "global_symbol" not in func.attrs:
            made = _fuse(mod, func)
            if isinstance(made, str):
                remark(remarks, _STEP, False, var.name_hint, "shape", made)
            else:
                fused[var.name_hint] = made
    if not fused:
        return mod
    changed = IRModule(None, mod.attrs, mod.global_infos)
    for var, func in mod.items():
        if var.name_hint in fused:
            changed[GlobalVar(var.name_hint)] = fused[var.name_hint]
        elif isinstance(func, Function):
            changed[var] = _with_calls(func, fused)
        else:
            changed[var] = func
    return changed


def _with_calls(func: Function, fused: Mapping[str, PrimFunc]) -> Function:
    """The function with calls of groups turned into ``call_tir``."""
    variables = {name: GlobalVar(name) for name in fused}

    def rewrite(node: Node) -> Node | None:
        if not isinstance(node, VarBinding) or not isinstance(node.value, Call):
            return None
        call = node.value
        if not isinstance(call.op, GlobalVar) or call.op.name_hint not in fused:
            return None
        ty = call.ty if isinstance(call.ty, TensorType) else node.var.ty
        assert isinstance(ty, TensorType)
        args = (variables[call.op.name_hint], Tuple(call.args))
        return replace(node, value=Call(CALL_TIR, args, {}, (ty,), span=call.span, ty=ty))

    made = transform(func, rewrite, into_types=False)
    assert isinstance(made, Function)
    return made


# ---------------------------------------------------------------------------------------------------- one loop function


def _fuse(mod: IRModule, func: Function) -> PrimFunc | str:
    """The loop function of a group, or why there is none."""
    blocks = func.body.blocks
    if len(blocks) != 1 or not isinstance(blocks[0], DataflowBlock) or not blocks[0].bindings:
        return "not one dataflow block"
    buffers: dict[int, Var] = {}
    names: set[str] = set()
    for param in func.params:
        if not isinstance(param.ty, TensorType):
            return "a parameter is not a tensor"
        made = _buffer(param.name, param.ty, names)
        if made is None:
            return "a size is not known"
        buffers[id(param)] = made
    params = list(buffers.values())
    defined = {id(s) for p in params for s in buffer_type(p).shape if isinstance(s, Var)}
    own: list[Var] = []
    statements: list[Stmt] = []
    for binding in blocks[0].bindings:
        value = binding.value  # type: ignore[attr-defined]
        if not isinstance(binding, VarBinding) or not isinstance(value, Call) or value.op is not CALL_TIR:
            return "a binding is not call_tir"
        callee = mod[value.args[0]] if isinstance(value.args[0], GlobalVar) else None
        if not isinstance(callee, PrimFunc) or len(value.args) != 2 or not isinstance(value.args[1], Tuple):
            return "a binding is not call_tir of a loop function of the module"
        ty = binding.var.ty
        result = _buffer(binding.var.name, ty, names) if isinstance(ty, TensorType) else None
        given = [buffers.get(id(a)) for a in value.args[1].fields]
        if result is None or any(g is None for g in given):
            return "an operand is not a tensor of the group"
        if any(id(s) not in defined for s in free_symbols(result)):
            return "a size is not determined by the inputs"
        copied = instantiate(callee, [g for g in given if g is not None] + [result])
        if not isinstance(copied, SBlockRealize) or copied.block.iter_vars:
            return f"{value.args[0]} does not fit its operands"
        body = copied.block.body
        statements.extend(body.seq if isinstance(body, SeqStmt) else (body,))
        own.extend(copied.block.alloc_buffers)
        if binding.var is func.body.body:
            params.append(result)
        else:
            own.append(result)
        buffers[id(binding.var)] = result
    if func.body.body is not blocks[0].bindings[-1].var:  # type: ignore[attr-defined]
        return "the result is not the last binding"
    statements = _inlined(statements, own)
    used = {id(n) for s in statements for n in pre_order(s) if isinstance(n, Var)}
    kept = tuple(b for b in own if id(b) in used)
    root = SBlock((), (), (), "root", seq(_named_apart(statements)), None, kept)
    attrs = {k: v for k, v in func.attrs.items() if k != PRIMITIVE}
    return PrimFunc(tuple(params), SBlockRealize((), E.const(True), root), None, attrs)


def _buffer(name: str, ty: TensorType, names: set[str]) -> Var | None:
    dims = tensor_dims(ty)
    if dims is None or ty.dtype is None:
        return None
    unique, count = name, 0
    while unique in names:
        count += 1
        unique = f"{name}_{count}"
    names.add(unique)
    return Buffer(unique, dims, ty.dtype)


def instantiate(callee: PrimFunc, operands: Sequence[Var]) -> Stmt | None:
    """The body of a loop function on other buffers, in whose sizes its symbols are solved, everything it binds made
    anew; None when the buffers do not fit, or are views."""
    if len(callee.params) != len(operands):
        return None
    sizes: dict[Var, Node] = {}
    for param, operand in zip(callee.params, operands, strict=True):
        if not isinstance(param.ty, BufferType) or len(param.ty.shape) != len(buffer_type(operand).shape):
            return None
        if param.ty.strides or param.ty.data is not None or param.ty.elem_offset is not None:
            return None
        for dim, actual in zip(param.ty.shape, buffer_type(operand).shape, strict=True):
            symbol = dim.value if isinstance(dim, E.Cast) else dim
            if isinstance(symbol, Var) and symbol not in sizes:
                sizes[symbol] = E.cast(symbol.dtype, actual)
    variables: dict[Var, Node] = {}
    for param, operand in zip(callee.params, operands, strict=True):
        variables[param] = operand
        for dim, actual in zip(buffer_type(param).shape, buffer_type(operand).shape, strict=True):
            if SHAPES.equal(E.cast("int64", substitute(dim, sizes)), E.cast("int64", actual)) is not True:
                return None
    for var in _bound(callee.body):
        ty = substitute(var.ty, sizes) if isinstance(var.ty, BufferType) else var.ty
        variables[var] = Var(var.name, ty, span=var.span)
    body = substitute(substitute(callee.body, variables), sizes)  # sizes last: they occur in types of variables
    assert isinstance(body, Stmt)
    return body


def _bound(root: Node) -> list[Var]:
    """Every variable that statements bind."""
    found: list[Var] = []
    for node in pre_order(root):
        if isinstance(node, For):
            found.append(node.loop_var)
        elif isinstance(node, (IterVar, Bind, E.Let)):
            found.append(node.var)
        elif isinstance(node, (AllocBuffer, DeclBuffer, MatchBufferRegion)):
            found.append(node.buffer)
        elif isinstance(node, SBlock):
            found.extend(node.alloc_buffers)
    return found


# ------------------------------------------------------------------------------------------------------------- inlining


@dataclass
class _Producer:
    """A step that can be computed where it is read: ``value`` in terms of ``variables``, one for each index."""

    buffer: Var
    variables: tuple[Expr, ...]
    value: Expr


def _inlined(statements: list[Stmt], own: Sequence[Var]) -> list[Stmt]:
    """The statements, steps whose elements are read once computed at their reader. From the last to the first: a step
    with two readers has one when both were computed in a third."""
    current: list[Stmt | None] = list(statements)
    mentioned = [_variables(s) for s in statements]
    for position in reversed(range(len(current))):
        statement = current[position]
        assert statement is not None
        producer = _producer(statement, own)
        if producer is None:
            continue
        readers = [n for n, ids in enumerate(mentioned) if n != position and id(producer.buffer) in ids]
        if len(readers) != 1 or readers[0] < position:
            continue
        reader = current[readers[0]]
        assert reader is not None
        made = _into(reader, producer)
        if made is not None:
            current[readers[0]], current[position] = made, None
            mentioned[readers[0]] |= mentioned[position]
            mentioned[readers[0]].discard(id(producer.buffer))
            mentioned[position] = set()
    return [s for s in current if s is not None]


def _variables(statement: Stmt) -> set[int]:
    return {id(n) for n in pre_order(statement) if isinstance(n, Var)}


def _producer(statement: Stmt, own: Sequence[Var]) -> _Producer | None:
    nest = read_nest(statement)
    if nest is None or nest.block is None or any(a.reduce for a in nest.axes):
        return None
    store = nest.block.body
    assert isinstance(store, BufferStore)
    if not any(store.buffer is b for b in own) or any(x.buffer is store.buffer for x in loads(nest)):
        return None
    domains = {id(v.var): v.dom for v in nest.block.iter_vars if v.iter_type is IterType.DATA_PAR}
    for index, extent in zip(store.indices, buffer_type(store.buffer).shape, strict=True):
        is_unit = SHAPES.equal(E.cast("int64", extent), L.number(1)) is True
        if is_unit and isinstance(index, IntImm) and index.value == 0:
            continue
        domain = domains.pop(id(index), None)
        if domain is None or SHAPES.equal(E.cast("int64", domain.extent), E.cast("int64", extent)) is not True:
            return None
        if not isinstance(domain.min, IntImm) or domain.min.value:
            return None
    return None if domains else _Producer(store.buffer, store.indices, store.value)


def _into(statement: Stmt, producer: _Producer) -> Stmt | None:
    """The statement with a step computed where it reads it, or None when that would repeat work, change how a sum is
    rounded, or keep a contraction from being one."""
    nest = read_nest(statement)
    if nest is None or nest.block is None:
        return None
    own = [x for x in loads(nest) if x.buffer is producer.buffer]
    if not own:
        return None
    contraction = read_contraction(nest) is not None
    if contraction and not moves_operand(nest, own, BufferStore(producer.buffer, producer.value, producer.variables)):
        return None
    if not contraction and not step_reads_once(nest, own, producer.value):
        return None
    block = nest.block
    store = block.body
    assert isinstance(store, BufferStore)
    places: list[tuple[tuple[Expr, ...], Expr]] = []

    def at(indices: tuple[Expr, ...]) -> Expr:
        for known, value in places:  # one object for one place, so that values stay graphs
            if all(same_expr(a, b) for a, b in zip(known, indices, strict=True)):
                return value
        mapping = {v: i for v, i in zip(producer.variables, indices, strict=True) if isinstance(v, Var)}
        made = L.at(producer.value, {v: E.cast("int64", i) for v, i in mapping.items()})
        assert isinstance(made, Expr)
        places.append((indices, made))
        return made

    def rewrite(node: Node) -> Node | None:
        return at(node.indices) if isinstance(node, BufferLoad) and node.buffer is producer.buffer else None

    changed = transform(store, rewrite)
    assert isinstance(changed, BufferStore)
    if _tree_size(changed.value) > MAX_TREE:
        return None
    if (multiply_add(changed) is None) != (multiply_add(store) is None):
        return None
    reads, writes = infer_regions(changed, block.init)
    realize = next(n for n in pre_order(statement) if isinstance(n, SBlockRealize))
    new = replace(realize, block=replace(block, body=changed, reads=reads, writes=writes))

    loops: list[For] = []
    inner: Stmt = statement
    while isinstance(inner, For):
        loops.append(inner)
        inner = inner.body
    result: Stmt = new
    for loop in reversed(loops):
        result = replace(loop, body=result)
    return result


def _tree_size(value: Expr) -> int:
    """How many nodes a value has when it is written out."""
    sizes: dict[int, int] = {}
    stack: list[tuple[Node, bool]] = [(value, False)]
    while stack:
        node, expanded = stack.pop()
        if id(node) in sizes:
            continue
        below = list(children(node))
        if expanded:
            sizes[id(node)] = min(1 + sum(sizes[id(b)] for b in below), MAX_TREE + 1)
        else:
            stack.append((node, True))
            stack.extend((b, False) for b in below)
    return sizes[id(value)]


def _named_apart(statements: Sequence[Stmt]) -> list[Stmt]:
    """The statements with block names that are unique."""
    names: set[str] = set()

    def rewrite(node: Node) -> Node | None:
        if not isinstance(node, SBlock):
            return None
        unique, count = node.name_hint, 0
        while unique in names:
            count += 1
            unique = f"{node.name_hint}_{count}"
        names.add(unique)
        return node if unique == node.name_hint else replace(node, name_hint=unique)

    return [transform(s, rewrite) for s in statements]  # type: ignore[misc]
