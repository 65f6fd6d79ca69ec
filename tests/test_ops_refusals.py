"""Every check of an operator's type rule is needed: for each, a call that it refuses, at its line, by its message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from supple import te
from supple.base.errors import DiagnosticError, ExecutionError
from supple.build.infer import infer
from supple.ir.expr import Call, Var, int64
from supple.ir.graph import GlobalVar, ShapeExpr, Tuple
from supple.ir.op import Op
from supple.ir.types import AnyType, FuncType, TensorType, TupleType, prim_type
from supple.ops import shapes
from supple.ops.calls import call_dps_packed
from supple.ops.declare import operator
from supple.ops.forms import check_assertion
from supple.ops.requirements import requirements_of
from supple.script import from_source

SIGNATURE = """
    s: R.Tensor((), "float32"), v: R.Tensor((4,), "float32"), v2: R.Tensor((2,), "float32"),
    m: R.Tensor((4, 4), "float32"), w: R.Tensor((4, 6), "float32"), c: R.Tensor((2, 3, 4), "float32"),
    x: R.Tensor((1, 8, 6, 6), "float32"), q: R.Tensor((1, 4, 2, 8), "float32"), empty: R.Tensor((0, 4), "float32"),
    i: R.Tensor((4,), "int64"), i2: R.Tensor((2,), "int64"), j: R.Tensor((4, 4), "int64"),
    j2: R.Tensor((2, 2), "int64"),
    i32: R.Tensor((4,), "int32"), n0: R.Tensor((), "int64"), b: R.Tensor((4,), "bool"), b0: R.Tensor((), "bool"),
    u: R.Tensor(dtype="float32"), r: R.Tensor(dtype="float32", ndim=2), nm: R.Tensor(("n", "m"), "float32"),
    cpu: R.Tensor((4,), "float32", "llvm:0"), other: R.Tensor((4,), "float32", "llvm:1"),
    size: R.Shape([2]), k: R.Prim("int64"), anything: R.Object,
    pair: R.Tuple(R.Tensor((4,), "float32"), R.Shape([2])),
    func: R.Callable((R.Tensor((4,), "float32"),), R.Tensor((4,), "float32")),
    places: R.Tensor(("n", "m"), "int64"), spread: R.DTensor((4,), "float32", R.device_mesh((2,), (0, 1)), "S[0]"),
    whole: R.DTensor((4,), "float32", R.device_mesh((2,), (0, 1)), "R")
