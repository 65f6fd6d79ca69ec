"""TVMScript in: decorators, and programs from text.

from supple.script import ir as I, relax as R, tirx as T
"""

from supple.script.text import from_source

__all__ = ["from_source"]
