"""``relax.transform``: passes under their public names. Only re-exports."""

from supple.transform import (
    AnnotateTIROpPattern,
    BindParams,
    DataflowBlockPass,
    DeadCodeElimination,
    FoldConstant,
    FunctionPass,
    FuseOps,
    FuseTIR,
    LambdaLift,
    LegalizeOps,
    Pass,
    PassContext,
    Sequential,
    dataflowblock_pass,
    function_pass,
    module_pass,
)

__all__ = [
    "AnnotateTIROpPattern",
    "BindParams",
    "DataflowBlockPass",
    "DeadCodeElimination",
    "FoldConstant",
    "FunctionPass",
    "FuseOps",
    "FuseTIR",
    "LambdaLift",
    "LegalizeOps",
    "Pass",
    "PassContext",
    "Sequential",
    "dataflowblock_pass",
    "function_pass",
    "module_pass",
]
