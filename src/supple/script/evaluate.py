"""Expressions of a program: from the Python syntax tree to IR values, by structure.

Nothing is executed with ``exec``: operators and calls are applied to values found in the parser's table of variables
or captured from Python. Evaluation keeps an explicit stack, so the length of a chain of operators does not matter.
"""

from __future__ import annotations

import ast
import builtins
import operator
import types
from collections.abc import Callable, Generator, Mapping
from typing import Any, NoReturn

from supple.base.errors import DiagnosticError, InternalError, NotSupportedError, TypeCheckError
from supple.base.registry import did_you_mean
from supple.base.source import Span
from supple.ir.expr import (
    TENSOR_OPERATORS,
    And,
    Not,
    Or,
    Var,
    as_expr,
    is_buffer,
    is_scalar,
    match_dtypes,
    scalar_dtype,
)
from supple.ir.graph import GlobalVar
from supple.ir.node import Expr
from supple.ir.op import Op
from supple.ir.types import TensorType
from supple.script.forms import (
    DtypeForm,
    Form,
    FormCall,
    Fresh,
    MetaVar,
    bind_form,
    is_script_module,
    statement_name,
)
from supple.script.source import Source

Steps = Generator[ast.expr, Any, Any]
_MISSING = object()

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.MatMult: operator.matmul,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_PLAIN_ONLY = (ast.Is, ast.IsNot, ast.In, ast.NotIn)
_MAX_CONSTANT_BITS = 4096
_MAX_REPEAT = 1_000_000
_MAX_RANGE = 1 << 16  # the longest range of Python's that a program given as text may walk

SAFE_BUILTINS = {
    name: getattr(builtins, name)
    for name in (
        "range", "len", "int", "float", "bool", "str", "tuple", "list", "dict", "min", "max", "sum", "abs", "zip",
        "enumerate", "reversed", "sorted", "any", "all", "round", "slice",
    )
}  # fmt: skip
"""What a program given as text may use of Python itself."""


class Environment:
    """Python values that a program captures: by name, from the innermost mapping that has it."""

    def __init__(self, *mappings: Mapping[str, Any], restricted: bool = False) -> None:
        self.mappings = mappings
        self.restricted = restricted

    def get(self, name: str) -> Any:
        """The value, or a private marker when there is none."""
        for mapping in self.mappings:
            if name in mapping:
                return mapping[name]
        return _MISSING

    def names(self) -> list[str]:
        return [name for mapping in self.mappings for name in mapping]

    def merged(self) -> dict[str, Any]:
        """One dictionary of everything, for Python's own evaluation of lambdas and comprehensions."""
        result: dict[str, Any] = {}
        for mapping in reversed(self.mappings):
            result.update(mapping)
        return result