"""

CALLS = [
    # elementwise
    ("R.nn.gelu(i)", "nn.gelu: needs a floating-point tensor"),
    ("R.exp(i)", "exp: needs a floating-point tensor"),
    ("R.clip(i, 0.5, 2.0)", "clip: a bound with a fraction"),
    ("R.astype(v, '')", "astype: a dtype is needed"),
    ("R.where(v, v, v)", "where: the condition must be a bool tensor"),
    ("R.add(cpu, other)", "add: tensors of different virtual devices"),
    ("R.log_add_exp(i, i)", "log_add_exp: needs floating-point tensors"),
    ("R.atan2(i, i)", "atan2: needs floating-point tensors"),
    # arguments and attributes
    ("R.sum(v, axis='a')", "expected an integer, got 'a'"),
    ("R.sum(v, keepdims=1.5)", "expected a bool, got 1.5"),
    ("R.nn.pad(v, [1, 1], pad_mode=3)", "expected a string, got 3"),
    ("R.layout_transform(v, 3)", "expected a map of indices"),
    ("R.layout_transform(v, lambda a: a, pad_value='a')", "expected a number, got 'a'"),
    ("R.concat(v)", "concat: parameter tensors takes a tuple of tensors"),
    ("R.concat(pair)", "concat: parameter tensors[1] takes a tensor"),
    ("R.dist.redistribute(v, 3, 'S[0]')", "expected a mesh such as"),
    ("R.exp(size)", "exp: parameter x takes a tensor"),
    # activations and normalisation
    ("R.nn.prelu(m, m)", "nn.prelu: alpha must have one dimension"),
    ("R.nn.prelu(m, v2)", "nn.prelu: alpha does not fit the axis"),
    ("R.nn.layer_norm(m, m, v, axes=[-1])", "nn.layer_norm: a weight has the wrong rank"),
    ("R.nn.layer_norm(m, v2, v2, axes=[-1])", "nn.layer_norm: a weight does not fit axis 1"),
    ("R.nn.group_norm(m, v, v, num_groups=0, channel_axis=1, axes=[0])", "nn.group_norm: needs a group"),
    (
        "R.nn.group_norm(m, v, v, num_groups=3, channel_axis=1, axes=[0])",
        "the channels are not a multiple of the groups",
    ),
    ("R.nn.dropout(m, 1.0)", "the rate must be in [0, 1)"),
    # indices in tensors
    ("R.index_tensor(m, ())", "index_tensor: needs a tensor of indices"),
    ("R.index_tensor(m, (b,))", "a mask selects a number of elements"),
    ("R.index_tensor(m, (v,))", "index_tensor: indices[0]"),
    ("R.index_tensor(v, (i, i))", "index_tensor: more indices than dimensions"),
    ("R.index_put(b, (i,), b, accumulate=True)", "index_put: bools cannot be added"),
    ("R.index_put(v, (i,), v2)", "index_put: the values do not fit what the indices select"),
    ("R.index_put(v, (i,), m)", "index_put: the values do not fit what the indices select"),
    ("R.take(m, i, axis=0, mode='slow')", "take: unknown mode"),
    ("R.take(m, v, axis=0)", "take: indices"),
    ("R.take(m, i)", "take: an axis is needed"),
    ("R.gather_elements(m, m)", "gather_elements: indices"),
    ("R.gather_elements(m, i)", "gather_elements: both must have one rank"),
    ("R.gather_nd(m, m)", "gather_nd: indices"),
    ("R.gather_nd(v, j2)", "gather_nd: more indices than dimensions"),
    ("R.one_hot(v, R.prim_value(1), R.prim_value(0), 4)", "one_hot: indices"),
    ("R.one_hot(i, R.prim_value(1), R.prim_value(0), -4)", "one_hot: the depth must be positive"),
    ("R.one_hot(i, R.prim_value(1.0), R.prim_value(0), 4)", "one_hot: both values must have one dtype"),
    ("R.scatter_elements(m, m, m)", "scatter_elements: indices"),
    ("R.scatter_elements(m, j, m, reduction='no')", "scatter_elements: unknown reduction"),
    ("R.scatter_elements(m, j, w)", "scatter_elements: indices and updates must have one shape"),
    ("R.scatter_elements(m, j, v)", "scatter_elements: indices and updates must have one shape"),
    ("R.scatter_nd(m, m, m)", "scatter_nd: indices"),
    ("R.scatter_nd(m, n0, m)", "scatter_nd: the depth of the index tuples must be a number"),
    ("R.scatter_nd(v, j2, v)", "scatter_nd: more indices than dimensions"),
    ("R.scatter_nd(m, j2, v)", "scatter_nd: the updates do not fit"),
    ("R.slice_scatter(m, v, 0, 2, 1)", "slice_scatter: src does not fit the slice"),
    ("R.slice_scatter(m, m, 0, 4, k)", "slice_scatter: the step must be a positive literal"),
    ("R.strided_slice(m, [k], [0], [1])", "strided_slice: axes and strides must be literals"),
    ("R.strided_slice(m, [0], [0, 1], [1])", "strided_slice: one of begin for each axis"),
    ("R.strided_slice(m, [0], [0], [1], [0])", "strided_slice: a stride is 0"),
    ("R.dynamic_strided_slice(m, v2, i2, i2)", "dynamic_strided_slice: begin"),
    ("R.dynamic_strided_slice(m, j2, i2, i2)", "dynamic_strided_slice: begin must have one dimension"),
    ("R.dynamic_strided_slice(m, i, i2, i2)", "dynamic_strided_slice: begin has a number for each dimension"),
    (
        "R.dynamic_strided_slice(s, R.const([], 'int64'), R.const([], 'int64'), R.const([], 'int64'))",
        "a 0-dimensional tensor cannot be sliced",
    ),
    # arrangement
    ("R.stack(())", "stack: needs at least one tensor"),
    ("R.stack((v, m))", "stack: the tensors have different ranks"),
    ("R.stack((v, v2))", "stack: tensor 1 has another shape"),
    ("R.repeat(v, -1)", "repeat: the count is negative"),
    ("R.tile(v, [-1])", "tile: a count is negative"),
    ("R.outer(v, m)", "outer: needs vectors"),
    ("R.nn.pad(v, [1, 1], pad_mode='odd')", "nn.pad: unknown mode"),
    ("R.nn.pad(v, [1, 1, 1])", "nn.pad: two widths an axis are needed"),
    ("R.nn.pad(v, [-1, 1])", "nn.pad: a width is negative"),
    ("R.nn.pad(empty, [1, 1, 0, 0], pad_mode='replicate')", "nn.pad: nothing to replicate"),
    ("R.nn.pixel_shuffle(x, 0)", "nn.pixel_shuffle: the factor must be positive"),
    ("R.nn.pixel_shuffle(m, 2)", "nn.pixel_shuffle: needs channels, height and width"),
    ("R.nn.pixel_shuffle(x, 3)", "the channels are no multiple of 9"),
    ("R.nn.batch_flatten(s)", "nn.batch_flatten: needs a batch and dimensions"),
    ("R.nn.batch_flatten(v)", "nn.batch_flatten: needs a batch and dimensions"),
    ("R.meshgrid((s, v))", "meshgrid: needs vectors"),
    ("R.index_put(v, (n0,), v)", "index_put: indices[0] has no dimension"),
    ("R.slice_scatter(m, m, 0.5, 4, 1)", "slice_scatter: start is no integer"),
    ("R.slice_scatter(m, m, 0, 4.0, 1)", "slice_scatter: end is no integer"),
    ("R.eye(2.5)", "eye: n is no integer"),
    ("R.eye(2, 1.0)", "eye: m is no integer"),
    ("R.reshape(r, (2, -1))", "reshape: 0 and -1 need the sizes of the tensor"),
    ("R.reshape(u, (0, 4))", "reshape: 0 and -1 need the sizes of the tensor"),
    ("R.zeros(anything, 'float32')", "zeros: parameter shape takes a shape"),
    ("R.broadcast_to(s, i)", "broadcast_to: parameter shape takes a shape"),
    ("R.full(3, s)", "parameter shape: expected a shape"),
    ("R.reshape(v, k)", "parameter shape: expected a shape"),
    ("R.strided_slice(m, 1, [0], [1])", "parameter axes: expected numbers in a tuple or a list"),
    ("R.strided_slice(m, [1], 0, [1])", "parameter begin: expected numbers in a tuple or a list"),
    ("R.vision.get_valid_counts(c, id_index=-2)", "the class' place is negative"),
    ("R.ewise_fma(nm, m, m)", "ewise_fma: the operands have different shapes"),
    ("R.scatter_nd(nm, R.zeros((2, 1), 'int64'), m)", "scatter_nd: the updates do not fit"),
    ("R.ccl.scatter_from_worker0(r, 1)", "ccl.scatter_from_worker0: needs the sizes of the tensor"),
    ("R.multinomial_from_uniform(m, nm, R.zeros((4, 1), 'int64'))", "one random number for each row"),
    (
        "R.vision.non_max_suppression(R.zeros((1, 6, 6), 'float32'), i32, R.zeros((1, 6), 'int32'))",
        "the counts do not fit",
    ),
    (
        "R.vision.non_max_suppression(R.zeros((1, 6, 6), 'float32'), R.zeros((1,), 'int32'), places.astype('int32'))",
        "the indices do not fit",
    ),
    ("R.meshgrid((v, v), indexing='ji')", "meshgrid: unknown indexing"),
    ("R.meshgrid(())", "meshgrid: needs at least one tensor"),
    ("R.meshgrid((m,))", "meshgrid: needs vectors"),
    ("R.reverse_sequence(m, v)", "reverse_sequence: seq_lengths"),
    ("R.reverse_sequence(m, i, 0, 0)", "reverse_sequence: both axes are one"),
    ("R.reverse_sequence(m, i2)", "reverse_sequence: one length for each of the batch"),
    ("R.hamming_window(4, k, 0.5, 0.5, 'float32')", "hamming_window: periodic must be a literal"),
    ("R.hamming_window(4.5, 1, 0.5, 0.5, 'float32')", "hamming_window: window_size is no integer"),
    ("R.hamming_window(-1, 1, 0.5, 0.5, 'float32')", "hamming_window: the window is empty"),
    ("R.hamming_window(4, 1, 0.5, 0.5, 'int32')", "hamming_window: needs a floating-point dtype"),
    ("R.reshape(m, (-1, -1))", "reshape: only one dimension can be -1"),
    ("R.reshape(m, (-1, 3))", "reshape: the size is not a multiple of the other dimensions"),
    ("R.reshape(m, (-2, 8))", "reshape: a dimension is negative"),
    ("R.reshape(m, (3, 5))", "reshape: the number of elements differs"),
    ("R.permute_dims(m, [0])", "permute_dims: every axis must be given once"),
    ("R.concat(())", "concat: needs at least one tensor"),
    ("R.add(v, i)", "add: the operands have different dtypes"),
    ("R.concat((v, i))", "concat: the tensors have different dtypes"),
    ("R.concat((v, m))", "concat: the tensors have different ranks"),
    ("R.concat((s, s))", "concat: 0-dimensional tensors have no axis"),
    ("R.concat((m, w), axis=0)", "concat: dimension 1 of tensor 1 differs"),
    ("R.broadcast_to(m, (4, 2))", "broadcast_to"),
    ("R.broadcast_to(m, (4,))", "broadcast_to: the shape has fewer dimensions than the tensor"),
    ("R.collapse_sum_to(m, (3,))", "collapse_sum: the target does not broadcast"),
    ("R.layout_transform(v, lambda a: a - 1)", "index_map: the map gives negative indices"),
    ("R.layout_transform(v, lambda a: T.bitwise_and(a, 3) - 2)", "index_map: the map gives negative indices"),
    ("R.permute_dims(m, [0, 0])", "permute_dims: an axis is given twice"),
    ("R.sum(m, axis=[0, 0])", "sum: an axis is given twice"),
    # linear algebra
    ("R.matmul(s, m)", "matmul: a 0-dimensional tensor cannot be multiplied"),
    ("R.matmul(s, r)", "matmul: a 0-dimensional tensor cannot be multiplied"),
    ("R.einsum((), 'i')", "einsum: needs an operand"),
    ("R.einsum((v,), '1')", "einsum: subscripts are letters"),
    ("R.einsum((v,), 'i->1')", "einsum: subscripts are letters"),
    ("R.einsum((m,), '...i->i')", "einsum: the result must keep the axes of the ellipsis"),
    ("R.einsum((v,), 'i->j')", "einsum: the result has a subscript that no operand has"),
    ("R.einsum((v, v2), 'i,i->i')", "einsum: the dimensions named 'i' differ"),
    # attention and losses
    ("R.nn.attention(q, q, q, causal_mask='Odd')", "unknown causal_mask"),
    ("R.nn.attention(q, q, v)", "value must have 4 dimensions"),
    ("R.nn.attention(q, x, q)", "the tensors' heads differ"),
    ("R.nn.attention(q, q, q, x)", "the bias does not fit the scores"),
    ("R.nn.attention_var_len(q, q, q, v, n0)", "the starts of the sequences"),
    ("R.nn.attention_var_len(q, q, q, j, n0)", "the starts of the sequences must have 1 dimension"),
    ("R.nn.attention_var_len(q, q, q, i32, s)", "the longest length"),
    ("R.nn.cross_entropy_with_logits(v, m)", "the ranks differ"),
    ("R.nn.cross_entropy_with_logits(v, v2)", "labels and predictions must have one shape"),
    ("R.nn.nll_loss(m, v)", "nn.nll_loss: targets"),
    ("R.nn.nll_loss(m, i, reduction='odd')", "nn.nll_loss: unknown reduction"),
    ("R.nn.nll_loss(m, j)", "nn.nll_loss: the targets have the wrong rank"),
    ("R.quantize(m, s, i2, out_dtype='float32')", "quantize: needs an out_dtype of few bits"),
    ("R.quantize(m, s, n0)", "quantize: the zero point has another dtype"),
    ("R.quantize(j, s, i32)", "quantize: the data has another dtype"),
    ("R.quantize(m, v2, i2.astype('int8'), out_dtype='int8')", "quantize: one number for each index of axis 1"),
    ("R.dequantize(j, s, i32)", "dequantize: the data has another dtype"),
    ("R.dequantize(i32, i32, i32)", "dequantize: the scale has another dtype"),
    ("R.dequantize(i32, s, i32, out_dtype='int8')", "dequantize: needs another out_dtype"),
    # convolution, pooling, images
    ("R.nn.conv2d(x, x, strides=0)", "nn.conv2d: strides, dilation and groups must be positive"),
    ("R.nn.conv2d(x, x, padding=-1)", "nn.conv2d: padding is negative"),
    ("R.nn.conv2d(x, q)", "the data's channels do not fit the kernel"),
    (
        "R.nn.conv2d(x, R.zeros((3, 4, 1, 1), 'float32'), groups=2)",
        "the output channels are not a multiple of the groups",
    ),
    ("R.nn.conv2d(x, m)", "nn.conv2d: weight must have 4 dimensions"),
    ("R.nn.conv2d(x, x, data_layout='NCWW')", "nn.conv2d: unknown layout"),
    ("R.nn.conv2d(x, x, data_layout='NCHWc')", "nn.conv2d: unknown layout"),
    ("R.nn.conv2d(x, x, data_layout='NCHW0c')", "nn.conv2d: unknown layout"),
    ("R.nn.conv2d(x, x, data_layout='NCHW2c2c')", "nn.conv2d: unknown layout"),
    ("R.nn.conv2d(x, x, data_layout='NCHW2k')", "nn.conv2d: unknown layout"),
    ("R.nn.conv2d(x, x, data_layout='NHW16cW')", "nn.conv2d: unknown layout"),
    ("R.nn.conv2d(x, x, data_layout='NCHW2c')", "nn.conv2d: data must have 5 dimensions"),
    ("R.nn.max_pool2d(R.zeros((1, 2, 4, 4, 3), 'float32'), layout='NCHW4c')", "the blocks of C have another size"),
    ("R.vision.roi_pool(x, R.zeros((1, 5), 'float32'), 2, 1.0, layout='NCHW4c')", "roi_pool: layouts with split axes"),
    ("R.nn.conv2d(x, x, strides=[1, 1, 1])", "strides must be one number, or one for each spatial dimension"),
    ("R.nn.conv2d(x, x, padding=[1, 1, 1])", "padding must be 1, 2 or 4 numbers"),
    ("R.nn.max_pool2d(x, 0)", "window, strides and dilation must be positive"),
    ("R.nn.max_pool2d(x, 2, padding=-1)", "padding is negative"),
    ("R.nn.max_pool2d(x, 9)", "the window is larger than the padded data"),
    ("R.nn.max_pool2d(m, 2)", "nn.max_pool2d: data must have 4 dimensions"),
    ("R.nn.adaptive_avg_pool2d(m, 2)", "nn.adaptive_avg_pool2d: data must have 4 dimensions"),
    ("R.image.resize2d(u, (2, 2, 2))", "a size for each spatial dimension"),
    ("R.image.resize2d(u, R.shape_of(u))", "a size for each spatial dimension"),
    ("R.image.grid_sample(x, R.zeros((1, 2, 6, 6), 'float32'), layout='NC')", "image.grid_sample: unknown layout"),
    (
        "R.image.grid_sample(x, R.zeros((1, 2, 6, 6), 'float32'), layout='NCHW4c')",
        "image.grid_sample: data must have 5 dimensions",
    ),
    ("R.image.grid_sample(x, R.zeros((1, 2, 6, 6), 'float32'), method='odd')", "image.grid_sample: unknown method"),
    (
        "R.image.grid_sample(R.zeros((1, 2, 3, 3, 3), 'float32'), R.zeros((1, 3, 3, 3, 3), 'float32'), layout='NCDHW', "
        "method='bicubic')",
        "bicubic sampling has two dimensions",
    ),
    ("R.image.grid_sample(x, m)", "image.grid_sample: grid"),
    ("R.image.grid_sample(x, x)", "the grid's channels are coordinates"),
    ("R.image.grid_sample(x, R.zeros((3, 2, 6, 6), 'float32'))", "data and grid have different batches"),
    ("R.image.affine_grid(c, (2,))", "image.affine_grid: the size has 2 or 3 dimensions"),
    ("R.image.affine_grid(c, (2, 2))", "image.affine_grid: the maps do not fit the size"),
    ("R.image.affine_grid(R.zeros((1, 2, 3), 'float32'), (0, 2))", "image.affine_grid: a size must be positive"),
    # reductions, sorting
    ("R.argsort(v, dtype='float32')", "argsort: indices need an integer dtype"),
    ("R.topk(v, 5)", "topk: the axis has fewer than 5 elements"),
    ("R.topk(v, 2, ret_type='odd')", "topk: unknown ret_type"),
    ("R.argmax(empty, axis=0)", "argmax: nothing to choose from"),
    ("R.bucketize(v, m)", "bucketize: the boundaries must have one dimension"),
    ("R.unique(s, axis=0)", "unique: axis 0 is out of range"),
    ("R.multinomial_from_uniform(m, R.zeros((4, 1), 'float32'), R.zeros((4, 1), 'float32'))", "sample_indices"),
    (
        "R.multinomial_from_uniform(m, R.zeros((4, 1), 'float32'), R.zeros((4, 1), 'int64'), dtype='float32')",
        "the result holds indices",
    ),
    (
        "R.multinomial_from_uniform(v, R.zeros((4, 1), 'float32'), R.zeros((4, 1), 'int64'))",
        "multinomial_from_uniform: prob",
    ),
    (
        "R.multinomial_from_uniform(m, R.zeros((3, 1), 'float32'), R.zeros((4, 1), 'int64'))",
        "one random number for each row",
    ),
    (
        "R.multinomial_from_uniform(m, R.zeros((4, 2), 'float32'), R.zeros((4, 2), 'int64'))",
        "numbers and rows stand in a column",
    ),
    # creation
    ("R.zeros((2,), None)", "zeros: a dtype is needed"),
    ("R.zeros((-2,), 'float32')", "zeros: a dimension is negative"),
    ("R.full((2,), v)", "full: the fill value must be a 0-dimensional tensor"),
    ("R.arange(0, 4, 0)", "arange: the step is 0"),
    ("R.eye_like(v)", "eye_like: needs a matrix"),
    ("R.tril(v)", "tril: needs matrices"),
    # gradients
    ("R.grad.nll_loss_backward(s, m, v)", "grad.nll_loss_backward: targets"),
    ("R.grad.nll_loss_backward(s, m, i, reduction='odd')", "grad.nll_loss_backward: unknown reduction"),
    ("R.grad.nll_loss_backward(s, m, j)", "grad.nll_loss_backward: the targets have the wrong rank"),
    ("R.grad.nll_loss_backward(v, m, i)", "the gradient of one number is one number"),
    ("R.grad.nll_loss_backward(v2, m, i, reduction='none')", "the gradient does not have the shape of the targets"),
    ("R.grad.max_pool2d_backward(x, m)", "grad.max_pool2d_backward: data"),
    ("R.grad.take_backward(v, v, i, mode='odd')", "grad.take_backward: unknown mode"),
    ("R.grad.take_backward(v, v, v)", "grad.take_backward: indices"),
    ("R.grad.take_backward(m, m, i)", "grad.take_backward: an axis is needed"),
    (
        "R.nn.attention_var_len(R.zeros((2, 4, 2, 8), 'float32'), R.zeros((2, 4, 2, 8), 'float32'), "
        "R.zeros((2, 4, 2, 8), 'float32'), i32, n0)",
        "the sequences stand in one row",
    ),
    ("R.memory.alloc_storage(R.shape([4]), R.prim_value(0), R.str('global'), v)", "the dtype must be a dtype value"),
    ("R.vm.alloc_storage(R.shape([4]), v, R.dtype('uint8'))", "expected an integer scalar"),
    ("R.vm.alloc_storage(R.shape([4]), R.prim_value(0), R.dtype('uint8'), 3)", "expected a string"),
    ("R.vm.alloc_storage(v, R.prim_value(0), R.dtype('uint8'))", "vm.alloc_storage takes a shape value"),
    ("R.memory.alloc_tensor(anything, R.prim_value(0), R.shape([4]), 'float32', v)", "expected an integer scalar"),
    ("R.builtin.alloc_tensor(R.shape([4]), 'float32', R.prim_value(0.5))", "expected an integer scalar"),
    ("R.builtin.alloc_tensor(R.shape([4]), 'float32', R.prim_value(0), 3)", "expected a string"),
    ("R.builtin.alloc_tensor(R.shape([4]), v, R.prim_value(0))", "the dtype must be a dtype value"),
    # vision
    ("R.vision.roi_align(m, R.zeros((2, 5), 'float32'), (2, 2), 1.0)", "vision.roi_align: data"),
    ("R.vision.roi_align(x, m, (2, 2), 1.0)", "the regions' numbers"),
    ("R.vision.non_max_suppression(c, v2, i2.astype('int32'))", "vision.non_max_suppression: valid_count"),
    ("R.vision.non_max_suppression(c, i2.astype('int32'), v2)", "vision.non_max_suppression: indices must be int32"),
    ("R.vision.non_max_suppression(m, i2.astype('int32'), j2.astype('int32'))", "vision.non_max_suppression: data"),
    (
        "R.vision.non_max_suppression(c, j2.astype('int32'), j2.astype('int32'))",
        "vision.non_max_suppression: valid_count",
    ),
    ("R.vision.non_max_suppression(c, i2.astype('int32'), i2.astype('int32'))", "vision.non_max_suppression: indices"),
    (
        "R.vision.non_max_suppression(c, i2.astype('int32'), j2.astype('int32'), coord_start=-1)",
        "a place in the rows is negative",
    ),
    ("R.vision.non_max_suppression(c, i2.astype('int32'), j2.astype('int32'))", "a row has no element 5"),
    (
        "R.vision.non_max_suppression(R.zeros((2, 3, 6), 'float32'), i2.astype('int32'), j2.astype('int32'))",
        "the indices do not fit",
    ),
    ("R.vision.all_class_non_max_suppression(c, c, v, s, s)", "max_output_boxes_per_class"),
    ("R.vision.all_class_non_max_suppression(m, c, n0, s, s)", "vision.all_class_non_max_suppression: boxes"),
    ("R.vision.all_class_non_max_suppression(c, m, n0, s, s)", "vision.all_class_non_max_suppression: scores"),
    ("R.vision.all_class_non_max_suppression(c, c, n0, s, s, output_format='odd')", "unknown format"),
    ("R.vision.all_class_non_max_suppression(c, c, j2, s, s)", "max_output_boxes_per_class is one number"),
    (
        "R.vision.all_class_non_max_suppression(R.zeros((2, 3, 5), 'float32'), c, n0, s, s)",
        "the boxes' corners do not fit",
    ),
    ("R.vision.all_class_non_max_suppression(c, c, n0, s, s)", "the boxes do not fit"),
    ("R.vision.all_class_non_max_suppression(R.zeros((1, 4, 4), 'float32'), c, n0, s, s)", "the batches do not fit"),
    ("R.vision.multibox_transform_loc(m, m, c)", "vision.multibox_transform_loc: cls_pred"),
    ("R.vision.multibox_transform_loc(c, v, c)", "vision.multibox_transform_loc: loc_pred"),
    ("R.vision.multibox_transform_loc(c, m, m)", "vision.multibox_transform_loc: anchor"),
    (
        "R.vision.multibox_transform_loc(c, R.zeros((2, 5), 'float32'), R.zeros((1, 4, 4), 'float32'))",
        "the shifts do not fit",
    ),
    (
        "R.vision.multibox_transform_loc(c, R.zeros((1, 16), 'float32'), R.zeros((1, 4, 4), 'float32'))",
        "the batches do not fit",
    ),
    (
        "R.vision.multibox_transform_loc(c, R.zeros((2, 16), 'float32'), R.zeros((2, 4, 4), 'float32'))",
        "the batch of anchors do not fit",
    ),
    (
        "R.vision.multibox_transform_loc(c, R.zeros((2, 16), 'float32'), R.zeros((1, 4, 5), 'float32'))",
        "the anchors' corners do not fit",
    ),
    (
        "R.vision.multibox_transform_loc(c, R.zeros((2, 16), 'float32'), R.zeros((1, 3, 4), 'float32'))",
        "the anchors do not fit",
    ),
    # calls and shapes
    (
        "R.call_inplace_packed('f', v, inplace_indices=[0], ty_args=[])",
        "call_inplace_packed needs the type of its result",
    ),
    (
        "R.call_inplace_packed('f', v, inplace_indices=[0, 0], ty_args=R.Tensor)",
        "call_inplace_packed: one index for each result",
    ),
    (
        "R.call_inplace_packed('f', v, inplace_indices=[1], ty_args=R.Tensor)",
        "call_inplace_packed: there is no argument 1",
    ),
    ("R.make_closure(v, (v,))", "make_closure: the first argument must be a function"),
    ("R.make_closure(func, (v, v))", "make_closure: the captured values must be a tuple of leading arguments"),
    ("R.call_py_func('f', (v,))", "call_py_func: the result's type is missing"),
    ("R.tensor_to_shape(m)", "tensor_to_shape takes a tensor of one dimension"),
    ("R.tensor_to_shape(v)", "tensor_to_shape takes int64 values"),
    ("R.shape_to_tensor(v)", "shape_to_tensor: parameter expr takes a shape"),
    ("R.assert_op(v)", "assert_op: the condition must be a scalar bool"),
    ("R.assert_op(s)", "assert_op: the condition must be a bool"),
    ("R.assert_op(pair)", "assert_op: the condition must be a scalar bool"),
    ("R.to_vdevice(v, 3)", "expected a virtual device such as"),
    ("R.to_vdevice(size, 'llvm:0')", "to_vdevice takes a tensor"),
    (
        "R.memory.alloc_storage(R.shape([4]), R.prim_value(0.5), R.str('global'), R.dtype('uint8'))",
        "expected an integer scalar",
    ),
    ("R.memory.alloc_storage(R.shape([4]), R.prim_value(0), 3, R.dtype('uint8'))", "expected a string"),
    ("R.memory.view(size, R.shape([4]))", "memory.view takes a tensor"),
    ("R.memory.view(v, R.shape([8]))", "memory.view: the view is larger than the tensor"),
    (
        "R.call_tir_with_grad(v, (v,), R.Tensor((4,), 'float32'), 'g')",
        "the first argument must be a function of the module",
    ),
    ("R.call_dps_packed('f', (v,), R.Tensor)", "the result's type must have a known shape and dtype"),
    ("R.call_dps_packed('f', (v,), [])", "needs the type of its result"),
    ("R.index_tensor(m, i)", "index_tensor: parameter indices takes a tuple of tensors"),
    ("R.nn.nll_loss(s, n0)", "the predictions have no classes"),
    ("R.take(i, i, mode='odd')", "take: unknown mode"),
    ("R.scatter_nd(v, j, v, 'mean')", "scatter_nd: unknown reduction"),
    # parts of conditions
    ("R.slice_scatter(m, m, 0, 4, 0)", "slice_scatter: the step must be a positive literal"),
    ("R.quantize(m, s, i32, out_dtype='')", "quantize: needs an out_dtype of few bits"),
    ("R.dequantize(i32, s, i32, out_dtype='')", "dequantize: needs another out_dtype"),
    ("R.call_dps_packed('f', (v,), R.Shape([2]))", "the result's type must have a known shape and dtype"),
    ("R.call_dps_packed('f', (v,), R.Tensor(dtype='float32', ndim=1))", "the result's type must have a known shape"),
    ("R.call_dps_packed('f', (v,), R.Tensor((4,)))", "the result's type must have a known shape and dtype"),
    ("R.nn.conv2d(x, x, groups=0)", "nn.conv2d: strides, dilation and groups must be positive"),
    ("R.arange(0.5, k, 1)", "arange: symbolic bounds and steps must be integers"),
    ("R.sum(v, axis=True)", "expected an integer, got True"),
    ("R.nn.dropout(spread)", "nn.dropout does not take distributed tensors"),
    ("R.add(spread, whole)", "add: distributed tensors must be placed alike"),
    ("R.add(spread, v)", "add: distributed tensors must be placed alike"),
    ("R.inspect.tensor_shape_i(v, n0)", "expected a number, got n0"),
    ("R.layout_transform(R.zeros((1 << 30,), 'int32'), lambda a: T.bitwise_xor(a, 1))", "has no bounds that are known"),
    ("R.layout_transform(i, lambda a: a, pad_value=1.5)", "layout_transform: the padding is no integer"),
    ("R.matmul(m, s)", "matmul: a 0-dimensional tensor cannot be multiplied"),
    ("R.matmul(r, s)", "matmul: a 0-dimensional tensor cannot be multiplied"),
    ("R.broadcast_to(m, (1, 4))", "broadcast_to: the tensor does not broadcast"),
    ("R.collapse_sum_to(v, (1, 4))", "collapse_sum: the target does not broadcast"),
    ("R.collapse_sum_to(s, (1,))", "collapse_sum: the target does not broadcast"),
    ("R.image.resize2d(x, (2, 2), layout='NCHW!')", "image.resize2d: unknown layout"),
    ("R.image.resize2d(x, (2, 2), layout='NCHW4h')", "image.resize2d: unknown layout"),
    (
        "R.multinomial_from_uniform(m, R.zeros((4, 1), 'float32'), R.zeros((4, 1), 'int64'), dtype='')",
        "the result holds indices",
    ),
    ("R.scatter_nd(m, places, m)", "scatter_nd: the depth of the index tuples must be a number"),
    ("R.argsort(v, dtype='')", "argsort: indices need an integer dtype"),
    (
        "R.vision.non_max_suppression(c, i2.astype('int32'), j2.astype('int32'), score_index=-1)",
        "a place in the rows is negative",
    ),
    (
        "R.vision.multibox_transform_loc(c, m, c, variances=None)",
        "four variances",
    ),
    ("R.memory.alloc_storage(R.shape([4]), n0, R.str('global'), R.dtype('uint8'))", "expected an integer scalar"),
]


@pytest.mark.parametrize(("call", "message"), CALLS, ids=[call for call, _ in CALLS])
def test_a_call_is_refused_where_it_stands(call: str, message: str) -> None:
    with pytest.raises(DiagnosticError) as caught:
        from_source(f"@R.function\ndef f({SIGNATURE}):\n    y = {call}\n    return y\n")
    error = caught.value
    assert message in error.message
    line = SIGNATURE.count("\n") + 3
    assert error.span is not None and error.span.line == error.span.end_line == line
    start = len("    y = ")
    assert start < error.span.column and error.span.end_column <= start + len(call) + 1


N, M = (Var(name, prim_type("int64")) for name in "nm")
X = Var("x", TensorType(None, "float32"))
LINE, SQUARE = Var("x", TensorType(None, "float32", 1)), TensorType(ShapeExpr((int64(2), int64(2))), "float32")
IN_PLACE = {"inplace_indices": (0,)}
OF_N, OF_M = te.placeholder((N,), "float32", "a"), te.placeholder((M,), "float32", "b")
INTS_N, INTS_M = te.placeholder((N,), "int64", "a"), te.placeholder((M,), "int64", "b")
G = GlobalVar("g")


def op(name: str) -> Op:
    return Op.get(f"relax.{name}")


def call(name: str, *args: Any, **attrs: Any) -> Any:
    return infer(Call(op(name), args, attrs))


def lower(name: str, *tensors: Any, **attrs: Any) -> Any:
    made = op(name).lower
    assert made is not None
    return made(*tensors, **attrs)


def of_no_known_kind(x: complex) -> AnyType:
    return AnyType()


def matrices(count: Any) -> Any:
    return te.placeholder((count, 2, 2), "float32")


def resized_to(*size: int) -> Any:
    data = Var("x", TensorType(ShapeExpr((int64(1), int64(1), int64(4), int64(4))), "float32"))
    attrs = op("image.resize2d")(data, (2, 2)).attrs
    return lower("image.resize2d", te.placeholder((1, 1, 4, 4), "float32"), [int64(n) for n in size], **attrs)


DIRECT: list[tuple[Callable[[], Any], str]] = [
    (lambda: call("call_tir", G), "call_tir needs a function and a tuple of arguments"),
    (lambda: call("call_tir", G, X), "call_tir: the arguments must be a tuple"),
    (lambda: call("call_tir", G, Tuple(())), "call_tir needs the type of its result"),
    (lambda: infer(Call(op("call_tir"), (G, Tuple(())), {}, (SQUARE, SQUARE))), "call_tir keeps one type"),
    (lambda: infer(Call(op("call_tir"), (G, Tuple(())), {}, (TupleType((SQUARE,)),))), "call_tir keeps one type"),
    (lambda: call_dps_packed("f", (X,), TupleType((SQUARE, SQUARE))), "several results are declared by a list"),
    (lambda: call("make_closure", Var("f", FuncType((X.ty,), X.ty)), X), "make_closure: the captured values"),
    (lambda: infer(Call(op("call_tir_inplace"), (G, Tuple((LINE,))), IN_PLACE, (SQUARE,))), "its type is another"),
    (lambda: call("assert_op"), "assert_op needs a condition"),
    (lambda: call("add", X), "relax.add: parameter x2 is missing"),
    (lambda: call("add", X, X, X), "relax.add: 1 arguments too many"),
    (lambda: operator("of_no_known_kind")(of_no_known_kind), r"parameter x has no known kind \(complex\)"),
    (lambda: shapes.normalize_axis("op", 1, -1), "op: the axis 1 needs an input of known rank"),
    (lambda: shapes.normalize_axes("op", None, -1), "op: needs an input of known rank"),
    (lambda: check_assertion(np.False_, [3], "x is {}"), "assert_op: x is 3"),
    (lambda: lower("add", OF_N, OF_M), "add: the broadcast shape is not known"),
    (lambda: lower("power", INTS_N, INTS_M), "power: the broadcast shape is not known"),
    (lambda: lower("where", OF_N, OF_M, OF_M), "where: the broadcast shape is not known"),
    (
        lambda: lower("matmul", matrices(N), matrices(M), out_dtype=None),
        "matmul: the batch shape is not known",
    ),
    (
        lambda: lower("index_tensor", te.placeholder((4, 4), "float32"), [INTS_N, INTS_M]),
        "index_tensor: the indices' common shape is not known",
    ),
    (lambda: lower("shape_to_tensor", X), "needs a shape whose rank is known"),
    (
        lambda: resized_to(2, 2, 2),
        "a size for each spatial",
    ),
]


@pytest.mark.parametrize(("act", "message"), DIRECT, ids=[message for _, message in DIRECT])
def test_what_no_program_s_text_says_is_refused(act: Callable[[], Any], message: str) -> None:
    with pytest.raises((DiagnosticError, ExecutionError, TypeError), match=message):
        act()


INTEGERS = np.array([[0, 7]], "int64")
REFERENCES: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("gather_elements", (np.zeros((2, 2)), INTEGERS), {"axis": 1}, "index 7 is out of bounds for axis 1 of data"),
    (
        "gather_elements",
        (np.zeros((1, 2)), np.zeros((3, 2), "int64")),
        {"axis": 1},
        "index 2 is out of bounds",
    ),
    ("gather_nd", (np.zeros((2, 2)), INTEGERS), {"batch_dims": 0}, "index 7 is out of bounds for axis 1 of data"),
    (
        "scatter_elements",
        (np.zeros((2, 2)), INTEGERS, np.ones((1, 2))),
        {"axis": 0, "reduction": "add"},
        "index 7 is out",
    ),
    (
        "scatter_nd",
        (np.zeros((2, 2)), INTEGERS, np.ones(1)),
        {"reduction": "add"},
        "index 7 is out of bounds for axis 1",
    ),
    (
        "grad.nll_loss_backward",
        (np.ones(()), np.zeros((1, 2)), np.array([7]), None),
        {"reduction": "sum", "ignore_index": -1},
        "index 7 is out of bounds for axis 1 of predictions",
    ),
]


@pytest.mark.parametrize(("name", "arrays", "attrs", "message"), REFERENCES)
def test_a_reference_refuses_what_compiled_code_does(
    name: str, arrays: tuple[Any, ...], attrs: dict[str, Any], message: str
) -> None:
    ref = op(name).ref
    assert ref is not None
    with pytest.raises(ExecutionError, match=message):
        ref(*arrays, **attrs)


def test_sizes_that_are_known_at_run_time_are_noted() -> None:
    x, y = (Var(name, TensorType(ShapeExpr((size,)), "float32")) for name, size in (("x", N), ("y", M)))
    (noted,) = requirements_of(Call(op("nn.cross_entropy_with_logits"), (x, y)))
    assert "labels and predictions must have one shape" in noted.text
