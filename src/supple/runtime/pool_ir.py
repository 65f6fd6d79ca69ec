"""The pool of threads as LLVM IR. ``pool`` is its face in Python; ``docs/architecture.md`` ("Threads") tells the story.

Every worker has a slot ``{i32 ticket, i32 parked}``, a cache line of its own. To run a job the caller takes the pool's
lock, writes the job down, and sets the ticket of each worker it wants. A worker that changes its ticket from 1 to 0
takes part: like the caller it takes the next chunk from a counter until none is left. There are a few chunks a thread,
so a worker that comes late (it was asleep, or the machine is busy) does less and the caller more; tickets that are not
taken when no chunk is left the caller takes back. So the caller never waits for a worker to wake up, only for chunks
that are running. The job stays as it is until all who take part are done, and a ticket that was taken belongs to the
job that is written down now, however late the taker is.

A worker without work looks at its ticket for a while, then says so in ``parked`` and sleeps on the ticket; who sets a
ticket looks at ``parked`` afterwards. Both are sequentially consistent, so one of the two sees the other. The caller
waits for the last chunks in the same way. After 0.1 ms both let other threads of the machine go first.
A worker that was last seen on the caller's processor, or sleeps, is kept off that processor.
``tests/test_threads.py`` checks all interleavings of this protocol.

When a chunk fails, what it reported is kept if no chunk before it has failed, and chunks after it stop early: the
error is the one that a single thread would meet first, whatever the number of threads. The first word of the
environment is where the first chunk that failed begins.
"""

from __future__ import annotations

from supple.runtime.platforms import PoolPlatform

MOST_THREADS = 256
"""The most threads that work together."""

_SHARED = """
@pool_limit = global i32 1       ; how many threads may work together
@pool_workers = global i32 0     ; threads that exist beside the callers
@pool_jobs = global i64 0        ; jobs that were shared among threads
@pool_spin = global i64 1500000  ; nanoseconds that a worker looks for work before it sleeps
"""

SERIAL_IR = (
    _SHARED
    + r"""
define internal void @use_large_pages(ptr %memory, i64 %bytes) {
  ret void
}

define i32 @parallel(ptr %ctx, ptr %body, ptr %env, i64 %extent, i64 %scratch, ptr %workspace, i64 %most, i64 %each) {
  %status = call i32 %body(ptr %ctx, ptr %env, i64 0, i64 %extent, ptr %workspace)
  ret i32 %status
}
"""
)
"""Where the platform has no pool: the caller does everything."""

