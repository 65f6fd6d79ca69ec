"""Conventions by which programs are read and built: Supple's own, or Relax's while scripts written for TVM run.

They go with the layout in which programs are printed (`supple.ir.print_style.set_default_style` chooses both), so that
what is built compares and prints as a script expects.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Conventions:
    """What differs, each a yes or no."""

    counts_named: bool  # the values that a text names count where those without names are numbered
    joins_dataflow: bool  # dataflow blocks that follow each other are one
    casts_values: bool  # what R.match_cast checks may be a call or an element of a tuple that is bound to no variable
    matches_inputs: bool  # what stands in a PatternContext are variables, each another; is_var means no bound one
    renames_nothing: bool  # after rewrite_call no binding is another name of a variable or of a tuple's element
    folds_operators: bool  # Python's operators compute numbers, and n + 0, n * 1, n // 1 are n
    symbols_in_sight: bool  # a body may name the symbols of its signature without declaring them
    drops_zeros: bool  # T.evaluate(0) among other statements is left out, and stands where there is no statement
    covariant_functions: bool  # relax.analysis relates types of functions as tuples of their parameters and results
    passes_scalars: bool  # sizes that a compute definition reads are arguments of R.call_tir, not its tir_vars
    simplifies_formulas: bool  # formulas are simplified; a tensor without dimensions has a block of one point
    binds_values: bool  # a macro's value is bound where it is called; a value that is bound to no name is refused
    names_are_cells: bool  # what is assigned to a name outside of blocks is a buffer of one element; T.let is a binding
    allocates_in_place: bool  # T.alloc_buffer outside of blocks is a statement, T.sblock_alloc_buffer the root block's
    closed_blocks: bool  # a block with iteration variables does not name the loops around it
    literals_have_dtypes: bool  # a number in a loop-level program is an int32 (int64) or float32, whatever it meets


SUPPLE = Conventions(
    counts_named=False,
    joins_dataflow=False,
    casts_values=False,
    matches_inputs=False,
    renames_nothing=False,
    folds_operators=False,
    symbols_in_sight=False,
    drops_zeros=False,
    covariant_functions=False,
    passes_scalars=False,
    simplifies_formulas=False,
    binds_values=False,
    names_are_cells=False,
    allocates_in_place=False,
    closed_blocks=False,
    literals_have_dtypes=False,
)

RELAX = Conventions(
    counts_named=True,
    joins_dataflow=True,
    casts_values=True,
    matches_inputs=True,
    renames_nothing=True,
    folds_operators=True,
    symbols_in_sight=True,
    drops_zeros=True,
    covariant_functions=True,
    passes_scalars=True,
    simplifies_formulas=True,
    binds_values=True,
    names_are_cells=True,
    allocates_in_place=True,
    closed_blocks=True,
    literals_have_dtypes=True,
)

_current = [SUPPLE]


def conventions() -> Conventions:
    """The conventions of the process."""
    return _current[0]


def set_conventions(chosen: Conventions) -> None:
    """Choose the conventions of the process."""
    _current[0] = chosen


_users_formula: ContextVar[bool] = ContextVar("users_formula", default=False)


@contextmanager
def users_formula() -> Iterator[None]:
    """Inside, Python's numbers meet expressions of a program that a user wrote, not of an operator's definition."""
    token = _users_formula.set(_current[0].literals_have_dtypes)
    try:
        yield
    finally:
        _users_formula.reset(token)


def literals_have_dtypes() -> bool:
    """Whether a Python number has a dtype of its own here (`Conventions.literals_have_dtypes`)."""
    return _users_formula.get()
