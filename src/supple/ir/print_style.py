"""How text is laid out: Supple's own layout and Relax's, two values of one description, and the printer's options.

The printing functions ask these fields where the layouts differ; nothing else knows that there are two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from keyword import iskeyword
from typing import Any

from supple.base.registry import did_you_mean
from supple.ir import conventions
from supple.ir.access_path import AccessPath
from supple.ir.node import METHODS
from supple.ir.print_marks import Marks
from supple.ir.print_names import RESERVED, plain_number
from supple.ir.types import FuncType


@dataclass(frozen=True, slots=True)
class PrintStyle:
    """A layout. Texts with ``{}`` are formats."""

    name: str
    # the page
    import_comments: bool  # imports are comments, one a prefix that occurs; otherwise one statement
    end: str  # after the last line of a module or function
    order: Callable[[str, str], Any] | None  # sorts the module's functions by kind and name; None: as they are
    width: int  # longer signatures take a line for each parameter
    reserved: frozenset[str]  # names that variables get only with a number
    # what is said
    pure_first: bool  # pure=False before private=True
    marks_blocks: bool  # s_tir=True for every loop function with blocks
    type_variables: bool  # symbols of signatures are declared before the text: n = TypeVar("n")
    declare_free: bool  # variables that nothing binds are declared where they first occur
    annotate_all: bool  # every binding says its type; otherwise where it is not the deduced one
    all_attributes: bool  # attributes are written though they have their default
    typed_numbers: bool  # a number says its dtype though the operand beside it implies it
    calls_stand_alone: bool  # T.evaluate(f()) is f(), and a call without a result is bound to no name
    default_dtype: str  # of buffers that are made in the text: it is not said
    # in what order
    sorted_keys: bool  # dictionaries
    regions_first: bool  # T.reads and T.writes before a block's buffers
    types_first: bool  # out_ty before the other keywords of call_tir
    # how it is said
    graph_ints: str  # the dtype of integers in graph functions that do not say theirs
    operator_text: str  # the fact of operators that says how their attributes are written; "": none does
    inline_elements: int  # how many a constant that is written out may have; 0: one, without dimensions
    float_digits: int  # significant digits of floating-point numbers; 0: as few as read back to the same number
    shape_argument: str
    scalar_argument: str
    several_types: str
    one_type: str
    prim_type: str
    string_type: str
    unit_type: str
    unknown_rank: str
    empty_tuple: str
    device: str
    distributed: str
    lists: bool  # tuples in attributes are written as lists
    opaque_function: str
    global_variable: str  # by itself
    range: str
    purity: Callable[[FuncType], str]  # the last argument of R.Callable
    bare_tuples: bool  # a tuple that is bound stands without parentheses
    operators_fold: bool  # what Python's operators would compute when read is written T.Add(i, 0)
    infix: bool  # &, |, ^, <<, >> and ~ for the functions of these names
    short_forms: bool  # T.alloc_local, C = A.view(4, 4), A[0:4] = ..., tx = T.launch_thread(...)
    attr_dict: bool  # T.attr({"key": value}) for attributes of no node
    elif_chains: bool
    remap_runs: bool  # T.axis.remap for each run of plain axes; otherwise for all axes of a block or none
    let: str
    plain_assertions: bool
    handle: str  # the dtype of pointers as an argument
    break_loop: str
    continue_loop: str
    hidden_root: str  # stands for the block around a function's body
    local_header: str  # stands before a local function
    constants: str  # the key of large constants in the metadata
    no_metadata: str  # says that the metadata are left out


SUPPLE = PrintStyle(
    name="supple",
    import_comments=False,
    end="\n",
    order=None,
    width=110,
    reserved=frozenset(),
    pure_first=False,
    marks_blocks=False,
    type_variables=False,
    declare_free=False,
    annotate_all=False,
    all_attributes=False,
    typed_numbers=False,
    calls_stand_alone=False,
    default_dtype="",
    sorted_keys=False,
    regions_first=False,
    types_first=False,
    graph_ints="int32",
    operator_text="",
    inline_elements=16,
    float_digits=0,
    shape_argument="({})",
    scalar_argument="R.prim_value({})",
    several_types="[{}]",
    one_type="{}",
    prim_type='R.Prim("{}")',
    string_type="R.String",
    unit_type="R.Tuple()",
    unknown_rank="R.Shape()",
    empty_tuple="()",
    device='R.device("{0}", {2})',
    distributed="dtype={}, device_mesh={}, placement={}",
    lists=False,
    opaque_function="R.Callable()",
    global_variable="{}",
    range="T.Range",
    purity=lambda ty: "" if ty.purity is (ty.params is not None) else f"purity={ty.purity}",
    bare_tuples=False,
    infix=False,
    operators_fold=False,
    short_forms=False,
    attr_dict=False,
    elif_chains=True,
    remap_runs=False,
    let="T.let",
    plain_assertions=True,
    handle='"handle"',
    break_loop="break",
    continue_loop="continue",
    hidden_root="",
    local_header="",
    constants="supple.Constant",
    no_metadata="# metadata: the data of large constants is not shown; script(show_meta=True) shows it",
)

RELAX = PrintStyle(
    name="relax",
    import_comments=True,
    end="",
    order=lambda kind, name: (name == "main", kind != "PrimFunc", name),
    width=1 << 30,
    reserved=RESERVED,
    pure_first=True,
    marks_blocks=True,
    type_variables=True,
    declare_free=True,
    annotate_all=True,
    all_attributes=True,
    typed_numbers=True,
    calls_stand_alone=True,
    default_dtype="float32",
    sorted_keys=True,
    regions_first=True,
    types_first=True,
    graph_ints="int64",
    operator_text="relax_text",
    inline_elements=0,
    float_digits=17,
    shape_argument="R.shape([{}])",
    scalar_argument="{}",
    several_types="({})",
    one_type="({},)",
    prim_type="T.{}",
    string_type="I.StringType()",
    unit_type="R.Tuple",
    unknown_rank="R.Shape(ndim=-1)",
    empty_tuple="R.tuple()",
    device="R.device(device_type={1}, index={2})",
    distributed="{}, {}, {}",
    lists=True,
    opaque_function="R.Callable",
    global_variable='I.GlobalVar("{}")',
    range="I.Range",
    purity=lambda ty: str(ty.purity) if ty.params is not None else ("purity=True" if ty.purity else ""),
    bare_tuples=True,
    infix=True,
    operators_fold=True,
    short_forms=True,
    attr_dict=True,
    elif_chains=False,
    remap_runs=True,
    let="T.let[T.{}]",
    plain_assertions=False,
    handle="T.handle().ty",
    break_loop="T.break_loop()",
    continue_loop="T.continue_loop()",
    hidden_root='# with T.sblock("root"):',
    local_header="# from tvm.script import relax as R",
    constants="ir.GenericConst",
    no_metadata="# Metadata omitted. Use show_meta=True in script() method to show it.",
)

STYLES = {style.name: style for style in (SUPPLE, RELAX)}
_default = [SUPPLE]


def set_default_style(name: str) -> None:
    """Choose the layout of texts that are asked for without one, for the whole process, and with it the conventions by
    which programs are read and built (`supple.ir.conventions`): ``"supple"`` or ``"relax"``."""
    _default[0] = _style(name)
    conventions.set_conventions(conventions.RELAX if _default[0] is RELAX else conventions.SUPPLE)


def default_style() -> PrintStyle:
    """The layout of texts that are asked for without one."""
    return _default[0]


def _style(name: str) -> PrintStyle:
    if name not in STYLES:
        raise ValueError(f"style: expected one of {', '.join(map(repr, STYLES))}, got {name!r}{_close(name, STYLES)}")
    return STYLES[name]


def _close(name: str, known: Any) -> str:
    return did_you_mean(str(name), list(known))


PREFIXES = re.compile(r'"(?:\\.|[^"\\])*"|#.*|(?<![\w.])[ITR](?=\.)')
"""A prefix; strings and comments are matched as a whole."""


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """The options of ``script()`` and ``show()``, under Relax's names."""

    style: PrintStyle
    name: str | None = None  # of the module or function, instead of its own
    show_meta: bool = False  # the data of large constants is part of the text
    ir_prefix: str = "I"
    tirx_prefix: str = "T"
    relax_prefix: str = "R"
    module_alias: str = "cls"  # of the module in its functions; empty: its name itself
    int_dtype: str = "int32"  # of integers in loop functions that do not say theirs
    float_dtype: str = "void"  # of floating-point numbers that do not say theirs
    verbose_expr: bool = False  # an expression comes with the declarations of its variables
    indent_spaces: int = 4
    print_line_numbers: bool = False
    num_context_lines: int = -1
    syntax_sugar: bool = True  # T.grid, T.axis.remap, and no root block
    show_object_address: bool = False  # names carry their variables' addresses
    marks: Marks | None = None  # parts to underline or annotate
    show_all_ty: bool = True  # bindings have their types in a layout that annotates all

    @property
    def reserved(self) -> frozenset[str]:
        """Names that no variable gets as they are."""
        chosen = {self.ir_prefix, self.tirx_prefix, self.relax_prefix, self.module_alias} - {""}
        return self.style.reserved | (chosen - {"I", "T", "R", "cls"})

    def number(self, value: Any) -> str:
        """A Python number as the style writes it."""
        return plain_number(value, self.style.float_digits)

    @property
    def renamed(self) -> Mapping[str, str]:
        """Prefixes that are not the usual ones: usual name -> name in the text."""
        pairs = {"I": self.ir_prefix, "T": self.tirx_prefix, "R": self.relax_prefix}
        return {usual: chosen for usual, chosen in pairs.items() if usual != chosen}

    def rename(self, text: str) -> str:
        """A text with these prefixes; strings and comments stay as they are."""
        renamed = self.renamed
        return PREFIXES.sub(lambda m: renamed.get(m.group(), m.group()), text) if renamed else text