class Evaluator:
    """Evaluates expressions over a table of scopes, then over the captured environment."""

    def __init__(self, source: Source, env: Environment) -> None:
        self.source = source
        self.env = env
        self.scopes: list[dict[str, Any]] = [{}]
        self.regions = 0  # how many of the calls around take regions: there a slice stays a slice

    # ------------------------------------------------------------------------------------------------- variables

    def define(self, name: str, value: Any) -> None:
        """Bind a name in the innermost scope."""
        self.scopes[-1][name] = value

    def lookup(self, name: str) -> Any:
        """The value of a name, or a private marker."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return self.env.get(name)

    def is_defined(self, name: str) -> bool:
        return self.lookup(name) is not _MISSING

    # ---------------------------------------------------------------------------------------------------- errors

    def span(self, node: ast.AST) -> Span:
        return self.source.span(node)

    def error(self, node: ast.AST | Span, message: str, **details: Any) -> DiagnosticError:
        """A refusal that points at ``node`` (``expected=``, ``actual=``, ``hint=``, ``rule=``)."""
        return DiagnosticError(message, node if isinstance(node, Span) else self.span(node), **details)

    def convert(self, error: Exception, node: ast.AST, called: object = None) -> DiagnosticError:
        """Any exception of building a node as a diagnostic at ``node``; diagnostics keep the place they have."""
        if isinstance(error, DiagnosticError):
            if error.span is None:
                error.span = self.span(node)
            return error
        if isinstance(error, InternalError):
            raise error
        text = str(error) or type(error).__name__
        if _is_users(called):
            name = getattr(called, "__name__", repr(called))
            made = self.error(node, f"{name} raised {type(error).__name__}: {text}")
            made.__cause__ = error
            return made
        if isinstance(error, NotImplementedError):
            return NotSupportedError(text, self.span(node))
        if isinstance(error, KeyError) and not str(error).startswith(("no ", "the ")):
            text = f"no key {text}"
        kind = TypeCheckError if isinstance(error, TypeError) else DiagnosticError
        return kind(text, self.span(node))

    # ------------------------------------------------------------------------------------------------ evaluation

    def evaluate(self, root: ast.expr) -> Any:
        """The value of an expression: an IR node, a Python value, or a form's record."""
        stack: list[tuple[Steps, ast.expr]] = []
        done, value = self._begin(root, stack)
        while stack:
            steps, node = stack[-1]
            try:
                child = steps.send(value)
            except StopIteration as stop:
                stack.pop()
                value = self._stamp(stop.value, node)
                continue
            except DiagnosticError:
                raise
            except RecursionError:
                raise self.error(node, "the expression nests too deep") from None
            except Exception as error:
                made = self.convert(error, node)
                raise made from made.__cause__
            done, result = self._begin(child, stack)
            value = result if done else None
        return value

    def _begin(self, node: ast.expr, stack: list[tuple[Steps, ast.expr]]) -> tuple[bool, Any]:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, (bytes, complex)) or node.value is Ellipsis:
                raise self.error(node, f"{type(node.value).__name__} literals have no meaning here")
            return True, node.value
        if isinstance(node, ast.Name):
            return True, self._name(node)
        method = _EVALUATORS.get(type(node))
        if method is None:
            raise NotSupportedError(f"Python's {statement_name(node)} is not supported in a program", self.span(node))
        stack.append((method(self, node), node))
        return False, None

    def _stamp(self, value: Any, node: ast.expr) -> Any:
        """Note the place on a node that was just made."""
        if isinstance(value, Expr) and value.span is None and not isinstance(value, (Var, GlobalVar, Op)):
            object.__setattr__(value, "span", self.span(node))
        return value

    def _name(self, node: ast.Name) -> Any:
        value = self.lookup(node.id)
        if value is _MISSING:
            value = self.missing_name(node)
        return value.value if isinstance(value, MetaVar) else value

    def missing_name(self, node: ast.Name) -> Any:
        known = [name for scope in self.scopes for name in scope] + self.env.names()
        hint = did_you_mean(node.id, known).removeprefix("; ") or None
        raise self.error(node, f"undefined variable {node.id!r}", hint=hint, rule="undefined")

    # ---- one generator per kind of syntax: yields the operands, returns the value

    def _unary(self, node: ast.UnaryOp) -> Steps:
        value = yield node.operand
        if isinstance(node.op, ast.Not):
            return Not(self.as_bool(value, node.operand)) if isinstance(value, Expr) else not value
        if isinstance(node.op, ast.USub):
            return -value
        if isinstance(node.op, ast.Invert):
            return ~value
        return value if isinstance(value, Expr) else +value

    def _binary(self, node: ast.BinOp) -> Steps:
        chain = [node]  # a + b + c + ...: walk down the left operands, then build upwards
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        value = yield chain[-1].left
        for step in reversed(chain):
            right = yield step.right
            value = self._stamp(self._apply_binary(step, value, right), step)
        return value

    def _apply_binary(self, node: ast.BinOp, a: Any, b: Any) -> Any:
        if not isinstance(a, Expr) and not isinstance(b, Expr):
            self._check_constant_size(node, a, b)
        for value, operand in ((a, node.left), (b, node.right)):
            self._check_value(value, operand)
        try:
            return _BINARY[type(node.op)](a, b)
        except Exception as error:
            raise self.convert(error, node) from None

    def _check_value(self, value: Any, node: ast.expr) -> None:
        if isinstance(value, (Form, FormCall, Fresh, types.ModuleType)):
            raise self.error(node, f"{value!r} is not a value" if not isinstance(value, Fresh) else "not a value here")

    def _check_constant_size(self, node: ast.BinOp, a: Any, b: Any) -> None:
        """Refuse constants whose computation would take forever: ``10 ** 10 ** 10``, ``"a" * 10 ** 12``."""
        if isinstance(a, int) and isinstance(b, int):
            size = 0
            if isinstance(node.op, ast.Pow):
                size = a.bit_length() * abs(b)
            elif isinstance(node.op, ast.LShift):
                size = a.bit_length() + abs(b)
            if size > _MAX_CONSTANT_BITS:
                raise self.error(node, "the constant is too large")
        elif isinstance(node.op, ast.Mod) and isinstance(a, str) and self.env.restricted:
            raise self.error(node, "formats are not available in a program given as text")
        elif isinstance(node.op, ast.Mult):
            for items, count in ((a, b), (b, a)):
                repeated = isinstance(items, (str, tuple, list)) and isinstance(count, int)
                if repeated and len(items) * count > _MAX_REPEAT:
                    raise self.error(node, "the constant is too large")

    def _boolean(self, node: ast.BoolOp) -> Steps:
        is_and = isinstance(node.op, ast.And)
        result = yield node.values[0]
        for previous, current in zip(node.values, node.values[1:]):
            if not isinstance(result, Expr):
                if bool(result) is not is_and:
                    return result
                result = yield current
                continue
            right = self.as_bool((yield current), current)
            result = (And if is_and else Or)(self.as_bool(result, previous), right)
        return result

    def as_bool(self, value: Any, node: ast.expr) -> Expr:
        """A condition: a bool scalar (a Python bool becomes a literal)."""
        if isinstance(value, Expr) and is_scalar(value):
            if scalar_dtype(value).startswith("bool"):
                return value
            raise TypeCheckError(
                "a condition must be a bool", self.span(node), "bool", scalar_dtype(value), "compare it: x != 0"
            )
        if isinstance(value, bool):
            return as_expr(value)
        raise TypeCheckError(
            "a condition must be a bool scalar",
            self.span(node),
            "bool",
            describe(value),
            "for tensors use R.logical_and, R.logical_or, R.logical_not" if isinstance(value, Expr) else None,
        )

    def _compare(self, node: ast.Compare) -> Steps:
        left = yield node.left
        result: Any = None
        for op, right_node in zip(node.ops, node.comparators):
            right = yield right_node
            if isinstance(op, _PLAIN_ONLY) and any(isinstance(v, Expr) for v in (left, right)):
                raise self.error(node, "'is' and 'in' have no meaning on values of the program")
            if isinstance(left, (int, float)) and is_scalar(right):  # Python would swap the sides of 3 < x
                left = match_dtypes(left, right)[0]
            if is_buffer(left) or is_buffer(right):  # Python would compare identity
                raise self.error(node, "buffers are not compared as a whole", hint="compare elements: X[i] == Y[i]")
            part = _same_tensors(op, left, right)
            if part is None:
                part = _COMPARE[type(op)](left, right)
            if result is None:
                result = part
            elif isinstance(result, Expr) or isinstance(part, Expr):
                result = And(self.as_bool(result, node), self.as_bool(part, node))
            else:
                result = result and part
            left = right
        return result

    def _choice(self, node: ast.IfExp) -> Steps:
        condition = yield node.test
        if isinstance(condition, Expr):
            return self.choice(condition, (yield node.body), (yield node.orelse), node)
        return (yield node.body if condition else node.orelse)

    def choice(self, condition: Expr, then: Any, otherwise: Any, node: ast.IfExp) -> Any:
        """``then if condition else otherwise`` where only the running program knows the condition."""
        raise self.error(
            node,
            "'a if c else b' needs a condition that is known while the program is read",
            hint="bind the results of an if statement's branches to one name",
        )

    def _tuple(self, node: ast.Tuple | ast.List) -> Steps:
        items: list[Any] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                items.extend((yield element.value))
            else:
                items.append((yield element))
        return tuple(items) if isinstance(node, ast.Tuple) else items

    def _dict(self, node: ast.Dict) -> Steps:
        result: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values):
            if key is None:
                result.update((yield value))
            else:
                name = yield key
                if isinstance(name, Expr) and not isinstance(name, Var):
                    raise self.error(key, "keys must be Python values")
                result[name] = yield value
        return result

    def _attribute(self, node: ast.Attribute) -> Steps:
        value = yield node.value
        return self.attribute(value, node)

    def attribute(self, value: Any, node: ast.Attribute) -> Any:
        """``value.name``; subclasses give it more meanings."""
        name = node.attr
        if name.startswith("_") and (self.env.restricted or is_script_module(value)):
            raise self.error(node, f"the name {name!r} is private")
        if self.env.restricted and type(value).__module__ == "builtins" and not is_script_module(value):
            raise self.error(node, f"methods of {type(value).__name__} are not available in a program given as text")
        if is_script_module(value):
            return module_attribute(self, value, node)
        try:
            return getattr(value, name)
        except AttributeError:
            known = [n for n in dir(value) if not n.startswith("_")]
            hint = did_you_mean(name, known).removeprefix("; ") or None
            raise self.error(node, f"{describe(value)} has no attribute {name!r}", hint=hint) from None
        except Exception as error:
            raise self.convert(error, node) from None

    def _subscript(self, node: ast.Subscript) -> Steps:
        value = yield node.value
        index = yield node.slice
        return self.subscript(value, index, node)

    def subscript(self, value: Any, index: Any, node: ast.Subscript) -> Any:
        """``value[index]``; subclasses give it more meanings."""
        self._check_indexable(value, node)
        try:
            return value[index]
        except Exception as error:
            raise self.convert(error, node) from None

    def _check_indexable(self, value: Any, node: ast.Subscript) -> None:
        if not hasattr(type(value), "__getitem__"):
            raise self.error(node, f"{describe(value)} cannot be indexed")

    def _slice(self, node: ast.Slice) -> Steps:
        low = (yield node.lower) if node.lower is not None else None
        high = (yield node.upper) if node.upper is not None else None
        step = (yield node.step) if node.step is not None else None
        return slice(low, high, step)

    def _call(self, node: ast.Call) -> Steps:
        function = yield node.func
        takes_regions = isinstance(function, Form) and function.regions
        self.regions += takes_regions
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                args.extend((yield arg.value))
            else:
                args.append((yield arg))
        for keyword in node.keywords:
            value = yield keyword.value
            kwargs.update(value if keyword.arg is None else {keyword.arg: value})
        result = self.call(function, tuple(args), kwargs, node)
        self.regions -= takes_regions
        return result

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], node: ast.Call) -> Any:
        """Apply a function, form or operator; subclasses give forms their meaning."""
        if isinstance(function, DtypeForm) and not args and not kwargs:
            return Fresh(function.dtype)
        if isinstance(function, Form) and not isinstance(function, DtypeForm):
            return self.form(FormCall(function, args, kwargs), node)
        if not callable(function):
            raise self.error(node.func, f"{describe(function)} is not a function")
        if isinstance(function, Var):
            return self.call_value(function, args, kwargs, node)
        try:
            if function is range and self.env.restricted:
                return bounded_range(*args)
            return function(*args, **kwargs)
        except Exception as error:
            made = self.convert(error, node, function)
            raise made from made.__cause__

    def call_value(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], node: ast.Call) -> Any:
        raise self.error(node.func, f"{describe(function)} is not a function")

    def form(self, call: FormCall, node: ast.Call) -> Any:
        """The meaning of a form's call as a value; by default the record itself."""
        return call

    def bind(self, call: FormCall, handler: Callable[..., Any], node: ast.AST) -> Any:
        """Run a form's handler with its arguments, pointing errors at ``node``."""
        try:
            return bind_form(call, handler, self)
        except Exception as error:
            raise self.convert(error, node) from None

    def _python(self, node: ast.expr) -> Steps:
        """Comprehensions, lambdas and f-strings: evaluated by Python over the visible names."""
        yield from ()
        if self.env.restricted:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Attribute) and not self._is_script_name(inner):
                    raise self.error(inner, f"the attribute {inner.attr!r} is not available here")
                if isinstance(inner, ast.FormattedValue) and inner.format_spec is not None:
                    raise self.error(inner, "formats are not available in a program given as text")
        names = self.env.merged()
        names.setdefault("__builtins__", SAFE_BUILTINS if self.env.restricted else builtins.__dict__)
        if self.env.restricted:
            names["range"] = bounded_range
        for scope in self.scopes:
            names.update({k: v.value if isinstance(v, MetaVar) else v for k, v in scope.items()})
        code = compile(ast.Expression(node), self.source.file, "eval")
        try:
            return eval(code, names)
        except NameError as error:
            raise self.error(node, str(error), rule="undefined") from None
        except Exception as error:
            raise self.convert(error, node) from None

    def _is_script_name(self, node: ast.Attribute) -> bool:
        """Whether an attribute is a public name of ``T``, ``R``, ``I``, or of a node of the program."""
        base = node.value
        if node.attr.startswith("_"):
            return False
        if isinstance(base, ast.Name):
            value = self.lookup(base.id)
            return is_script_module(value) or isinstance(value, Expr)
        return isinstance(base, ast.Attribute) and self._is_script_name(base)

    def refuse(self, statement: ast.stmt, where: str) -> NoReturn:
        """Refuse a Python statement by name."""
        name = statement_name(statement)
        raise NotSupportedError(f"Python's {name!r} statement is not supported in {where}", self.span(statement))


