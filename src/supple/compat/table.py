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
    Row("tvm_ffi.access_path", "supple.script.printer.access_path"),
    Row("tvm.error", "supple.base.errors"),
    Row("tvm.ir", "supple.ir.module"),
    Row("tvm.relax", "supple.relax"),
    Row("tvm.relax.analysis", "supple.relax.analysis"),
    Row("tvm.relax.base_py_module", "supple.relax.base_py_module"),
    Row("tvm.relax.binding_rewrite", "supple.relax.binding_rewrite"),
    Row("tvm.relax.block_builder", "supple.relax.block_builder"),
    Row("tvm.relax.dpl", "supple.relax.dpl"),
    Row("tvm.relax.dpl.context", "supple.relax.dpl.context"),
    Row("tvm.relax.dpl.pattern", "supple.relax.dpl.pattern"),
    Row("tvm.relax.dpl.rewrite", "supple.relax.dpl.rewrite"),
    Row("tvm.relax.expr", "supple.relax.expr"),
    Row("tvm.relax.expr_functor", "supple.relax.expr_functor"),
    Row("tvm.relax.global_info", "supple.relax.global_info"),
    Row("tvm.relax.op", "supple.relax.op"),
    Row("tvm.relax.transform", "supple.relax.transform"),
    Row("tvm.relax.type", "supple.relax.type"),
    Row("tvm.relax.utils", "supple.relax.utils"),
    Row("tvm.relax.vm", "supple.relax.vm"),
    Row("tvm.relax.ty", "supple.relax.type"),
    Row("tvm.runtime", "supple.runtime.tensor"),
    Row("tvm.script", "supple.script"),
    Row("tvm.script.ir", "supple.script.ir"),
    Row("tvm.script.ir_builder", "supple.script.ir_builder"),
    Row("tvm.script.ir_builder.base", "supple.script.ir_builder.base"),
    Row("tvm.script.ir_builder.ir", "supple.script.ir_builder.ir"),
    Row("tvm.script.ir_builder.relax", "supple.script.ir_builder.relax"),
    Row("tvm.script.ir_builder.tir", "supple.script.ir_builder.tirx"),
    Row("tvm.script.ir_builder.tirx", "supple.script.ir_builder.tirx"),
    Row("tvm.script.printer", "supple.script.printer"),
    Row("tvm.script.printer.doc", "supple.script.printer.doc"),
    Row("tvm.script.printer.doc_printer", "supple.script.printer.doc_printer"),
    Row("tvm.script.relax", "supple.script.relax"),
    Row("tvm.script.tir", "supple.script.tirx"),
    Row("tvm.script.tirx", "supple.script.tirx"),
    Row("tvm.target", "supple.base.target"),
    Row("tvm.te", "supple.te"),
    Row("tvm.testing", "supple.compat.testing"),
    Row("tvm.testing.env", "supple.compat.testing_env"),
    Row("tvm.testing.utils", "supple.compat.testing"),
    Row("tvm.tir", "supple.tirx"),
    Row("tvm.topi", "supple.topi"),
    Row("tvm.topi.nn", "supple.topi.nn"),
    Row("tvm.transform", "supple.transform"),
    Row("tvm.ir.transform", "supple.transform"),
    Row("tvm.tirx", "supple.tirx"),
    Row("tvm.nd", "supple.runtime.tensor"),
    Row("tvm.ir.base", "supple.ir.structural"),
    Row("tvm.ir.module", "supple.ir.module"),
    Row("tvm.tirx.expr", "supple.ir.expr"),
    Row("tvm.tirx.stmt", "supple.ir.loop"),
    Row("tvm.tir.expr", "supple.ir.expr"),
    Row("tvm.tir.stmt", "supple.ir.loop"),
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
    Row("tvm.ir.Range", "supple.script.ir:Range"),
    Row("tvm.tirx.Range", "supple.script.ir:Range"),
    Row("tvm.tir.Range", "supple.script.ir:Range"),
    Row("tvm.ir.Call", "supple.ir.expr:Call"),
    Row("tvm.ir.FuncType", "supple.ir.types:FuncType"),
    Row("tvm.ir.PointerType", "supple.ir.types:PointerType"),
    Row("tvm.ir.TupleType", "supple.ir.types:TupleType"),
    Row("tvm.ir.Tuple", "supple.ir.graph:Tuple"),
    Row("tvm.ir.TupleGetItem", "supple.ir.expr:TupleGetItem"),
    Row("tvm.ir.Type", "supple.ir.node:Type"),
    Row("tvm.ir.VDevice", "supple.ir.types:VDevice"),
    Row("tvm.ir.is_prim_expr", "supple.ir.expr:is_scalar"),
    Row("tvm.ir.is_prim_var", "supple.tirx:is_prim_var"),
    Row("tvm.ir.load_json", "supple.ir.serialize:load_json"),
    Row("tvm.ir.save_json", "supple.ir.serialize:save_json"),
    Row("tvm.script.ir_module", "supple.script.ir:ir_module"),
    Row("tvm.relax.TensorStructInfo", "supple.ir.types:TensorType"),
    Row("tvm.relax.ShapeStructInfo", "supple.ir.types:ShapeType"),
    Row("tvm.relax.TupleStructInfo", "supple.ir.types:TupleType"),
    Row("tvm.relax.PrimStructInfo", "supple.ir.types:PrimType"),
    Row("tvm.relax.FuncStructInfo", "supple.ir.types:FuncType"),
    Row("tvm.relax.ObjectStructInfo", "supple.ir.types:AnyType"),
    Row("tvm.ir.Var", "supple.ir.expr:Var"),
    Row("tvm.IRModule", "supple.ir.module:IRModule"),
    Row("tvm.nd.array", "supple.runtime.tensor:tensor"),
    Row("tvm.nd.empty", "supple.runtime.tensor:empty"),
    Row("tvm.runtime.NDArray", "supple.runtime.tensor:Tensor"),
    Row("tvm.runtime.vm.VirtualMachine", "supple.relax:VirtualMachine"),
    Row("tvm.cpu", "supple.runtime.device:cpu"),
    Row("tvm.device", "supple.runtime.device:device"),
    Row("tvm.target.Target", "supple.base.target:target"),
)
