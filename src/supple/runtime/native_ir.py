"""The runtime's native part as LLVM IR: objects, reference counts, the pool of arenas. Layouts are in ``abi``.

Only ``malloc``, ``free`` and ``memset`` come from outside. The library is never unloaded: deleters point into it.
"""

from __future__ import annotations

RUNTIME_IR = r"""
declare ptr @malloc(i64)
declare void @free(ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

@live_objects = global i64 0
@callbacks_active = global i64 0   ; calls from compiled code into Python that are running
@live_arenas = global i64 0
@arena_lock = internal global i32 0
@arena_clock = internal global i64 0
@arena_kept = internal global i64 0
@arena_slots = internal global [16 x { ptr, i64, i64 }] zeroinitializer   ; memory, bytes, clock when it was put back

; ---------------------------------------------------------------------------------------------------- reference counts

define void @incref(ptr %object) {
  %none = icmp eq ptr %object, null
  br i1 %none, label %done, label %count
count:
  %old = atomicrmw add ptr %object, i64 1 monotonic
  br label %done
done:
  ret void
}

; When the last reference goes, the object's parts are given up as well. There is no recursion, since chains of objects
; can be long: dead objects wait in a list, linked through the fields that held their counts.
define void @decref(ptr %object) {
  %none = icmp eq ptr %object, null
  br i1 %none, label %done, label %count
count:
  %old = atomicrmw sub ptr %object, i64 1 acq_rel
  %last = icmp eq i64 %old, 1
  br i1 %last, label %first, label %done
first:
  store ptr null, ptr %object
  br label %destroy
destroy:
  %dead = phi ptr [ %object, %first ], [ %rest, %follow ]
  %others = load ptr, ptr %dead
  %kind.at = getelementptr i8, ptr %dead, i64 8
  %kind = load i32, ptr %kind.at
  %length.at = getelementptr i8, ptr %dead, i64 24
  switch i32 %kind, label %parts [ i32 1, label %tensor
                                   i32 2, label %tuple
                                   i32 7, label %closure ]
tensor:
  br label %parts
tuple:
  %fields = load i64, ptr %length.at
  br label %parts
closure:
  %captured = load i64, ptr %length.at
  br label %parts
parts:
  %count.of = phi i64 [ 0, %destroy ], [ 1, %tensor ], [ %fields, %tuple ], [ %captured, %closure ]
  %offset = phi i64 [ 32, %destroy ], [ 32, %tensor ], [ 32, %tuple ], [ 48, %closure ]
  %base = getelementptr i8, ptr %dead, i64 %offset
  br label %next
next:
  %i = phi i64 [ 0, %parts ], [ %i.next, %step ]
  %list = phi ptr [ %others, %parts ], [ %list.next, %step ]
  %more = icmp slt i64 %i, %count.of
  br i1 %more, label %part, label %delete
part:
  %part.at = getelementptr ptr, ptr %base, i64 %i
  %value = load ptr, ptr %part.at
  %absent = icmp eq ptr %value, null
  br i1 %absent, label %step, label %give
give:
  %before = atomicrmw sub ptr %value, i64 1 acq_rel
  %gone = icmp eq i64 %before, 1
  br i1 %gone, label %push, label %step
push:
  store ptr %list, ptr %value
  br label %step
step:
  %list.next = phi ptr [ %list, %part ], [ %list, %give ], [ %value, %push ]
  %i.next = add i64 %i, 1
  br label %next
delete:
  %deleter.at = getelementptr i8, ptr %dead, i64 16
  %deleter = load ptr, ptr %deleter.at
  %kept = icmp eq ptr %deleter, null
  br i1 %kept, label %follow, label %run
run:
  call void %deleter(ptr %dead)
  br label %follow
follow:
  %rest = phi ptr [ %list, %delete ], [ %list, %run ]
  %finished = icmp eq ptr %rest, null
  br i1 %finished, label %done, label %destroy
done:
  ret void
}

define void @free_object(ptr %object) {
  %old = atomicrmw sub ptr @live_objects, i64 1 monotonic
  call void @free(ptr %object)
  ret void
}

; ------------------------------------------------------------------------------------------------------------- objects

define internal ptr @object_new(i64 %bytes, i32 %kind, i32 %code) {
  %object = call ptr @malloc(i64 %bytes)
  %none = icmp eq ptr %object, null
  br i1 %none, label %done, label %fill
fill:
  store i64 1, ptr %object
  %kind.at = getelementptr i8, ptr %object, i64 8
  store i32 %kind, ptr %kind.at
  %code.at = getelementptr i8, ptr %object, i64 12
  store i32 %code, ptr %code.at
  %deleter.at = getelementptr i8, ptr %object, i64 16
  store ptr @free_object, ptr %deleter.at
  %old = atomicrmw add ptr @live_objects, i64 1 monotonic
  br label %done
done:
  ret ptr %object
}

; A tensor's elements follow its header, or lie in a block that is kept for the next tensor of about that size: memory
; that goes back to the system comes again page by page, each filled with zeros.
define ptr @tensor_new(i64 %ndim, i32 %code, i64 %nbytes) {
  %dims = mul i64 %ndim, 8
  %header = add i64 %dims, 64
  %large = icmp uge i64 %nbytes, 131072
  br i1 %large, label %apart, label %together
together:
  %slack = add i64 %header, 64
  %total = add i64 %slack, %nbytes
  %whole = call ptr @object_new(i64 %total, i32 1, i32 %code)
  %whole.none = icmp eq ptr %whole, null
  br i1 %whole.none, label %fail, label %behind
behind:
  %address = ptrtoint ptr %whole to i64
  %end = add i64 %address, %header
  %end.up = add i64 %end, 63
  %aligned = and i64 %end.up, -64
  %offset = sub i64 %aligned, %address
  %own = getelementptr i8, ptr %whole, i64 %offset
  br label %fill
apart:
  %block = call ptr @block_get(i64 %nbytes)
  %block.none = icmp eq ptr %block, null
  br i1 %block.none, label %fail, label %head
head:
  %object.apart = call ptr @object_new(i64 %header, i32 1, i32 %code)
  %head.none = icmp eq ptr %object.apart, null
  br i1 %head.none, label %undo, label %keep
undo:
  call void @block_put(ptr %block)
  br label %fail
keep:
  %deleter.at = getelementptr i8, ptr %object.apart, i64 16
  store ptr @free_tensor_apart, ptr %deleter.at
  br label %fill
fill:
  %object = phi ptr [ %whole, %behind ], [ %object.apart, %keep ]
  %data = phi ptr [ %own, %behind ], [ %block, %keep ]
  %data.at = getelementptr i8, ptr %object, i64 24
  store ptr %data, ptr %data.at
  %owner.at = getelementptr i8, ptr %object, i64 32
  store ptr null, ptr %owner.at
  %ndim.at = getelementptr i8, ptr %object, i64 40
  store i64 %ndim, ptr %ndim.at
  %nbytes.at = getelementptr i8, ptr %object, i64 48
  store i64 %nbytes, ptr %nbytes.at
  %flags.at = getelementptr i8, ptr %object, i64 56
  store i64 1, ptr %flags.at
  ret ptr %object
fail:
  ret ptr null
}

define internal void @free_tensor_apart(ptr %object) {
  %data.at = getelementptr i8, ptr %object, i64 24
  %data = load ptr, ptr %data.at
  call void @block_put(ptr %data)
  call void @free_object(ptr %object)
  ret void
}

define ptr @tensor_view(i64 %ndim, i32 %code, i64 %nbytes, ptr %data, ptr %owner) {
  %dims = mul i64 %ndim, 8
  %header = add i64 %dims, 64
  %object = call ptr @object_new(i64 %header, i32 1, i32 %code)
  %none = icmp eq ptr %object, null
  br i1 %none, label %done, label %fill
fill:
  %flags.at = getelementptr i8, ptr %object, i64 56
  store i64 0, ptr %flags.at
  call void @incref(ptr %owner)
  %own = icmp eq ptr %owner, null
  br i1 %own, label %view, label %inherit
inherit:
  %owner.flags.at = getelementptr i8, ptr %owner, i64 56
  %owner.flags = load i64, ptr %owner.flags.at
  store i64 %owner.flags, ptr %flags.at
  br label %view
view:
  %data.at = getelementptr i8, ptr %object, i64 24
  store ptr %data, ptr %data.at
  %owner.at = getelementptr i8, ptr %object, i64 32
  store ptr %owner, ptr %owner.at
  %ndim.at = getelementptr i8, ptr %object, i64 40
  store i64 %ndim, ptr %ndim.at
  %nbytes.at = getelementptr i8, ptr %object, i64 48
  store i64 %nbytes, ptr %nbytes.at
  br label %done
done:
  ret ptr %object
}

define internal ptr @list_new(i64 %length, i32 %kind) {
  %items = mul i64 %length, 8
  %bytes = add i64 %items, 32
  %object = call ptr @object_new(i64 %bytes, i32 %kind, i32 0)
  %none = icmp eq ptr %object, null
  br i1 %none, label %done, label %fill
fill:
  %length.at = getelementptr i8, ptr %object, i64 24
  store i64 %length, ptr %length.at
  %first = getelementptr i8, ptr %object, i64 32
  call void @llvm.memset.p0.i64(ptr %first, i8 0, i64 %items, i1 false)
  br label %done
done:
  ret ptr %object
}

define ptr @tuple_new(i64 %length) {
  %object = call ptr @list_new(i64 %length, i32 2)
  ret ptr %object
}

define ptr @shape_new(i64 %length) {
  %object = call ptr @list_new(i64 %length, i32 3)
  ret ptr %object
}

; captured values are left null
define ptr @closure_new(i64 %length, ptr %code, i64 %params, i32 %index) {
  %items = mul i64 %length, 8
  %bytes = add i64 %items, 48
  %object = call ptr @object_new(i64 %bytes, i32 7, i32 %index)
  %none = icmp eq ptr %object, null
  br i1 %none, label %done, label %fill
fill:
  %length.at = getelementptr i8, ptr %object, i64 24
  store i64 %length, ptr %length.at
  %code.at = getelementptr i8, ptr %object, i64 32
  store ptr %code, ptr %code.at
  %params.at = getelementptr i8, ptr %object, i64 40
  store i64 %params, ptr %params.at
  %first = getelementptr i8, ptr %object, i64 48
  call void @llvm.memset.p0.i64(ptr %first, i8 0, i64 %items, i1 false)
  br label %done
done:
  ret ptr %object
}

define ptr @closure_extend(ptr %closure, i64 %more) {
  %index.at = getelementptr i8, ptr %closure, i64 12
  %index = load i32, ptr %index.at
  %length.at = getelementptr i8, ptr %closure, i64 24
  %length = load i64, ptr %length.at
  %code.at = getelementptr i8, ptr %closure, i64 32
  %code = load ptr, ptr %code.at
  %params.at = getelementptr i8, ptr %closure, i64 40
  %params = load i64, ptr %params.at
  %total = add i64 %length, %more
  %object = call ptr @closure_new(i64 %total, ptr %code, i64 %params, i32 %index)
  %none = icmp eq ptr %object, null
  br i1 %none, label %done, label %fill
fill:
  %from = getelementptr i8, ptr %closure, i64 48
  %to = getelementptr i8, ptr %object, i64 48
  br label %next
next:
  %i = phi i64 [ 0, %fill ], [ %i.next, %copy ]
  %left = icmp slt i64 %i, %length
  br i1 %left, label %copy, label %done
copy:
  %from.at = getelementptr ptr, ptr %from, i64 %i
  %value = load ptr, ptr %from.at
  call void @incref(ptr %value)
  %to.at = getelementptr ptr, ptr %to, i64 %i
  store ptr %value, ptr %to.at
  %i.next = add i64 %i, 1
  br label %next
done:
  ret ptr %object
}

define ptr @int_new(i64 %value, i32 %code) {
  %object = call ptr @object_new(i64 32, i32 4, i32 %code)
  %none = icmp eq ptr %object, null
  br i1 %none, label %done, label %fill
fill:
  %value.at = getelementptr i8, ptr %object, i64 24
  store i64 %value, ptr %value.at
  br label %done
done:
  ret ptr %object
}

define ptr @float_new(double %value, i32 %code) {
  %object = call ptr @object_new(i64 32, i32 5, i32 %code)
  %none = icmp eq ptr %object, null
  br i1 %none, label %done, label %fill
fill:
  %value.at = getelementptr i8, ptr %object, i64 24
  store double %value, ptr %value.at
  br label %done
done:
  ret ptr %object
}

; an object that Python keeps: the deleter calls back into Python
define ptr @python_new(ptr %deleter) {
  %object = call ptr @object_new(i64 32, i32 6, i32 0)
  %none = icmp eq ptr %object, null
  br i1 %none, label %done, label %fill
fill:
  %deleter.at = getelementptr i8, ptr %object, i64 16
  store ptr %deleter, ptr %deleter.at
  br label %done
done:
  ret ptr %object
}

; ----------------------------------------------------------------------------------------------------------- entering

; Copies data and dims of numpy arrays into tensor headers. `plan` has {header offset, ndim, dtype object} a parameter.
; Returns 1 if every object is an ndarray (not a subclass) of that very dtype and rank, compact and aligned, else 0.
; The offsets into numpy's objects are checked when the library is loaded.
define i64 @bind_arrays(ptr %plan, i64 %count, ptr %objects, ptr %memory, ptr %ndarray) {
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %i.next, %bound ]
  %more = icmp slt i64 %i, %count
  br i1 %more, label %look, label %all
look:
  %object.at = getelementptr ptr, ptr %objects, i64 %i
  %object = load ptr, ptr %object.at
  %row = getelementptr { i64, i64, ptr }, ptr %plan, i64 %i
  %type.at = getelementptr i8, ptr %object, i64 8
  %type = load ptr, ptr %type.at
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %array, label %other
array:
  %dtype.at = getelementptr i8, ptr %object, i64 56
  %dtype = load ptr, ptr %dtype.at
  %wanted.at = getelementptr i8, ptr %row, i64 16
  %wanted = load ptr, ptr %wanted.at
  %a = icmp eq ptr %dtype, %wanted
  %nd.at = getelementptr i8, ptr %object, i64 24
  %nd = load i32, ptr %nd.at
  %nd.wide = sext i32 %nd to i64
  %rank.at = getelementptr i8, ptr %row, i64 8
  %rank = load i64, ptr %rank.at
  %b = icmp eq i64 %nd.wide, %rank
  %flags.at = getelementptr i8, ptr %object, i64 64
  %flags = load i32, ptr %flags.at
  %bits = and i32 %flags, 257
  %c = icmp eq i32 %bits, 257
  %ab = and i1 %a, %b
  %good = and i1 %ab, %c
  br i1 %good, label %bind, label %other
bind:
  %offset = load i64, ptr %row
  %header = getelementptr i8, ptr %memory, i64 %offset
  %data.from = getelementptr i8, ptr %object, i64 16
  %data = load ptr, ptr %data.from
  %data.to = getelementptr i8, ptr %header, i64 24
  store ptr %data, ptr %data.to
  %dims.from = getelementptr i8, ptr %object, i64 32
  %dims = load ptr, ptr %dims.from
  %dims.to = getelementptr i8, ptr %header, i64 64
  br label %dim
dim:
  %d = phi i64 [ 0, %bind ], [ %d.next, %copy ]
  %d.more = icmp slt i64 %d, %rank
  br i1 %d.more, label %copy, label %bound
copy:
  %size.at = getelementptr i64, ptr %dims, i64 %d
  %size = load i64, ptr %size.at
  %to.at = getelementptr i64, ptr %dims.to, i64 %d
  store i64 %size, ptr %to.at
  %d.next = add i64 %d, 1
  br label %dim
bound:
  %i.next = add i64 %i, 1
  br label %next
all:
  ret i64 1
other:
  ret i64 0
}

; What Python wants to know of a result that is a tensor of at most 8 dimensions, beside the pointer to it.
define void @describe(ptr %result) {
  %object = load ptr, ptr %result
  %kind.at = getelementptr i8, ptr %object, i64 8
  %kind = load i64, ptr %kind.at
  %kind.to = getelementptr i8, ptr %result, i64 8
  store i64 %kind, ptr %kind.to
  %kind.low = trunc i64 %kind to i32
  %tensor = icmp eq i32 %kind.low, 1
  br i1 %tensor, label %fill, label %done
fill:
  %data.at = getelementptr i8, ptr %object, i64 24
  %data = load ptr, ptr %data.at
  %data.to = getelementptr i8, ptr %result, i64 16
  store ptr %data, ptr %data.to
  %owner.at = getelementptr i8, ptr %object, i64 32
  %owner = load ptr, ptr %owner.at
  %owner.to = getelementptr i8, ptr %result, i64 24
  store ptr %owner, ptr %owner.to
  %ndim.at = getelementptr i8, ptr %object, i64 40
  %ndim = load i64, ptr %ndim.at
  %ndim.to = getelementptr i8, ptr %result, i64 32
  store i64 %ndim, ptr %ndim.to
  %few = icmp sle i64 %ndim, 8
  br i1 %few, label %dim, label %done
dim:
  %d = phi i64 [ 0, %fill ], [ %d.next, %copy ]
  %more = icmp slt i64 %d, %ndim
  br i1 %more, label %copy, label %done
copy:
  %from = getelementptr i8, ptr %object, i64 64
  %from.at = getelementptr i64, ptr %from, i64 %d
  %size = load i64, ptr %from.at
  %to = getelementptr i8, ptr %result, i64 40
  %to.at = getelementptr i64, ptr %to, i64 %d
  store i64 %size, ptr %to.at
  %d.next = add i64 %d, 1
  br label %dim
done:
  ret void
}

; -------------------------------------------------------------------------------------------------------------- arenas
; An arena is taken by one activation, or for the elements of a large tensor, and put back. At most 16 are kept, 1 GiB
; in all, and one that was not taken during 64 returns is freed. Nobody waits for the lock: who does not get it at once
; allocates or frees directly.

define ptr @arena_get(i64 %bytes) {
  ; from half a large page on: whole large pages, less the header
  %large = icmp uge i64 %bytes, 1048576
  %fits = icmp ult i64 %bytes, 4611686018427387904
  %rounds = and i1 %large, %fits
  %up = add i64 %bytes, 2097215
  %pages = and i64 %up, -2097152
  %whole = sub i64 %pages, 64
  %size = select i1 %rounds, i64 %whole, i64 %bytes
  %spare = add i64 %bytes, 65536
  %less = shl i64 %spare, 2
  %more = icmp ugt i64 %less, %size
  %most = select i1 %more, i64 %less, i64 %size
  %arena = call ptr @arena_take(i64 %size, i64 %most, i64 1048576)
  ret ptr %arena
}

; the elements of a tensor, which may live long: hardly more than is needed
define internal ptr @block_get(i64 %bytes) {
  %quarter = lshr i64 %bytes, 2
  %most = add i64 %bytes, %quarter
  %block = call ptr @arena_take(i64 %bytes, i64 %most, i64 4194304)
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %count
count:
  %live = atomicrmw sub ptr @live_arenas, i64 1 monotonic   ; the tensor is counted
  br label %done
done:
  ret ptr %block
}

define internal void @block_put(ptr %block) {
  %live = atomicrmw add ptr @live_arenas, i64 1 monotonic
  call void @arena_put(ptr %block)
  ret void
}

; memory of at least some bytes, and at most some others; that of many bytes begins with a large page
define internal ptr @arena_take(i64 %bytes, i64 %most, i64 %many) {
  %got = cmpxchg ptr @arena_lock, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %got, 1
  br i1 %mine, label %search, label %fresh
search:
  br label %next
next:
  %i = phi i64 [ 0, %search ], [ %i.next, %step ]
  %best = phi i64 [ -1, %search ], [ %best.next, %step ]
  %best.size = phi i64 [ 9223372036854775807, %search ], [ %size.next, %step ]
  %more = icmp slt i64 %i, 16
  br i1 %more, label %look, label %choose
look:
  %slot = getelementptr { ptr, i64, i64 }, ptr @arena_slots, i64 %i
  %memory = load ptr, ptr %slot
  %used = icmp ne ptr %memory, null
  %size.at = getelementptr i8, ptr %slot, i64 8
  %size = load i64, ptr %size.at
  %enough = icmp uge i64 %size, %bytes
  %smaller = icmp ult i64 %size, %best.size
  %near = icmp ule i64 %size, %most
  %a = and i1 %used, %enough
  %b = and i1 %smaller, %near
  %better = and i1 %a, %b
  br label %step
step:
  %best.next = select i1 %better, i64 %i, i64 %best
  %size.next = select i1 %better, i64 %size, i64 %best.size
  %i.next = add i64 %i, 1
  br label %next
choose:
  %found = icmp sge i64 %best, 0
  br i1 %found, label %take, label %unlock
take:
  %taken.slot = getelementptr { ptr, i64, i64 }, ptr @arena_slots, i64 %best
  %taken = load ptr, ptr %taken.slot
  store ptr null, ptr %taken.slot
  %kept = load i64, ptr @arena_kept
  %kept.less = sub i64 %kept, %best.size
  store i64 %kept.less, ptr @arena_kept
  store atomic i32 0, ptr @arena_lock release, align 4
  %live.taken = atomicrmw add ptr @live_arenas, i64 1 monotonic
  ret ptr %taken
unlock:
  store atomic i32 0, ptr @arena_lock release, align 4
  br label %fresh
fresh:
  %fits = icmp ult i64 %bytes, 4611686018427387904
  br i1 %fits, label %allocate, label %fail
allocate:
  %large = icmp uge i64 %bytes, %many
  %align = select i1 %large, i64 2097152, i64 64
  %total = add i64 %bytes, 64
  %room = add i64 %total, %align
  %base = call ptr @malloc(i64 %room)
  %none = icmp eq ptr %base, null
  br i1 %none, label %fail, label %begin
begin:
  %address = ptrtoint ptr %base to i64
  %last = sub i64 %align, 1
  %up = add i64 %address, %last
  %mask = sub i64 0, %align
  %aligned = and i64 %up, %mask
  %offset = sub i64 %aligned, %address
  %first = getelementptr i8, ptr %base, i64 %offset
  br i1 %large, label %ask, label %head
ask:
  call void @use_large_pages(ptr %first, i64 %total)
  br label %head
head:
  %arena = getelementptr i8, ptr %first, i64 64
  %base.at = getelementptr i8, ptr %arena, i64 -16
  store ptr %base, ptr %base.at
  %bytes.at = getelementptr i8, ptr %arena, i64 -8
  store i64 %bytes, ptr %bytes.at
  %live = atomicrmw add ptr @live_arenas, i64 1 monotonic
  ret ptr %arena
fail:
  ret ptr null
}

define internal void @arena_free(ptr %arena) {
  %base.at = getelementptr i8, ptr %arena, i64 -16
  %base = load ptr, ptr %base.at
  call void @free(ptr %base)
  ret void
}

define void @arena_put(ptr %arena) {
  %none = icmp eq ptr %arena, null
  br i1 %none, label %done, label %count
count:
  %live = atomicrmw sub ptr @live_arenas, i64 1 monotonic
  %bytes.at = getelementptr i8, ptr %arena, i64 -8
  %bytes = load i64, ptr %bytes.at
  %got = cmpxchg ptr @arena_lock, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %got, 1
  br i1 %mine, label %search, label %drop
search:
  %clock.old = load i64, ptr @arena_clock
  %clock = add i64 %clock.old, 1
  store i64 %clock, ptr @arena_clock
  br label %next
next:
  %i = phi i64 [ 0, %search ], [ %i.next, %step ]
  %empty = phi i64 [ -1, %search ], [ %empty.next, %step ]
  %expired = phi i64 [ -1, %search ], [ %expired.next, %step ]
  %more = icmp slt i64 %i, 16
  br i1 %more, label %step, label %expire
step:
  %slot = getelementptr { ptr, i64, i64 }, ptr @arena_slots, i64 %i
  %memory = load ptr, ptr %slot
  %free.slot = icmp eq ptr %memory, null
  %stamp.at = getelementptr i8, ptr %slot, i64 16
  %stamp = load i64, ptr %stamp.at
  %age = sub i64 %clock, %stamp
  %old = icmp sgt i64 %age, 64
  %used = xor i1 %free.slot, true
  %stale = and i1 %old, %used
  %empty.next = select i1 %free.slot, i64 %i, i64 %empty
  %expired.next = select i1 %stale, i64 %i, i64 %expired
  %i.next = add i64 %i, 1
  br label %next
expire:
  %has.expired = icmp sge i64 %expired, 0
  br i1 %has.expired, label %evict, label %keep
evict:
  %expired.slot = getelementptr { ptr, i64, i64 }, ptr @arena_slots, i64 %expired
  %expired.memory = load ptr, ptr %expired.slot
  %expired.size.at = getelementptr i8, ptr %expired.slot, i64 8
  %expired.size = load i64, ptr %expired.size.at
  store ptr null, ptr %expired.slot
  %kept.e = load i64, ptr @arena_kept
  %kept.e2 = sub i64 %kept.e, %expired.size
  store i64 %kept.e2, ptr @arena_kept
  br label %keep
keep:
  %evicted = phi ptr [ null, %expire ], [ %expired.memory, %evict ]
  %place = phi i64 [ %empty, %expire ], [ %expired, %evict ]
  %has.place = icmp sge i64 %place, 0
  %kept = load i64, ptr @arena_kept
  %kept.more = add i64 %kept, %bytes
  %within = icmp ule i64 %kept.more, 1073741824
  %keeps = and i1 %has.place, %within
  br i1 %keeps, label %store, label %unlock
store:
  %put.slot = getelementptr { ptr, i64, i64 }, ptr @arena_slots, i64 %place
  store ptr %arena, ptr %put.slot
  %put.size.at = getelementptr i8, ptr %put.slot, i64 8
  store i64 %bytes, ptr %put.size.at
  %put.stamp.at = getelementptr i8, ptr %put.slot, i64 16
  store i64 %clock, ptr %put.stamp.at
  store i64 %kept.more, ptr @arena_kept
  br label %unlock
unlock:
  store atomic i32 0, ptr @arena_lock release, align 4
  %has.evicted = icmp ne ptr %evicted, null
  br i1 %has.evicted, label %free.evicted, label %rest
free.evicted:
  call void @arena_free(ptr %evicted)
  br label %rest
rest:
  br i1 %keeps, label %done, label %drop
drop:
  call void @arena_free(ptr %arena)
  br label %done
done:
  ret void
}

; frees every kept arena; returns how many
define i64 @arena_trim() {
  %got = cmpxchg ptr @arena_lock, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %got, 1
  br i1 %mine, label %start, label %none
start:
  br label %next
next:
  %i = phi i64 [ 0, %start ], [ %i.next, %step.end ]
  %freed = phi i64 [ 0, %start ], [ %freed.next, %step.end ]
  %more = icmp slt i64 %i, 16
  br i1 %more, label %step, label %unlock
step:
  %slot = getelementptr { ptr, i64, i64 }, ptr @arena_slots, i64 %i
  %memory = load ptr, ptr %slot
  %used = icmp ne ptr %memory, null
  br i1 %used, label %release, label %step.end
release:
  call void @arena_free(ptr %memory)
  store ptr null, ptr %slot
  br label %step.end
step.end:
  %one = zext i1 %used to i64
  %freed.next = add i64 %freed, %one
  %i.next = add i64 %i, 1
  br label %next
unlock:
  store i64 0, ptr @arena_kept
  store atomic i32 0, ptr @arena_lock release, align 4
  ret i64 %freed
none:
  ret i64 0
}
"""
