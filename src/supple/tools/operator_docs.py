"""The operator reference, made from the registry: ``python -m supple.tools.operator_docs > docs/operators.md``."""

from __future__ import annotations

import re

import supple.ops
from supple.ir.op import OPS, Op, signature_text

HEAD = """# Operators

Made from the operator declarations by `python -m supple.tools.operator_docs > docs/operators.md`; do not edit.

*Native*: has a compute definition that is compiled. *Interpreter*: has a value by numpy. Operators without either are
forms that host code or the interpreter treats by themselves (calls, shapes, printing), or are not supported yet.

"""


def reference() -> str:
    """The page as Markdown: a summary, then every operator of the ``relax`` namespace with signature and text."""
    operators = sorted((op for name, op in OPS.items() if name.startswith("relax.")), key=lambda op: op.name)
    native = sum(op.lower is not None for op in operators)
    lines = [HEAD + f"{len(operators)} operators, {native} with a compute definition.\n"]
    for op in operators:
        lines.append(f"## `R.{signature_text(op)}`\n")
        lines.append(f"{_text(op)}\n")
        lines.append(f"{_facts(op)}\n")
    return "\n".join(lines)


def _text(op: Op) -> str:
    return re.sub(r"\s*\n\s*", " ", op.doc.strip()).replace("``", "`")


def _facts(op: Op) -> str:
    compiled = op.lower is not None or not {"dynamic", "scalar"}.isdisjoint(op.facts)
    ways = [way for way, there in (("native", compiled), ("interpreter", op.ref is not None)) if there]
    return f"*{', '.join(ways) or 'by itself'}; {op.fusion.name.lower()}{'' if op.pure else '; has an effect'}*"


if __name__ == "__main__":
    assert supple.ops
    print(reference(), end="")
