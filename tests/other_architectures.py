"""Do kernels compute the same on other processors? ``python tests/other_architectures.py [FILTER...]``

Every operator's samples, compiled for AArch64 and linked into one program that runs under ``qemu-aarch64`` (Debian
packages ``qemu-user``, ``gcc-aarch64-linux-gnu``, ``libc6-dev-arm64-cross``), and for x86-64 without vector extensions
and with AVX2 only, linked by ``cc`` and run here. Results are compared with the operators' references. Every parallel
loop, however short, is shared among four threads by the runtime's own pool, compiled for the same processor; before
that, two threads share many loops of all lengths at once, some of which fail. Not part of the ordinary tests. Prints
the counts; the exit status is 1 where something differs.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from test_ops_registry import (
    CASES,
    ShapeOf,
    arrays_of,
    flat,
    prepared,
    reference,
    tolerance,
    variables,
)

from supple.base.errors import SuppleError
from supple.base.target import Target, target
from supple.build.te import TensorValue, as_placeholders
from supple.build.te_functions import create_prim_func
from supple.codegen import kernel_parallel
from supple.codegen.kernel import emit_kernel
from supple.codegen.llvm import compile_text
from supple.ir.expr import IntImm
from supple.ir.op import Op
from supple.ops.declare import Sample
from supple.runtime import abi
from supple.runtime.native_ir import RUNTIME_IR
from supple.runtime.platforms import WAITING, PoolPlatform
from supple.runtime.pool_ir import pool_ir
from supple.schedule.default import schedule_func

MACHINES = {
    "llvm -mtriple=aarch64-linux-gnu": (["aarch64-linux-gnu-gcc", "-static", "-pthread"], ["qemu-aarch64"]),
    "llvm -mcpu=x86-64": (["cc", "-pthread"], []),
    "llvm -mcpu=x86-64-v3": (["cc", "-pthread"], []),
}
MOST_BUFFERS = 12
THREADS = 4
LOOPS = 5000

HARNESS = """
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
typedef int32_t body_t(void *ctx, void *env, int64_t begin, int64_t end, void *workspace);
extern int32_t parallel(void *ctx, body_t *body, void *env, int64_t extent, int64_t scratch, void *workspace,
                        int64_t most, int64_t each);
extern int32_t pool_limit, pool_workers;
extern int64_t pool_jobs, pool_spin;

/* a loop that counts its iterations and fails from one of them on */
struct loop { int64_t failed, fails; int32_t seen[1000]; };
static int32_t count(void *ctx, void *env, int64_t begin, int64_t end, void *workspace) {
  struct loop *l = env;
  memset(workspace, (int)begin, 256);
  for (int64_t i = begin; i < end; i++) {
    if (__atomic_load_n(&l->failed, __ATOMIC_RELAXED) < begin) return 1;
    if (i >= l->fails) { *(int64_t *)ctx = i; return 5; }
    __atomic_fetch_add(&l->seen[i], 1, __ATOMIC_RELAXED);
  }
  return 0;
}
static void *many_loops(void *argument) {
  uint64_t random = (uint64_t)(size_t)argument;
  int64_t wrong = 0, ctx[8];
  for (int n = 0; n < @LOOPS@; n++) {
    struct loop l;
    char workspace[256];
    memset(&l, 0, sizeof l);
    random = random * 6364136223846793005u + 1442695040888963407u;
    int64_t extent = (random >> 33) % 1001, fails = (random >> 50) % 4 ? INT64_MAX : (int64_t)(random >> 40) % 1200;
    l.failed = INT64_MAX, l.fails = fails;
    ctx[0] = -1;
    int32_t status = parallel(ctx, count, &l, extent, 256, workspace, 1 + (random >> 45) % 20, 1 + (random >> 60));
    int fault = fails < extent;
    wrong += status != (fault ? 5 : 0) || (fault && ctx[0] != fails);
    for (int64_t i = 0; i < 1000; i++)
      wrong += fault && i >= fails ? l.seen[i] : l.seen[i] != (i < extent);
    if (n % 512 == 511) { struct timespec t = {0, 3000000}; nanosleep(&t, 0); } /* the workers go to sleep */
  }
  return (void *)(size_t)wrong;
}
static int64_t stress(void) {
  pthread_t other;
  void *wrong;
  if (pthread_create(&other, 0, many_loops, (void *)1)) return 1;
  int64_t own = (int64_t)(size_t)many_loops((void *)2);
  return pthread_join(other, &wrong) ? 1 : own + (int64_t)(size_t)wrong;
}
DECLARATIONS
static int32_t call(void *kernel, int count, void *ctx, void **b, void *workspace) {
  switch (count) { CALLS }
  return 99;
}
int main(int argc, char **argv) {
  void *api[64] = {0};
  api[@PARALLEL@] = (void *)parallel;
  void *kernels[] = {TABLE};
  pool_limit = @THREADS@;
  pool_spin = 1500000;
  int64_t wrong_loops = stress(), loops = pool_jobs;
  FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
  int64_t head[3];
  /* the kernel, its buffers, bytes of workspace; then each buffer's size and bytes */
  while (fread(head, 8, 3, in) == 3) {
    static int64_t ctx[64];
    void *b[64], *workspace = aligned_alloc(64, (head[2] + 127) / 64 * 64);
    int64_t sizes[64];
    memset(ctx, 0, sizeof ctx);
    ((void **)ctx)[API / 8] = api;
    for (int i = 0; i < head[1]; i++) {
      if (fread(&sizes[i], 8, 1, in) != 1) return 2;
      b[i] = aligned_alloc(64, (sizes[i] + 127) / 64 * 64);
      if (fread(b[i], 1, sizes[i], in) != (size_t)sizes[i]) return 3;
    }
    int64_t status = call(kernels[head[0]], head[1], ctx, b, workspace);
    fwrite(&status, 8, 1, out);
    for (int i = 0; i < head[1]; i++) fwrite(b[i], 1, sizes[i], out);
  }
  int64_t counts[] = {wrong_loops, loops, pool_jobs - loops, pool_workers};
  fwrite(counts, 8, 4, out);
  return fclose(out);
}
"""


@dataclass
class Run:
    """A kernel with its inputs, what it should give, and its name."""

    name: str
    code: bytes
    workspace: int
    buffers: list[Any]
    expected: list[Any]


def prepare(op: Op, sample: Sample, on: Target, symbol: str) -> Run | None:
    sample = prepared(op, sample)
    arrays = arrays_of(sample)
    args = variables(arrays, None)
    call = op(*args, **sample.attrs)
    lowered: list[Any] = [
        [IntImm(v, "int64") for v in a.values] if isinstance(a, ShapeOf) else b
        for a, b in zip(arrays, args, strict=True)
    ]
    assert op.lower is not None
    tensors, inputs = as_placeholders(lowered)
    result = op.lower(*tensors, **call.attrs)
    func, _ = create_prim_func([t for t, _ in inputs], [result] if isinstance(result, TensorValue) else list(result))
    code = emit_kernel(schedule_func(func, on), symbol, on, [])
    expected = reference(op, sample, arrays, call.attrs)
    buffers = [*(np.array(a, order="C") for a in flat(arrays)), *(np.zeros_like(e, order="C") for e in expected)]
    if code.symbols or len(buffers) != len(code.params) or len(buffers) > MOST_BUFFERS:
        return None
    assert isinstance(code.workspace_bytes, IntImm)
    return Run(f"{op.name} {sample.attrs}", compile_text(code.llvm_text, on), code.workspace_bytes.value, buffers,
               list(expected))  # fmt: skip


def harness(count: int) -> str:
    names = [f"k{i}" for i in range(count)]
    pointers = ", ".join
    calls = " ".join(
        f"case {n}: return ((int32_t (*)({pointers(['void *'] * (n + 2))}))kernel)"
        f"({pointers(['ctx', *(f'b[{i}]' for i in range(n)), 'workspace'])});"
        for n in range(1, MOST_BUFFERS + 1)
    )
    text = HARNESS.replace("DECLARATIONS", "\n".join(f"extern int32_t {n}();" for n in names))
    text = text.replace("CALLS", calls).replace("TABLE", ", ".join(names)).replace("API", str(abi.CONTEXT_API))
    for name, number in {"PARALLEL": abi.API.index("parallel"), "THREADS": THREADS, "LOOPS": LOOPS}.items():
        text = text.replace(f"@{name}@", str(number))
    return text


def pool_object(on: Target) -> bytes:
    """The runtime's native part, with its pool, for a processor."""
    return compile_text(RUNTIME_IR + pool_ir(PoolPlatform({}, *WAITING[on.arch])), on)