_THREADED_IR = r"""
declare i64 @syscall(i64, ...)
declare i32 @clock_gettime(i32, ptr)
declare i32 @sched_yield()
declare i32 @madvise(ptr, i64, i32)
declare i32 @sched_getcpu()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i32 @sched_setaffinity(i32, i64, ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

@pool_lock = internal global i32 0, align 128
@pool_slots = internal global [SLOTS x [128 x i8]] zeroinitializer, align 128
; a slot: {i32 ticket, i32 parked, i32 thread, i32 processor where it was last, i32 processor where it may not be}, both
; processors plus 1

; the job: written by the caller before it sets tickets, unchanged until @job_pending is 0
@job_ctx = internal global ptr null, align 128
@job_body = internal global ptr null
@job_env = internal global ptr null
@job_extent = internal global i64 0
@job_chunks = internal global i64 0
@job_scratch = internal global i64 0
@job_next = internal global i64 0, align 128       ; the next chunk that nobody has taken
@job_pending = internal global i32 0, align 128    ; workers that are asked and not done
@job_waits = internal global i32 0                 ; the caller sleeps, or is about to
@job_error_lock = internal global i32 0, align 128
@job_status = internal global i32 0

; Where the system gives large pages to who asks (Linux), a block that fills some asks for them.
define internal void @use_large_pages(ptr %memory, i64 %bytes) {
  %address = ptrtoint ptr %memory to i64
  %up = add i64 %address, 4095
  %first = and i64 %up, -4096
  %end = add i64 %address, %bytes
  %length = sub i64 %end, %first
  %whole = and i64 %length, -4096
  %page = inttoptr i64 %first to ptr
  %ignored = call i32 @madvise(ptr %page, i64 %whole, i32 14)
  ret void
}

define internal i64 @pool_now() {
  %time = alloca { i64, i64 }
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i8, ptr %time, i64 8
  %rest = load i64, ptr %rest.at
  %nano = mul i64 %seconds, 1000000000
  %all = add i64 %nano, %rest
  ret i64 %all
}

; sleeps while the word holds the value; may return early
define internal void @pool_sleep(ptr %word, i32 %value) {
  %ignored = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %word, i32 128, i32 %value, ptr null, ptr null, i32 0)
  ret void
}

define internal void @pool_wake(ptr %word) {
  %ignored = call i64 (i64, ...) @syscall(i64 FUTEX, ptr %word, i32 129, i32 1, ptr null, ptr null, i32 0)
  ret void
}

; Keeps a worker off the caller's processor, on which it would wait for the caller. The system places a thread that
; wakes up on an idle processor; where none is, it often chooses the one of the thread that woke it.
define internal void @pool_move(ptr %slot, i32 %processor) noinline {
  %mask = alloca [16 x i64], align 16
  %thread.at = getelementptr i8, ptr %slot, i64 8
  %thread = load atomic i32, ptr %thread.at monotonic, align 4
  %unknown = icmp eq i32 %thread, 0
  br i1 %unknown, label %done, label %get
get:
  %off.at = getelementptr i8, ptr %slot, i64 16
  store i32 %processor, ptr %off.at
  call void @llvm.memset.p0.i64(ptr %mask, i8 0, i64 128, i1 false)
  %failed = call i32 @sched_getaffinity(i32 0, i64 128, ptr %mask)
  %bad = icmp slt i32 %failed, 0
  %number = sub i32 %processor, 1
  %far = icmp uge i32 %number, 1024
  %no = or i1 %bad, %far
  br i1 %no, label %done, label %set
set:
  %wide = zext i32 %number to i64
  %word = lshr i64 %wide, 6
  %bit = and i64 %wide, 63
  %one = shl i64 1, %bit
  %others = xor i64 %one, -1
  %word.at = getelementptr i64, ptr %mask, i64 %word
  %before = load i64, ptr %word.at
  %after = and i64 %before, %others
  store i64 %after, ptr %word.at
  %ignored = call i32 @sched_setaffinity(i32 %thread, i64 128, ptr %mask)   ; fails where no other processor is left
  br label %done
done:
  ret void
}

define internal i64 @pool_begin(i64 %index) {
  %extent = load i64, ptr @job_extent
  %chunks = load i64, ptr @job_chunks
  %each = udiv i64 %extent, %chunks
  %rest = urem i64 %extent, %chunks
  %before = mul i64 %each, %index
  %fewer = icmp ult i64 %index, %rest
  %extra = select i1 %fewer, i64 %index, i64 %rest
  %begin = add i64 %before, %extra
  ret i64 %begin
}

; Runs chunks until none is left, with a context of its own. Without a workspace (on a worker) it gets one.
define internal void @pool_share(ptr %given) {
  %ctx = alloca [64 x i8], align 16
  %body = load ptr, ptr @job_body
  %env = load ptr, ptr @job_env
  %chunks = load i64, ptr @job_chunks
  %bytes = load i64, ptr @job_scratch
  %owns = icmp ne ptr %given, null
  %nothing = icmp eq i64 %bytes, 0
  %ready = or i1 %owns, %nothing
  br label %claim
claim:
  %own = phi ptr [ null, %0 ], [ %own.now, %run ]
  %index = atomicrmw add ptr @job_next, i64 1 monotonic
  %some = icmp ult i64 %index, %chunks
  br i1 %some, label %bounds, label %done
bounds:
  call void @llvm.memset.p0.i64(ptr align 16 %ctx, i8 0, i64 64, i1 false)
  %next = add i64 %index, 1
  %begin = call i64 @pool_begin(i64 %index)
  %end = call i64 @pool_begin(i64 %next)
  %has = icmp ne ptr %own, null
  %fine = or i1 %has, %ready
  br i1 %fine, label %enter, label %get
get:
  %got = call ptr @arena_get(i64 %bytes)
  %none = icmp eq ptr %got, null
  br i1 %none, label %failed, label %enter
enter:
  %own.now = phi ptr [ %own, %bounds ], [ %got, %get ]
  %workspace = select i1 %owns, ptr %given, ptr %own.now
  br label %run
run:
  %status = call i32 %body(ptr %ctx, ptr %env, i64 %begin, i64 %end, ptr %workspace)
  %good = icmp eq i32 %status, 0
  br i1 %good, label %claim, label %failed
failed:
  %why = phi i32 [ 4, %get ], [ %status, %run ]
  %held = phi ptr [ null, %get ], [ %own.now, %run ]
  br label %lock
lock:
  %taken = cmpxchg ptr @job_error_lock, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %taken, 1
  br i1 %mine, label %compare, label %again
again:
  PAUSE
  br label %lock
compare:
  %first = load atomic i64, ptr %env monotonic, align 8
  %earlier = icmp slt i64 %begin, %first
  br i1 %earlier, label %report, label %unlock
report:
  store atomic i64 %begin, ptr %env monotonic, align 8
  store i32 %why, ptr @job_status
  %to = load ptr, ptr @job_ctx
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %ctx, i64 56, i1 false)
  br label %unlock
unlock:
  store atomic i32 0, ptr @job_error_lock release, align 4
  br label %done
done:
  %left = phi ptr [ %own, %claim ], [ %held, %unlock ]
  call void @arena_put(ptr %left)
  ret void
}

; takes the ticket of a slot; false when somebody else has it, or none is set
define internal i1 @pool_take(ptr %slot) {
  %look = load atomic i32, ptr %slot monotonic, align 4
  %set = icmp eq i32 %look, 1
  br i1 %set, label %try, label %no
try:
  %taken = cmpxchg ptr %slot, i32 1, i32 0 seq_cst monotonic
  %mine = extractvalue { i32, i1 } %taken, 1
  ret i1 %mine
no:
  ret i1 false
}

define internal ptr @pool_worker(ptr %argument) {
  %index = ptrtoint ptr %argument to i64
  %slot = getelementptr [128 x i8], ptr @pool_slots, i64 %index
  %parked = getelementptr i8, ptr %slot, i64 4
  %thread.at = getelementptr i8, ptr %slot, i64 8
  %where = getelementptr i8, ptr %slot, i64 12
  %thread = call i64 (i64, ...) @syscall(i64 GETTID)
  %thread.narrow = trunc i64 %thread to i32
  store atomic i32 %thread.narrow, ptr %thread.at monotonic, align 4
  br label %idle
idle:
  %here = call i32 @sched_getcpu()
  %here.more = add i32 %here, 1
  store atomic i32 %here.more, ptr %where monotonic, align 4
  %start = call i64 @pool_now()
  br label %spin
spin:
  %i = phi i32 [ 0, %idle ], [ %i.next, %pause ], [ %i.next, %polite ], [ %i.next, %yield ]
  %mine = call i1 @pool_take(ptr %slot)
  br i1 %mine, label %run, label %pause
pause:
  PAUSE
  %i.next = add i32 %i, 1
  %low = and i32 %i.next, 31
  %look = icmp eq i32 %low, 0
  br i1 %look, label %clock, label %spin
clock:
  %there = call i32 @sched_getcpu()
  %there.more = add i32 %there, 1
  store atomic i32 %there.more, ptr %where monotonic, align 4
  %now = call i64 @pool_now()
  %passed = sub i64 %now, %start
  %spins = load atomic i64, ptr @pool_spin monotonic, align 8
  %tired = icmp sgt i64 %passed, %spins
  br i1 %tired, label %park, label %polite
polite:
  %short = icmp slt i64 %passed, 100000
  br i1 %short, label %spin, label %yield
yield:
  %yielded = call i32 @sched_yield()
  br label %spin
park:
  store atomic i32 1, ptr %parked seq_cst, align 4
  br label %check
check:
  %ticket = load atomic i32, ptr %slot seq_cst, align 4
  %nothing = icmp eq i32 %ticket, 0
  br i1 %nothing, label %sleep, label %rise
sleep:
  call void @pool_sleep(ptr %slot, i32 0)
  br label %check
rise:
  store atomic i32 0, ptr %parked seq_cst, align 4
  br label %idle
run:
  call void @pool_share(ptr null)
  %before = atomicrmw sub ptr @job_pending, i32 1 seq_cst
  %last = icmp eq i32 %before, 1
  br i1 %last, label %tell, label %idle
tell:
  %waits = load atomic i32, ptr @job_waits seq_cst, align 4
  %asleep = icmp ne i32 %waits, 0
  br i1 %asleep, label %wake, label %idle
wake:
  call void @pool_wake(ptr @job_pending)
  br label %idle
}

; Starts workers up to a number, with all signals blocked but those of faults; returns how many there are.
define internal i64 @pool_grow(i64 %wanted) noinline {
  %blocked = alloca [16 x i64], align 16
  %kept = alloca [16 x i64], align 16
  %thread = alloca i64
  call void @llvm.memset.p0.i64(ptr %blocked, i8 -1, i64 128, i1 false)
  store i64 -1241, ptr %blocked      ; not SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV
  %ignored = call i32 @pthread_sigmask(i32 2, ptr %blocked, ptr %kept)
  %have = load i32, ptr @pool_workers
  %have.wide = zext i32 %have to i64
  br label %next
next:
  %count = phi i64 [ %have.wide, %0 ], [ %more, %made ]
  %enough = icmp uge i64 %count, %wanted
  br i1 %enough, label %done, label %make
make:
  %more = add i64 %count, 1
  %argument = inttoptr i64 %more to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @pool_worker, ptr %argument)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %made, label %done
made:
  %id = load i64, ptr %thread
  %detached = call i32 @pthread_detach(i64 %id)
  %more.narrow = trunc i64 %more to i32
  store i32 %more.narrow, ptr @pool_workers
  br label %next
done:
  %restored = call i32 @pthread_sigmask(i32 2, ptr %kept, ptr null)
  ret i64 %count
}

; in a child process there are no workers, whatever was going on
define void @pool_after_fork() {
  call void @llvm.memset.p0.i64(ptr @pool_slots, i8 0, i64 SLOTBYTES, i1 false)
  store i32 0, ptr @pool_workers
  store i32 0, ptr @job_pending
  store i32 0, ptr @job_waits
  store i32 0, ptr @job_error_lock
  store atomic i32 0, ptr @pool_lock release, align 4
  ret void
}

; ``most``: how many chunks are worth their while; ``each``: how many of them a thread may get
define i32 @parallel(ptr %ctx, ptr %body, ptr %env, i64 %extent, i64 %scratch, ptr %workspace, i64 %most, i64 %each) {
  %limit = load atomic i32, ptr @pool_limit monotonic, align 4
  %limit.wide = zext i32 %limit to i64
  %a = icmp slt i64 %most, %limit.wide
  %b = select i1 %a, i64 %most, i64 %limit.wide
  %c = icmp slt i64 %b, %extent
  %wanted = select i1 %c, i64 %b, i64 %extent
  %several = icmp sgt i64 %wanted, 1
  br i1 %several, label %lock, label %serial
lock:
  %taken = cmpxchg ptr @pool_lock, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %taken, 1
  br i1 %mine, label %look, label %serial
look:
  %have = load i32, ptr @pool_workers
  %have.wide = zext i32 %have to i64
  %beside = sub i64 %wanted, 1
  %fewer = icmp ult i64 %have.wide, %beside
  br i1 %fewer, label %grow, label %share
grow:
  %grown = call i64 @pool_grow(i64 %beside)
  %alone = icmp eq i64 %grown, 0
  br i1 %alone, label %give.up, label %share
give.up:
  store atomic i32 0, ptr @pool_lock release, align 4
  br label %serial
share:
  %there = phi i64 [ %have.wide, %look ], [ %grown, %grow ]
  %too.few = icmp ult i64 %there, %beside
  %others = select i1 %too.few, i64 %there, i64 %beside
  %threads = add i64 %others, 1
  %fine = mul i64 %threads, %each
  %d = icmp slt i64 %fine, %most
  %e = select i1 %d, i64 %fine, i64 %most
  %f = icmp slt i64 %e, %extent
  %chunks = select i1 %f, i64 %e, i64 %extent
  store ptr %ctx, ptr @job_ctx
  store ptr %body, ptr @job_body
  store ptr %env, ptr @job_env
  store i64 %extent, ptr @job_extent
  store i64 %chunks, ptr @job_chunks
  store i64 %scratch, ptr @job_scratch
  store i32 0, ptr @job_status
  store i64 0, ptr @job_next
  %others.narrow = trunc i64 %others to i32
  store atomic i32 0, ptr @job_waits seq_cst, align 4
  store atomic i32 %others.narrow, ptr @job_pending seq_cst, align 4
  %jobs = load i64, ptr @pool_jobs
  %jobs.more = add i64 %jobs, 1
  store i64 %jobs.more, ptr @pool_jobs
  %processor = call i32 @sched_getcpu()
  %mine.more = add i32 %processor, 1
  br label %post
post:
  %i = phi i64 [ 1, %share ], [ %i.next, %posted ]
  %slot = getelementptr [128 x i8], ptr @pool_slots, i64 %i
  %parked.at = getelementptr i8, ptr %slot, i64 4
  %where.at = getelementptr i8, ptr %slot, i64 12
  %off.at = getelementptr i8, ptr %slot, i64 16
  %where = load atomic i32, ptr %where.at monotonic, align 4
  %off = load i32, ptr %off.at
  %sleepy = load atomic i32, ptr %parked.at monotonic, align 4
  %same = icmp eq i32 %where, %mine.more
  %sleeps = icmp ne i32 %sleepy, 0
  %clash = or i1 %same, %sleeps
  %other = icmp ne i32 %off, %mine.more
  %moves = and i1 %clash, %other
  br i1 %moves, label %move, label %set
move:
  call void @pool_move(ptr %slot, i32 %mine.more)
  br label %set
set:
  store atomic i32 1, ptr %slot seq_cst, align 4
  %parked = load atomic i32, ptr %parked.at seq_cst, align 4
  %asleep = icmp ne i32 %parked, 0
  br i1 %asleep, label %rouse, label %posted
rouse:
  call void @pool_wake(ptr %slot)
  br label %posted
posted:
  %i.next = add i64 %i, 1
  %rest = icmp ult i64 %i.next, %threads
  br i1 %rest, label %post, label %own
own:
  call void @pool_share(ptr %workspace)
  br label %recall
recall:      ; workers that have not come need not come any more
  %j = phi i64 [ %others, %own ], [ %j.next, %recalled ]
  %j.slot = getelementptr [128 x i8], ptr @pool_slots, i64 %j
  %free = call i1 @pool_take(ptr %j.slot)
  br i1 %free, label %cancel, label %recalled
cancel:
  %ignored = atomicrmw sub ptr @job_pending, i32 1 seq_cst
  br label %recalled
recalled:
  %j.next = sub i64 %j, 1
  %j.more = icmp ugt i64 %j.next, 0
  br i1 %j.more, label %recall, label %wait
wait:
  %tries = phi i32 [ 0, %recalled ], [ %tries.next, %pause ], [ %tries.next, %yield ]
  %pending = load atomic i32, ptr @job_pending seq_cst, align 4
  %finished = icmp eq i32 %pending, 0
  br i1 %finished, label %done, label %pause
pause:
  PAUSE
  %tries.next = add i32 %tries, 1
  %short = icmp ult i32 %tries.next, 2000
  br i1 %short, label %wait, label %polite
polite:
  %patient = icmp ult i32 %tries.next, 6000
  br i1 %patient, label %yield, label %lie.down
yield:
  %yielded = call i32 @sched_yield()
  br label %wait
lie.down:
  store atomic i32 1, ptr @job_waits seq_cst, align 4
  br label %check
check:
  %left = load atomic i32, ptr @job_pending seq_cst, align 4
  %over = icmp eq i32 %left, 0
  br i1 %over, label %done, label %sleep
sleep:
  call void @pool_sleep(ptr @job_pending, i32 %left)
  br label %check
done:
  %status = load i32, ptr @job_status
  store atomic i32 0, ptr @pool_lock release, align 4
  ret i32 %status
serial:
  %alone.status = call i32 %body(ptr %ctx, ptr %env, i64 0, i64 %extent, ptr %workspace)
  ret i32 %alone.status
}
"""


def pool_ir(platform: PoolPlatform | None) -> str:
    """The text of the pool for a platform; without one, everything runs on the caller's thread."""
    if platform is None:
        return SERIAL_IR
    text = _SHARED + _THREADED_IR + platform.declarations
    numbers = {
        "SLOTBYTES": 128 * MOST_THREADS,
        "SLOTS": MOST_THREADS,
        "FUTEX": platform.futex,
        "GETTID": platform.gettid,
    }
    for name, number in numbers.items():
        text = text.replace(name, str(number))
    return text.replace("PAUSE", platform.pause)
