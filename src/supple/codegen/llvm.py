"""LLVM: text in, verified and lightly optimised object code out."""

from __future__ import annotations

import functools
import threading

import llvmlite.binding as llvm

from supple.base.errors import InternalError
from supple.base.target import Target

_lock = threading.Lock()
_ready: set[str] = set()


def _initialize(arch: str) -> None:
    with _lock:
        if arch in _ready:
            return
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        _ready.add(arch)


@functools.lru_cache(maxsize=64)
def target_machine(target: Target, level: int = 2) -> llvm.TargetMachine:
    """LLVM's code generator for a target, at an optimisation level of 0 to 3. Its code is position independent."""
    _initialize(target.arch)
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu, features=target.features, opt=level, reloc="pic", codemodel="small"
    )


def parse(text: str) -> llvm.ModuleRef:
    """Parse and verify; a fault is Supple's own, so it raises `InternalError` with LLVM's message and the line."""
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise InternalError(f"LLVM refused generated code: {error}{_around(text, str(error))}") from None
    return module


def _around(text: str, message: str) -> str:
    for word in message.replace(":", " ").split():
        if word.isdigit() and 0 < int(word) <= text.count("\n") + 1:
            return f"\n  {text.splitlines()[int(word) - 1].strip()}"
    return ""


def optimize(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """The few passes kernels need: local arrays become SSA values, and leftovers of that are removed.

    Everything else (hoisting, common subexpressions, vectors) the emitter has done already.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    options.loop_vectorization = False
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_dead_code_elimination_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)


def compile_text(text: str, target: Target, *, level: int = 2, passes: bool = True) -> bytes:
    """Object code (the bytes of a relocatable file) of a module's text."""
    machine = target_machine(target, level)
    module = parse(text)
    if passes:
        optimize(module, machine)
    return bytes(machine.emit_object(module))


def optimized_text(text: str, target: Target) -> str:
    """The module after `optimize`, for tests and for reading."""
    module = parse(text)
    optimize(module, target_machine(target))
    return str(module)