_SHOW_ALL_TY = "relax.show_all_ty"
_PREFIXES = {"tirx.prefix": "tirx_prefix", "tir.prefix": "tirx_prefix", "relax.prefix": "relax_prefix"}
_OLDER = {"show_all_struct_info": "show_all_ty", "tir_prefix": "tirx_prefix"}
_UNDERLINING = ("path_to_underline", "path_to_annotate", "obj_to_underline", "obj_to_annotate")
_KINDS: dict[str, type] = {"bool": bool, "int": int, "str": str}


def _marks(root: Any, given: dict[str, Any]) -> Marks | None:
    """What is to be underlined and annotated: takes these options out of ``given``."""
    paths, path_notes, objects, object_notes = (given.pop(name, None) for name in _UNDERLINING)
    for name, value in zip(_UNDERLINING, (paths, path_notes, objects, object_notes), strict=True):
        kind = dict if name.endswith("annotate") else (list, tuple)
        if value is not None and not isinstance(value, kind):
            raise TypeError(f"{name}: expected a {'mapping' if kind is dict else 'list'}, got {type(value).__name__}")
    for path in (*(paths or ()), *(path_notes or ())):
        if not isinstance(path, AccessPath):
            raise TypeError(f"expected an AccessPath, got {type(path).__name__}")
    if not (paths or path_notes or objects or object_notes):
        return None
    return Marks.of(root, paths or (), objects or (), path_notes or {}, object_notes or {})


