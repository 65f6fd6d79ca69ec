"""The ``supple`` command."""

from __future__ import annotations

import argparse
import runpy
import sys
import traceback
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from supple.base.config import config
from supple.base.errors import DiagnosticError
from supple.compat import install_as_tvm
from supple.tools.bench import command

BENCH = """Measure Supple beside the libraries that are installed (pip install 'supple[bench]'): the same inputs, in
turn, in one process, with equal threads. Shown are medians, the best other library's time over Supple's, and the
share of the machine's peak."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="supple", description="A compiler for machine-learning models.")
    parser.add_argument("--version", action="version", version=f"supple {version('supple')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="run a Python script", description="Run a Python script.")
    run.add_argument("--as-tvm", action="store_true", help="let `import tvm` in the script mean Supple")
    run.add_argument("--time-passes", action="store_true", help="print how long each step of a compilation took")
    run.add_argument("script", help="the script's path")
    run.add_argument("args", nargs=argparse.REMAINDER, metavar="...", help="what the script finds in sys.argv")
    bench = commands.add_parser("bench", help="compare with other libraries", description=BENCH)
    command.add_arguments(bench)
    options = parser.parse_args(argv)
    if options.command == "bench":
        return command.run(options)
    if options.time_passes:
        config.time_passes = True
    return _run(options.script, options.args, options.as_tvm)


def _run(script: str, args: Sequence[str], as_tvm: bool) -> int:
    if not Path(script).is_file():
        print(f"supple: no script {script!r}", file=sys.stderr)
        return 2
    if as_tvm:
        install_as_tvm()
    sys.argv = [script, *args]
    sys.path.insert(0, str(Path(script).resolve().parent))  # as `python script.py` does
    try:
        runpy.run_path(script, run_name="__main__")
    except DiagnosticError as error:  # its text names file, line and column: a traceback adds nothing
        print(error, file=sys.stderr)
        return 1
    except Exception as error:
        _print_from(script, error)
        if isinstance(error, ModuleNotFoundError) and not as_tvm and (error.name or "").partition(".")[0] == "tvm":
            print(f"hint: `supple run --as-tvm {script}` lets `import tvm` mean Supple", file=sys.stderr)
        return 1
    return 0


def _print_from(script: str, error: Exception) -> None:
    """The traceback from the script's first frame on, as `python script.py` prints it."""
    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename != script:
        frame = frame.tb_next
    traceback.print_exception(error.with_traceback(frame or error.__traceback__))


if __name__ == "__main__":
    sys.exit(main())
