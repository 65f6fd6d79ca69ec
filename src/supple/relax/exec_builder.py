"""``relax.exec_builder``. Only re-exports."""

from supple.runtime.instructions import ExecBuilder, InstructionExecutable, SpecialReg, VMFuncKind, VMFuncScope

__all__ = [
    "ExecBuilder",
    "InstructionExecutable",
    "SpecialReg",
    "VMFuncKind",
    "VMFuncScope",
]
