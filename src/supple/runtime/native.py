"""Loads native code: the runtime's own library (once a process) and the object code of executables."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import threading
from collections.abc import Iterable, Mapping
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from supple.base.config import config
from supple.base.disk_cache import shared_cache
from supple.base.errors import InternalError
from supple.base.once import once
from supple.runtime import abi
from supple.runtime.elf import elf_symbols
from supple.runtime.native_ir import RUNTIME_IR
from supple.runtime.platforms import c_library, call_in_child, pool_platform, usable_cores
from supple.runtime.pool_ir import MOST_THREADS, pool_ir

_lock = threading.Lock()
_names = itertools.count()

ALLOWED_IMPORTS = ("malloc", "free", "memcpy", "memmove", "memset")
"""The only functions of the process that compiled code may refer to; anything else fails when it is loaded."""

SPIN_NANOSECONDS = 1_500_000
"""How long a thread of the pool looks for work before it sleeps: waking it costs up to 0.2 ms, so it should stay awake
between the kernels of one call, and between calls in a row."""

CROWDED_SPIN_NANOSECONDS = 20_000
"""The same where there are more threads than cores."""


class Library:
    """Object code in memory. Its functions may be called while the library is alive."""

    __slots__ = ("_jit", "_tracker", "addresses")

    def __init__(self, jit: Any, tracker: Any, addresses: dict[str, int]) -> None:
        self._jit = jit
        self._tracker = tracker
        self.addresses = addresses


@once
def _processor() -> tuple[str, str, str]:
    """What code is made for: triple, processor, features."""
    return llvm.get_default_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _machine() -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    triple, cpu, features = _processor()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=1, reloc="pic", codemodel="small")


@once
def _jit() -> Any:
    return llvm.create_lljit_compiler(_machine(), use_jit_link=True, suppress_errors=True)


@once
def _process_addresses() -> dict[str, int]:
    process = c_library()
    found: dict[str, int] = {}
    for name in ALLOWED_IMPORTS:
        address = ctypes.cast(getattr(process, name), ctypes.c_void_p).value
        if address is None:
            raise InternalError(f"the C library has no {name}")
        found[name] = address
    return found


def load_objects(objects: Iterable[bytes], exports: Iterable[str], imports: Mapping[str, int] | None = None) -> Library:
    """Link object code and load it; raises `InternalError` when it refers to a symbol that is neither defined in the
    objects, nor in ``imports``, nor on the allow-list."""
    images, names = list(objects), list(exports)
    _check_symbols(images, names, {*ALLOWED_IMPORTS, *(imports or {})})
    builder = llvm.JITLibraryBuilder()
    for data in images:
        builder.add_object_img(data)
    for name, address in {**_process_addresses(), **(imports or {})}.items():
        builder.import_symbol(name, address)
    for name in names:
        builder.export_symbol(name)
    with _lock:
        jit = _jit()
        try:
            tracker = builder.link(jit, f"supple.{next(_names)}")
        except RuntimeError as error:
            raise InternalError(f"compiled code cannot be linked: {error}") from None
    return Library(jit, tracker, {name: tracker[name] for name in names})


def load_text(text: str, exports: Iterable[str], imports: Mapping[str, int] | None = None) -> Library:
    """Compile and load a module of the runtime's own. Its object code is kept on disk, so that the next process only
    loads it."""
    return load_objects([_object_code(text)], exports, imports)


def _object_code(text: str) -> bytes:
    cache = shared_cache()
    versions = (llvmlite.__version__, *map(str, llvm.llvm_version_info))
    key = hashlib.blake2b("\n".join((*_processor(), *versions, text)).encode(), digest_size=20).hexdigest()
    code = None if cache is None else cache.get(key)
    if code is None:
        machine = _machine()
        code = bytes(machine.emit_object(llvm.parse_assembly(text)))
        if cache is not None:
            cache.put(key, code)
    return code


def _check_symbols(images: Iterable[bytes], exports: Iterable[str], known: set[str]) -> None:
    """Name what is missing (ELF only; other formats are checked by the linker, without names)."""
    defined: set[str] = set()
    needed: set[str] = set()
    for data in images:
        symbols = elf_symbols(data)
        if symbols is None:
            return
        defined |= symbols[0]
        needed |= symbols[1]
    missing, absent = sorted(needed - defined - known), sorted(set(exports) - defined)
    if missing:
        raise InternalError(f"compiled code refers to symbols that are not on the list: {', '.join(missing)}")
    if absent:
        raise InternalError(f"compiled code does not define {', '.join(absent)}")


_EXPORTS = (
    *abi.API,
    "bind_arrays",
    "free_object",
    "python_new",
    "arena_trim",
    "live_objects",
    "live_arenas",
    "callbacks_active",
    "pool_limit",
    "pool_workers",
    "pool_jobs",
    "pool_spin",
)


class Runtime:
    """The runtime's native functions, callable from Python, and their table for compiled code."""

    def __init__(self) -> None:
        platform = pool_platform()
        exports = (*_EXPORTS, *(("pool_after_fork",) if platform else ()))
        self.library = load_text(RUNTIME_IR + pool_ir(platform), exports, platform.symbols if platform else None)
        # threads of the pool, and threads that Python leaves behind at its end, may run this code until the very last
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.library))
        at = self.library.addresses
        if platform:
            call_in_child(at["pool_after_fork"])
            cores = usable_cores()
            self.set_threads(min(config.num_threads or cores, MOST_THREADS), cores)
        self.api = (ctypes.c_void_p * len(abi.API))(*(at[name] for name in abi.API))
        self.api_address = ctypes.addressof(self.api)
        i32, i64, pointer, double = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_double

        def function(name: str, result: Any, *params: Any) -> Any:
            # PYFUNCTYPE keeps the GIL: these calls are shorter than releasing it
            return ctypes.PYFUNCTYPE(result, *params)(at[name])

        self.incref = function("incref", None, pointer)
        self.tensor_new = function("tensor_new", pointer, i64, i32, i64)
        self.tensor_view = function("tensor_view", pointer, i64, i32, i64, pointer, pointer)
        self.tuple_new = function("tuple_new", pointer, i64)
        self.shape_new = function("shape_new", pointer, i64)
        self.int_new = function("int_new", pointer, i64, i32)
        self.float_new = function("float_new", pointer, double, i32)
        self.python_new = function("python_new", pointer, pointer)
        self.free_object = function("free_object", None, pointer)
        self.bind_arrays = function("bind_arrays", i64, pointer, i64, pointer, pointer, pointer)
        self.arena_trim = function("arena_trim", i64)
        self.callbacks_active = ctypes.c_int64.from_address(at["callbacks_active"])
        self.callbacks_lock = threading.Lock()
        # may run a deleter that calls back into Python: CFUNCTYPE releases the GIL around it
        self.decref = ctypes.CFUNCTYPE(None, pointer)(at["decref"])

    def set_threads(self, count: int, cores: int) -> None:
        """How many threads may work at once. More than the ``cores`` of this process do not wait for work awake: they
        would only take time from those that have some."""
        at = self.library.addresses
        patience = SPIN_NANOSECONDS if count <= cores else CROWDED_SPIN_NANOSECONDS
        ctypes.c_int64.from_address(at["pool_spin"]).value = patience
        ctypes.c_int32.from_address(at["pool_limit"]).value = count


@once
def runtime() -> Runtime:
    """The one runtime library of the process; loaded when it is first used and never freed."""
    return Runtime()


def live_objects() -> int:
    """How many native objects exist now (for tests of ownership)."""
    return ctypes.c_int64.from_address(runtime().library.addresses["live_objects"]).value


def live_arenas() -> int:
    """How many arenas are taken by running activations now."""
    return ctypes.c_int64.from_address(runtime().library.addresses["live_arenas"]).value


def trim() -> int:
    """Free the arenas that are kept for later calls; returns how many."""
    count: int = runtime().arena_trim()
    return count