def run_on(spec: str, filters: list[str]) -> tuple[str, list[str]]:
    """What ran, in words, and what was wrong."""
    on = target(spec)
    compiler, emulator = MACHINES[spec]
    runs: list[Run] = []
    left = 0
    for op, sample in CASES:
        if op.lower is None or (filters and not any(f in op.name for f in filters)):
            continue
        try:
            made = prepare(op, sample, on, f"k{len(runs)}")
        except SuppleError:
            made = None
        if made is None:
            left += 1
        else:
            runs.append(made)
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        (place / "main.c").write_text(harness(len(runs)))
        objects = [place / "runtime.o"]
        objects[0].write_bytes(pool_object(on))
        for i, run in enumerate(runs):
            objects.append(place / f"k{i}.o")
            objects[-1].write_bytes(run.code)
        subprocess.run([*compiler, "-w", "-o", place / "main", place / "main.c", *objects, "-lm"], check=True)
        with (place / "in").open("wb") as file:
            for i, run in enumerate(runs):
                file.write(np.array([i, len(run.buffers), run.workspace], "int64").tobytes())
                for b in run.buffers:
                    file.write(np.int64(b.nbytes).tobytes() + b.tobytes())
        subprocess.run([*emulator, place / "main", place / "in", place / "out"], check=True)
        data = (place / "out").read_bytes()
    wrong = []
    at = 0
    for run in runs:
        status = int(np.frombuffer(data, "int64", 1, at)[0])
        at += 8
        found = []
        for b in run.buffers:
            found.append(np.frombuffer(data[at : at + b.nbytes], b.dtype).reshape(b.shape))
            at += b.nbytes
        try:
            assert status == 0, f"status {status}"
            for actual, value in zip(found[len(found) - len(run.expected) :], run.expected, strict=True):
                tolerance(value.dtype, actual, value)
        except AssertionError as error:
            wrong.append(f"{run.name}: {str(error).strip().splitlines()[0]}")
    wrong_loops, loops, shared, workers = map(int, np.frombuffer(data, "int64", 4, at))
    if wrong_loops or not loops or not workers or (not filters and not shared):
        wrong.append(f"the pool: {wrong_loops} wrong of {loops} loops, {shared} of kernels, {workers} workers")
    return (f"{len(runs)} kernels, {shared} loops of theirs and {loops} others shared with {workers} workers; "
            f"{left} samples not run (symbols, or no native code)"), wrong  # fmt: skip


def main() -> int:
    bad = 0
    kernel_parallel.WORTH_SHARING = kernel_parallel.CHUNK = 0  # every loop is worth sharing
    for spec in MACHINES:
        what, wrong = run_on(spec, sys.argv[1:])
        print(f"{spec}: {len(wrong)} wrong; {what}")
        for line in wrong:
            print(f"  {line}")
        bad += len(wrong)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
