"""LegalizeOps: operator calls become ``call_tir`` of loop functions made from their compute definitions."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from supple.base.errors import NotSupportedError
from supple.build.block_builder import BlockBuilder
from supple.build.te import te_tensor
from supple.ir.expr import Call, DataflowVar, IntImm, Var
from supple.ir.graph import Binding, BindingBlock, DataflowBlock, Function, ShapeExpr, Tuple, VarBinding
from supple.ir.module import IRModule
from supple.ir.node import Expr, Node, Type, replace
from supple.ir.op import Op
from supple.ir.types import TensorType, TupleType, declared_type, on_device, result_types
from supple.ir.walk import transform
from supple.ops.calls import CALL_TIR
from supple.passes.cast_values import with_bound_casts
from supple.passes.custom_rules import CustomRules
from supple.passes.dynamic_results import DynamicResults
from supple.passes.size_checks import with_size_checks
from supple.passes.unnamed_sizes import UnnamedSizes
from supple.sym.relate import tensor_dims
from supple.sym.simplify import SHAPES


def legalize(
    mod: IRModule,
    custom: Mapping[str, Callable[[BlockBuilder, Call], Expr]] | None = None,
    *,
    skip: Sequence[str] = (),
    keep_views: bool = True,
    keep_marks: bool = False,
    keep_unknown: bool = False,
    warn: bool = False,
) -> IRModule:
    """Lower every operator that has a compute definition.

    Before::

        lv: R.Tensor((n, 4), dtype="float32") = R.add(x, y)

    After::

        lv = R.call_tir(cls.add, (x, y), out_ty=R.Tensor((n, 4), dtype="float32"))

    ``custom`` maps an operator's full name to a function of the builder and a call that returns the call's replacement;
    it may emit into the builder, and what it makes of other operators is lowered in turn. Operators in ``skip`` stay.
    With ``warn``, a ``UserWarning`` names each operator that stays for want of a definition. With ``keep_views``,
    operators that host code runs without moving an element (declared ``view=True``: reshape) stay, as do operators
    without a compute definition; with ``keep_marks`` those whose value is their argument's (``to_vdevice``, hints) stay
    as well. Results of ``call_tir`` are on the virtual devices of the calls. Identical
    loop functions are added once. Raises `NotSupportedError` at the call when the result's rank is not known while
    compiling (with ``keep_unknown`` such a call stays), `RegistryError` for a name in ``custom`` or ``skip`` that no
    operator has.
    """
    skipped = {_named(name) for name in skip}
    rules = {_named(name): rule for name, rule in (custom or {}).items()}
    for op, rule in rules.items():
        if not callable(rule):
            raise TypeError(f"LegalizeOps: the rule of {op.name} is a function of the builder and a call, got {rule!r}")
    builder = BlockBuilder(mod)
    custom_rules = CustomRules(builder, {op: rule for op, rule in rules.items() if op not in skipped})
    run = _Legalizer(builder, custom_rules, skipped, keep_views, keep_marks, keep_unknown)
    for var, func in mod.items():
        if isinstance(func, Function):
            legal = transform(
                with_size_checks(custom_rules.applied(with_bound_casts(func))), run.rewritten, into_types=False
            )
            if legal is not func:
                run.builder.update_func(var, legal)  # type: ignore[arg-type]
    for op in run.undefined if warn else ():
        warnings.warn(f"{op.name} has no compute definition: its calls stay", stacklevel=2)
    return run.builder.get()


class _Legalizer:
    """One run: the builder that takes the new functions, and the calls lowered so far by their operands' types."""

    def __init__(
        self,
        builder: BlockBuilder,
        custom: CustomRules,
        skipped: set[Op],
        keep_views: bool,
        keep_marks: bool,
        keep_unknown: bool,
    ) -> None:
        self.builder = builder
        self.custom = custom
        self.skipped = skipped
        self.undefined: dict[Op, None] = {}
        self.keep_views = keep_views
        self.keep_marks = keep_marks
        self.keep_unknown = keep_unknown
        self.dynamic = DynamicResults(builder)
        self.unnamed = UnnamedSizes(builder)
        self._known: dict[Any, tuple[Call, Call]] = {}  # with the original call, so that ids stay valid
        self._alone: dict[int, VarBinding] = {}  # bindings of tuples of one field, by id; they stay alive here

    def rewritten(self, node: Node) -> Node | None:
        """A binding lowered, or a block whose bindings were; None to leave it."""
        if isinstance(node, BindingBlock):
            return self._with_tuples(node)
        made = self.binding(node)
        if isinstance(made, VarBinding) and isinstance(made.value, Call) and made.value.op is CALL_TIR:
            ty = made.value.ty
            if isinstance(ty, TupleType) and len(ty.fields) == 1:
                self._alone[id(made)] = made
        return made

    def _with_tuples(self, block: BindingBlock) -> BindingBlock | None:
        """``t = call_tir(...)`` of a tuple of one field as ``v = call_tir(...); t = (v,)``: a ``call_tir`` of one
        result is that tensor."""
        if not any(id(b) in self._alone for b in block.bindings):
            return None
        kind = DataflowVar if isinstance(block, DataflowBlock) else Var
        bindings: list[Binding] = []
        for binding in block.bindings:
            whole = self._alone.get(id(binding))
            if whole is None:
                bindings.append(binding)
                continue
            assert isinstance(whole.value, Call) and isinstance(whole.value.ty, TupleType)
            field = kind(f"{whole.var.name}_0", whole.value.ty.fields[0])
            bindings.append(VarBinding(field, replace(whole.value, ty=field.ty), span=whole.span))
            bindings.append(replace(whole, value=Tuple((field,), ty=whole.value.ty)))
        return replace(block, bindings=tuple(bindings))

    def binding(self, node: Node) -> Node | None:
        """The binding with its call lowered, or None to leave it."""
        if not isinstance(node, VarBinding) or not isinstance(node.value, Call) or not isinstance(node.value.op, Op):
            return None
        call, op = node.value, node.value.op
        if op in self.skipped or id(call) in self.custom.kept:
            return None
        if op.facts.get("value") == "argument":  # a hint, a place, a marker: the value is the operand's
            return None if self.keep_marks else replace(node, value=call.args[0])
        if "scalar" in op.facts:  # a number that the operand's type says, perhaps
            number = op.facts["scalar"](call)
            if number is not None or op.lower is None:
                return None if number is None else replace(node, value=number)
        if "dynamic" in op.facts:
            return replace(node, value=self.dynamic.lowered(call, op))
        view = self.keep_views and op.facts.get("view")
        if op.lower is None:
            if not view and not any(p.name in ("func", "closure") for p in op.params):  # those call something
                self.undefined[op] = None
            return None
        named = self.unnamed.call(call, op, lambda inside: inside if view else self._lowered(inside, op))
        if named is None and view:
            return None
        return replace(node, value=named if named is not None else self._lowered(call, op))

    def _lowered(self, call: Call, op: Op) -> Call:
        """The ``call_tir``; a call like an earlier one uses its loop function without building it again."""
        tensors = _tensors(call)
        if "reads" in op.facts:
            tensors = [call.args[place] for place in op.facts["reads"]]
        key = (op.name, _key(call.args), repr(sorted(call.attrs.items())))
        if key in self._known:
            like, _ = self._known[key]
            assert isinstance(like.args[1], Tuple)
            numbers = like.args[1].fields[len(tensors) :]  # the same: they are a part of the key
            operands = (like.args[0], Tuple((*tensors, *numbers)), *like.args[2:])
            return Call(like.op, operands, {}, _placed(like.ty_args, call.ty), span=call.span, ty=call.ty)
        if self.keep_unknown and _unknown(call) is not None:
            return call
        _require_static_rank(call, op)
        args: list[Any] = []
        for param, arg in zip((p for p in op.params if not p.is_attr), call.args, strict=False):
            args.append(list(arg.values) if param.kind == "shape" and isinstance(arg, ShapeExpr) else arg)
        kernel = op.facts.get("kernel", op.short_name.rpartition(".")[2])
        name = kernel(call) if callable(kernel) else kernel
        formula, given = _formula(op, args)
        built = self.builder.call_te(formula, *given, primfunc_name_hint=name, **call.attrs)
        self._known[key] = (built, call)
        return replace(built, ty_args=_placed(built.ty_args, call.ty), span=call.span, ty=call.ty)