_EVALUATORS: dict[type[ast.expr], Callable[[Evaluator, Any], Steps]] = {
    ast.UnaryOp: Evaluator._unary,
    ast.BinOp: Evaluator._binary,
    ast.BoolOp: Evaluator._boolean,
    ast.Compare: Evaluator._compare,
    ast.IfExp: Evaluator._choice,
    ast.Tuple: Evaluator._tuple,
    ast.List: Evaluator._tuple,
    ast.Dict: Evaluator._dict,
    ast.Attribute: Evaluator._attribute,
    ast.Subscript: Evaluator._subscript,
    ast.Slice: Evaluator._slice,
    ast.Call: Evaluator._call,
    ast.ListComp: Evaluator._python,
    ast.GeneratorExp: Evaluator._python,
    ast.SetComp: Evaluator._python,
    ast.DictComp: Evaluator._python,
    ast.Lambda: Evaluator._python,
    ast.JoinedStr: Evaluator._python,
}


def _same_tensors(op: ast.cmpop, left: Any, right: Any) -> Any:
    """``==`` and ``!=`` of tensors, elementwise; None for anything else. (In Python they compare identity.)"""
    name = {ast.Eq: "eq", ast.NotEq: "ne"}.get(type(op))
    if name is None or not any(isinstance(getattr(v, "ty", None), TensorType) for v in (left, right)):
        return None
    return TENSOR_OPERATORS[name](left, right)


