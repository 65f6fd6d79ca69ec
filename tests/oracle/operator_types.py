"""Compares the types of every operator sample, also in bfloat16, with those that apache-tvm deduces.
Not part of the ordinary tests.

::

    python tests/oracle/operator_types.py /path/to/python/with/apache-tvm

Each sample becomes a function, printed as text; the other process parses the text and prints the return type.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from test_narrow_floats import registry_samples
from test_ops_registry import CASES, arrays_of, op_call, prepared, variables

from supple.build.block_builder import BlockBuilder
from supple.ir.expr import Var
from supple.ops.declare import ShapeOf

HEADER = "from supple.script import ir as I, relax as R, tirx as T"

ORACLE = """
import json, sys
from tvm.script import from_source
for text in json.load(sys.stdin):
    try:
        print(json.dumps(from_source(text).ret_ty.script().strip().splitlines()[-1]))
    except Exception as error:
        print(json.dumps("refused: " + str(error).strip().split(chr(10))[0]))
"""


def programs() -> list[tuple[str, str, str]]:
    """Name, text and deduced type of a function for each sample."""
    made = []
    for op, given in (*CASES, *registry_samples()):
        sample = prepared(op, given)
        params: list[Var] = []

        def fresh(value: object, params: list[Var] = params) -> object:
            if isinstance(value, list):
                return [fresh(v) for v in value]
            if isinstance(value, Var):
                params.append(Var(f"x{len(params)}", value.ty))
                return params[-1]
            return value

        arrays = arrays_of(sample)
        args = [
            list(a.values) if isinstance(a, ShapeOf) else fresh(v)
            for a, v in zip(arrays, variables(arrays, None), strict=True)
        ]
        bb = BlockBuilder()
        bb.begin_function("main", params, {"global_symbol": "main"})
        func = bb.end_function(bb.emit(op_call(op, args, sample.attrs)))
        made.append((op.short_name, func.script().replace(HEADER, "").lstrip(), str(func.ret_ty)))
    return made


def plain(text: str) -> str:
    """A type's text without the other printer's dtypes of literals."""
    for size in range(64):
        text = text.replace(f"T.int64({size})", str(size))
    return text.replace("T.Tuple(", "R.Tuple(")


def main(python: str) -> int:
    rows = programs()
    done = subprocess.run(
        [python, "-c", ORACLE], input=json.dumps([text for _, text, _ in rows]), capture_output=True, text=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('"')]
    if len(answers) != len(rows):
        print(done.stderr[-2000:])
        return 2
    different = [(name, a, ty) for (name, _, ty), a in zip(rows, answers, strict=True) if plain(a) != plain(ty)]
    for name, answer, ty in different:
        print(f"{name}: apache-tvm {answer[:140]} | Supple {ty}")
    print(f"{len(rows) - len(different)} of {len(rows)} samples have the same type")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