def print_options(style: str | None = None, root: Any = None, **given: Any) -> PrintOptions:
    """Options from keyword arguments; paths start at ``root``. ``TypeError`` for a name or value that no printer takes;
    ``NotImplementedError`` for formatting with black."""
    chosen: dict[str, Any] = {}
    for key, value in (given.pop("extra_config", None) or {}).items():
        if key == _SHOW_ALL_TY:
            given.setdefault("show_all_ty", value)
            continue
        if key not in _PREFIXES:
            raise TypeError(f"extra_config: unknown key {key!r}{_close(key, [*_PREFIXES, _SHOW_ALL_TY])}")
        chosen[_PREFIXES[key]] = value
    marks = _marks(root, given)
    if given.pop("black_format", None):
        raise NotImplementedError("black_format: Supple does not call black; format the text that script() returns")
    known = {f.name: str(f.type) for f in fields(PrintOptions) if f.name not in ("style", "marks")}
    for key, value in given.items():
        name = _OLDER.get(key, key)
        if name == "buffer_dtype":
            raise NotImplementedError("buffer_dtype: buffers that are not float32 say their dtype")
        if name not in known:
            raise TypeError(f"script: unknown option {key!r}{_close(key, [*known, *_OLDER])}")
        kind = _KINDS.get(known[name], str)
        if not isinstance(value, kind) and not (value is None and known[name] == "str | None"):
            raise TypeError(f"{key}: expected {known[name]}, got {value!r}")
        chosen[name] = value
    made = PrintOptions(_default[0] if style is None else _style(style), marks=marks)
    made = replace(made, **chosen)
    for key in ("name", "ir_prefix", "tirx_prefix", "relax_prefix", "module_alias"):
        text = getattr(made, key)
        if (
            text is not None
            and not (key == "module_alias" and text == "")
            and (not text.isidentifier() or iskeyword(text))
        ):
            raise ValueError(f"{key}: expected a name, got {text!r}")
    if made.indent_spaces < 1:
        raise ValueError(f"indent_spaces: expected at least 1, got {made.indent_spaces}")
    return made


METHODS["prim_text"] = lambda ty: ty.dtype if default_style().declare_free else repr(ty)  # Relax's str() of it