def module_attribute(evaluator: Evaluator, module: Any, node: ast.Attribute) -> Any:
    """A public name of ``T``, ``R`` or ``I``; a miss says what was probably meant."""
    try:
        if node.attr in module.__all__:
            return getattr(module, node.attr)
        return module.__getattr__(node.attr)
    except DiagnosticError as error:
        raise evaluator.convert(error, node) from None
    except AttributeError as error:
        raise evaluator.error(node, str(error), rule="undefined") from None


def bounded_range(*args: Any) -> range:
    """Python's ``range``, refused when it is so long that walking it could hang."""
    made = range(*args)
    if len(made) > _MAX_RANGE:
        raise ValueError(f"the range is too long to be walked while the program is read ({len(made)} items)")
    return made


def describe(value: Any) -> str:
    """A value in an error message: its type where it has one, else the kind of Python value."""
    if isinstance(value, (Form, FormCall)):
        return repr(value)
    ty = getattr(value, "ty", None) if isinstance(value, Expr) else None
    if isinstance(value, Expr):
        return f"{type(value).__name__} of type {ty}" if ty is not None else type(value).__name__
    return f"{value!r} ({type(value).__name__})" if isinstance(value, (int, float, str, bool)) else type(value).__name__


def _is_users(function: object) -> bool:
    if function is None or isinstance(function, (type, Form, Op)):
        return False
    module = getattr(function, "__module__", None)
    return isinstance(module, str) and not module.startswith(("supple.", "builtins", "operator")) and callable(function)
