"""The fast entry as LLVM IR: a METH_FASTCALL function that calls compiled code on numpy arrays without running Python.

It takes the call when every argument is a plain numpy array that needs no conversion and the result is a fresh tensor
(or one of the arguments), or a tuple of such; whatever else comes, errors included, goes to the function written in
Python, which starts the call again. Compiled code that calls into Python is never entered here.

The record (``self`` is its address as a Python int)::

    0 ptr code      8 i64 count      16 ptr plan          24 ptr template    32 i64 bytes
    40 ptr ndarray  48 ptr function  56 ptr instance      64 ptr dtypes      72 i64 closed
    80 i64 first argument            88 i64 result        96 i64 fields

``dtypes`` points to the results' dtypes in a row; ``fields`` is how many a tuple has, -1 for a tensor alone.
``template`` holds ``bytes`` of a prepared activation; the way through Python is ``function(instance, *args,
**keywords)``; ``closed`` is set when a result turned out to need it, so that the call is not started twice again.
"""

from __future__ import annotations

ENTRY_IR = r"""
declare ptr @malloc(i64)
declare void @free(ptr)
declare ptr @memcpy(ptr, ptr, i64)
declare i64 @bind_arrays(ptr, i64, ptr, ptr, ptr)
declare void @incref(ptr)
declare void @decref(ptr)
declare ptr @PyLong_AsVoidPtr(ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyCapsule_New(ptr, ptr, ptr)
declare ptr @PyCapsule_GetPointer(ptr, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare i32 @PyArray_SetBaseObject(ptr, ptr)

@callbacks_active = external global i64

define void @release_base(ptr %capsule) {
  %object = call ptr @PyCapsule_GetPointer(ptr %capsule, ptr null)
  call void @decref(ptr %object)
  ret void
}

; function(instance, *args, **keywords); the values of the keywords follow those of the positions
define internal ptr @through_python(ptr %record, ptr %args, i64 %nargs, ptr %names) {
  %unnamed = icmp eq ptr %names, null
  br i1 %unnamed, label %begin, label %named
named:
  %size = call i64 @PyTuple_Size(ptr %names)
  br label %begin
begin:
  %keywords = phi i64 [ 0, %0 ], [ %size, %named ]
  %count = add i64 %nargs, %keywords
  %room = add i64 %count, 1
  %n = add i64 %nargs, 1
  %all = alloca ptr, i64 %room
  %instance.at = getelementptr i8, ptr %record, i64 56
  %instance = load ptr, ptr %instance.at
  store ptr %instance, ptr %all
  br label %next
next:
  %i = phi i64 [ 0, %begin ], [ %i.next, %copy ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %copy, label %go
copy:
  %from = getelementptr ptr, ptr %args, i64 %i
  %value = load ptr, ptr %from
  %i.next = add i64 %i, 1
  %to = getelementptr ptr, ptr %all, i64 %i.next
  store ptr %value, ptr %to
  br label %next
go:
  %function.at = getelementptr i8, ptr %record, i64 48
  %function = load ptr, ptr %function.at
  %result = call ptr @PyObject_Vectorcall(ptr %function, ptr %all, i64 %n, ptr %names)
  ret ptr %result
}

; The caller's object for a native one that is an argument, else null. ``first`` points to the native arguments.
define internal ptr @argument_of(ptr %object, ptr %first, i64 %count, ptr %args) alwaysinline {
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %i.next, %other ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %compare, label %none
compare:
  %candidate.at = getelementptr ptr, ptr %first, i64 %i
  %candidate = load ptr, ptr %candidate.at
  %mine = icmp eq ptr %candidate, %object
  br i1 %mine, label %found, label %other
other:
  %i.next = add i64 %i, 1
  br label %next
found:
  %original.at = getelementptr ptr, ptr %args, i64 %i
  %original = load ptr, ptr %original.at
  ret ptr %original
none:
  ret ptr null
}

; Whether an object is a tensor that owns its memory, of dimensions that numpy has.
define internal i1 @is_fresh(ptr %object) alwaysinline {
  %kind.at = getelementptr i8, ptr %object, i64 8
  %kind = load i32, ptr %kind.at
  %is.tensor = icmp eq i32 %kind, 1
  br i1 %is.tensor, label %look, label %no
look:
  %owner.at = getelementptr i8, ptr %object, i64 32
  %owner = load ptr, ptr %owner.at
  %owns = icmp eq ptr %owner, null
  %ndim.at = getelementptr i8, ptr %object, i64 40
  %ndim = load i64, ptr %ndim.at
  %few = icmp ule i64 %ndim, 8
  %plain = and i1 %owns, %few
  ret i1 %plain
no:
  ret i1 false
}

; The numpy array over a tensor's memory; takes over the caller's reference, also where it fails (null).
define internal ptr @wrap(ptr %object, ptr %dtype, ptr %ndarray) {
  %data.at = getelementptr i8, ptr %object, i64 24
  %data = load ptr, ptr %data.at
  %ndim.at = getelementptr i8, ptr %object, i64 40
  %ndim = load i64, ptr %ndim.at
  %dims = getelementptr i8, ptr %object, i64 64
  %nd = trunc i64 %ndim to i32
  call void @Py_IncRef(ptr %dtype)
  %array = call ptr @PyArray_NewFromDescr(ptr %ndarray, ptr %dtype, i32 %nd, ptr %dims, ptr null, ptr %data,
                                          i32 1281, ptr null)
  %made = icmp ne ptr %array, null
  br i1 %made, label %own, label %failed
own:
  %capsule = call ptr @PyCapsule_New(ptr %object, ptr null, ptr @release_base)
  %has.capsule = icmp ne ptr %capsule, null
  br i1 %has.capsule, label %attach, label %failed.array
attach:
  %attached = call i32 @PyArray_SetBaseObject(ptr %array, ptr %capsule)
  %done = icmp eq i32 %attached, 0
  br i1 %done, label %finish, label %failed.base
finish:
  ret ptr %array
failed.base:
  call void @Py_DecRef(ptr %array)
  ret ptr null
failed.array:
  call void @Py_DecRef(ptr %array)
  br label %failed
failed:
  call void @decref(ptr %object)
  ret ptr null
}

; Whether an object is a tuple of so many fields, each fresh or an argument.
define internal i1 @is_plain_tuple(ptr %object, i64 %fields, ptr %first, i64 %count, ptr %args) {
  %kind.at = getelementptr i8, ptr %object, i64 8
  %kind = load i32, ptr %kind.at
  %is.tuple = icmp eq i32 %kind, 2
  br i1 %is.tuple, label %measure, label %no
measure:
  %length.at = getelementptr i8, ptr %object, i64 24
  %length = load i64, ptr %length.at
  %right = icmp eq i64 %length, %fields
  %items = getelementptr i8, ptr %object, i64 32
  br i1 %right, label %next, label %no
next:
  %i = phi i64 [ 0, %measure ], [ %i.next, %good ]
  %more = icmp slt i64 %i, %fields
  br i1 %more, label %look, label %yes
look:
  %item.at = getelementptr ptr, ptr %items, i64 %i
  %item = load ptr, ptr %item.at
  %original = call ptr @argument_of(ptr %item, ptr %first, i64 %count, ptr %args)
  %given = icmp ne ptr %original, null
  br i1 %given, label %good, label %check
check:
  %fresh = call i1 @is_fresh(ptr %item)
  br i1 %fresh, label %good, label %no
good:
  %i.next = add i64 %i, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; The Python tuple of a native one that `is_plain_tuple`; the native one stays the caller's.
define internal ptr @wrap_tuple(ptr %object, i64 %fields, ptr %dtypes, ptr %ndarray,
                                ptr %first, i64 %count, ptr %args) {
  %items = getelementptr i8, ptr %object, i64 32
  %tuple = call ptr @PyTuple_New(i64 %fields)
  %made = icmp ne ptr %tuple, null
  br i1 %made, label %next, label %failed
next:
  %i = phi i64 [ 0, %0 ], [ %i.next, %put ]
  %more = icmp slt i64 %i, %fields
  br i1 %more, label %look, label %done
look:
  %item.at = getelementptr ptr, ptr %items, i64 %i
  %item = load ptr, ptr %item.at
  %original = call ptr @argument_of(ptr %item, ptr %first, i64 %count, ptr %args)
  %given = icmp ne ptr %original, null
  br i1 %given, label %share, label %new
share:
  call void @Py_IncRef(ptr %original)
  br label %put
new:
  call void @incref(ptr %item)
  %dtype.at = getelementptr ptr, ptr %dtypes, i64 %i
  %dtype = load ptr, ptr %dtype.at
  %array = call ptr @wrap(ptr %item, ptr %dtype, ptr %ndarray)
  %wrapped = icmp ne ptr %array, null
  br i1 %wrapped, label %put, label %undo
put:
  %value = phi ptr [ %original, %share ], [ %array, %new ]
  %set = call i32 @PyTuple_SetItem(ptr %tuple, i64 %i, ptr %value)
  %i.next = add i64 %i, 1
  br label %next
undo:
  call void @Py_DecRef(ptr %tuple)
  br label %failed
failed:
  ret ptr null
done:
  ret ptr %tuple
}

define ptr @fast_call(ptr %self, ptr %args, i64 %nargs, ptr %names) {
  %record = call ptr @PyLong_AsVoidPtr(ptr %self)
  %count.at = getelementptr i8, ptr %record, i64 8
  %count = load i64, ptr %count.at
  %right.count = icmp eq i64 %count, %nargs
  %closed.at = getelementptr i8, ptr %record, i64 72
  %closed = load i64, ptr %closed.at
  %active = load atomic i64, ptr @callbacks_active monotonic, align 8
  %busy = or i64 %closed, %active
  %open = icmp eq i64 %busy, 0
  %positional = icmp eq ptr %names, null
  %ready = and i1 %right.count, %open
  %start = and i1 %ready, %positional
  br i1 %start, label %prepare, label %python
prepare:
  %bytes.at = getelementptr i8, ptr %record, i64 32
  %bytes = load i64, ptr %bytes.at
  %memory = alloca i8, i64 %bytes, align 16
  %template.at = getelementptr i8, ptr %record, i64 24
  %template = load ptr, ptr %template.at
  %same = call ptr @memcpy(ptr %memory, ptr %template, i64 %bytes)
  %plan.at = getelementptr i8, ptr %record, i64 16
  %plan = load ptr, ptr %plan.at
  %ndarray.at = getelementptr i8, ptr %record, i64 40
  %ndarray = load ptr, ptr %ndarray.at
  %taken = call i64 @bind_arrays(ptr %plan, i64 %count, ptr %args, ptr %memory, ptr %ndarray)
  %bound = icmp eq i64 %taken, 1
  br i1 %bound, label %point, label %python
point:
  %first.at = getelementptr i8, ptr %record, i64 80
  %first.offset = load i64, ptr %first.at
  %first = getelementptr i8, ptr %memory, i64 %first.offset
  br label %next
next:
  %i = phi i64 [ 0, %point ], [ %i.next, %header ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %header, label %enter
header:
  %row = getelementptr { i64, i64, ptr }, ptr %plan, i64 %i
  %offset = load i64, ptr %row
  %header.at = getelementptr i8, ptr %memory, i64 %offset
  %argument.at = getelementptr ptr, ptr %first, i64 %i
  store ptr %header.at, ptr %argument.at
  %i.next = add i64 %i, 1
  br label %next
enter:
  %result.offset.at = getelementptr i8, ptr %record, i64 88
  %result.offset = load i64, ptr %result.offset.at
  %result.at = getelementptr i8, ptr %memory, i64 %result.offset
  %code = load ptr, ptr %record
  %thread = call ptr @PyEval_SaveThread()
  %status = call i32 %code(ptr %memory, ptr %first, ptr %result.at)
  call void @PyEval_RestoreThread(ptr %thread)
  %result = load ptr, ptr %result.at
  %good = icmp eq i32 %status, 0
  br i1 %good, label %look, label %give.up
look:
  %dtypes.at = getelementptr i8, ptr %record, i64 64
  %dtypes = load ptr, ptr %dtypes.at
  %fields.at = getelementptr i8, ptr %record, i64 96
  %fields = load i64, ptr %fields.at
  %alone = icmp slt i64 %fields, 0
  br i1 %alone, label %tensor, label %tuple
tensor:
  %original = call ptr @argument_of(ptr %result, ptr %first, i64 %count, ptr %args)
  %given = icmp ne ptr %original, null
  br i1 %given, label %argument, label %check
argument:
  call void @Py_IncRef(ptr %original)
  ret ptr %original
check:
  %fresh = call i1 @is_fresh(ptr %result)
  br i1 %fresh, label %one, label %close
one:
  %dtype = load ptr, ptr %dtypes
  %array = call ptr @wrap(ptr %result, ptr %dtype, ptr %ndarray)
  ret ptr %array
tuple:
  %plain = call i1 @is_plain_tuple(ptr %result, i64 %fields, ptr %first, i64 %count, ptr %args)
  br i1 %plain, label %several, label %close
several:
  %all = call ptr @wrap_tuple(ptr %result, i64 %fields, ptr %dtypes, ptr %ndarray, ptr %first, i64 %count, ptr %args)
  call void @decref(ptr %result)
  ret ptr %all
close:
  store i64 1, ptr %closed.at
  br label %give.up
give.up:
  call void @decref(ptr %result)
  br label %python
python:
  %answer = call ptr @through_python(ptr %record, ptr %args, i64 %nargs, ptr %names)
  ret ptr %answer
}
"""