def _named(name: object) -> Op:
    if not isinstance(name, str):
        raise TypeError(f"LegalizeOps: operators are given by their full names, got {name!r}")
    return Op.get(name)


def _formula(op: Op, args: list[Any]) -> tuple[Callable[..., Any], list[Any]]:
    """The compute definition of a call and what it takes. Where the operator says which tensors are read (``reads``),
    the loop function has these alone, in that order; of the others the definition sees shape and dtype."""
    assert op.lower is not None
    lower = op.lower
    if "reads" not in op.facts:
        return lower, args
    places = list(op.facts["reads"])
    whole = [te_tensor(a, {}) if isinstance(getattr(a, "ty", None), TensorType) else a for a in args]

    def formula(*tensors: Any, **attrs: Any) -> Any:
        seen = dict(zip(places, tensors, strict=True))
        return lower(*(seen.get(place, value) for place, value in enumerate(whole)), **attrs)

    return formula, [args[place] for place in places]


def _placed(declared: tuple[Type, ...], ty: Type | None) -> tuple[Type, ...]:
    """Result types, as a call keeps them, on the virtual devices that the call's type says."""
    out = result_types(declared)
    said = ty.fields if isinstance(ty, TupleType) else (ty,)
    if len(said) != len(out):
        return declared
    pairs = zip(out, said, strict=True)
    return declared_type([on_device(o, t.vdevice) if isinstance(t, TensorType) else o for o, t in pairs])


