"""The one table of older spellings: where each name of TVM is found in Supple.

A row whose ``new`` has no colon maps a module; ``module:name`` maps one name. ``since`` is the first release of Supple
that resolves it. A name of a mapped module that has no row of its own is looked up in that module.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """``old`` under ``tvm`` is ``new`` in Supple."""

    old: str
    new: str
    since: str = "0.1"


ROWS: tuple[Row, ...] = (
    # modules
    Row("tvm", "supple"),
    Row("tvm_ffi", "supple.runtime.packed"),
    Row("tvm.error", "supple.base.errors"),
    Row("tvm.ir", "supple.ir.module"),
    Row("tvm.relax", "supple.relax"),
    Row("tvm.runtime", "supple.runtime.tensor"),
    Row("tvm.script", "supple.script"),
    Row("tvm.script.ir", "supple.script.ir"),
    Row("tvm.script.relax", "supple.script.relax"),
    Row("tvm.script.tir", "supple.script.tirx"),
    Row("tvm.script.tirx", "supple.script.tirx"),
    Row("tvm.target", "supple.base.target"),
    Row("tvm.te", "supple.build.te"),
    Row("tvm.testing", "supple.compat.testing"),
    Row("tvm.tir", "supple.tirx"),
    Row("tvm.tirx", "supple.tirx"),
    Row("tvm.nd", "supple.runtime.tensor"),
    # names
    Row("tvm.compile", "supple.compat.api:compile"),
    Row("tvm.build", "supple.compat.api:compile"),
    Row("tvm.relax.build", "supple.compat.api:compile"),
    Row("tvm.register_func", "supple.runtime.packed:register_global_func"),
    Row("tvm.register_global_func", "supple.runtime.packed:register_global_func"),
    Row("tvm.get_global_func", "supple.runtime.packed:get_global_func"),
    Row("tvm_ffi.register_func", "supple.runtime.packed:register_global_func"),
    Row("tvm.ir.assert_structural_equal", "supple.ir.structural:assert_structural_equal"),
    Row("tvm.ir.structural_equal", "supple.ir.structural:structural_equal"),
    Row("tvm.ir.structural_hash", "supple.ir.structural:structural_hash"),
    Row("tvm.ir.GlobalVar", "supple.ir.graph:GlobalVar"),
    Row("tvm.ir.Op", "supple.ir.op:Op"),
    Row("tvm.ir.PrimType", "supple.ir.types:PrimType"),
    Row("tvm.ir.Range", "supple.ir.expr:Range"),
    Row("tvm.ir.Var", "supple.ir.expr:Var"),
    Row("tvm.IRModule", "supple.ir.module:IRModule"),
    Row("tvm.nd.array", "supple.runtime.tensor:tensor"),
    Row("tvm.nd.empty", "supple.runtime.tensor:empty"),
    Row("tvm.runtime.NDArray", "supple.runtime.tensor:Tensor"),
    Row("tvm.runtime.vm.VirtualMachine", "supple.relax:VirtualMachine"),
    Row("tvm.cpu", "supple.runtime.device:cpu"),
    Row("tvm.device", "supple.runtime.device:device"),
    Row("tvm.target.Target", "supple.base.target:Target"),
)