def _tensors(call: Call) -> list[Expr]:
    """The tensor operands, in order; one that is used twice stands twice."""
    parts = [p for arg in call.args for p in (arg.fields if isinstance(arg, Tuple) else (arg,))]
    return [p for p in parts if isinstance(getattr(p, "ty", None), TensorType)]


def _key(args: tuple[Expr, ...]) -> tuple[Any, ...]:
    """What the loop function of a call depends on: types, and other arguments by identity."""
    parts: list[Any] = []
    for arg in args:
        ty = getattr(arg, "ty", None)
        if isinstance(arg, Tuple):
            parts.append(_key(arg.fields))
        elif isinstance(ty, TensorType):
            dims = tensor_dims(ty)
            shape = None if dims is None else tuple(SHAPES.canonical(d) for d in dims)
            parts.append((ty.dtype, shape))
        elif isinstance(arg, IntImm):
            parts.append((arg.value, arg.dtype))
        elif isinstance(arg, ShapeExpr):
            parts.append(tuple(SHAPES.canonical(v) for v in arg.values))
        else:
            parts.append(("by identity", id(arg)))
    return tuple(parts)


def _unknown(call: Call) -> tuple[Expr, Type] | None:
    """An operand, or the call itself, of which native code would have to know more, and its type."""
    for value in (*call.args, call):
        fields = value.fields if isinstance(value, Tuple) else (value,)
        for field in fields:
            ty = getattr(field, "ty", None)
            parts = ty.fields if isinstance(ty, TupleType) else (ty,)
            for part in parts:
                if isinstance(part, TensorType) and (tensor_dims(part) is None or part.dtype is None):
                    return field, part
    return None


def _require_static_rank(call: Call, op: Op) -> None:
    unknown = _unknown(call)
    if unknown is None:
        return
    value, ty = unknown
    what = "its result's shape" if value is call else f"the shape and dtype of {value}"
    hint = "use R.match_cast(value, R.Tensor((n, ...), dtype)) to name the dimensions"
    raise NotSupportedError(
        f"{op.name}: native code needs to know {what}",
        span=call.span,
        expected="R.Tensor(shape, dtype)",
        actual=str(ty),
        hint=op.facts.get("to_know_the_rank", hint) if value is call else hint,
        rule="legalize",
    )
