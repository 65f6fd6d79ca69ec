"""Targets and devices as programs name them, and compiled modules in files."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import supple
from supple import Target, relax
from supple.base.target import Target as Machine
from supple.compat.support import tempdir
from supple.error import NotSupportedError, SuppleError
from supple.ir.structural import structural_equal
from supple.runtime import library
from supple.runtime.executable import load_module
from supple.script import from_source

MODULE = from_source("""
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tuple(R.Tensor((2,), "bfloat16"), R.Shape(ndim=1))):
        z = R.add(x, R.const([1.0, 2.0, 3.0, 4.0], "float32"))
        return z, y, R.str("a")
""")


@pytest.mark.parametrize(
    ("spec", "kind", "attrs", "keys"),
    [
        ("cuda", "cuda", {}, ["cuda", "gpu"]),
        ({"kind": "cuda", "arch": "sm_80"}, "cuda", {"arch": "sm_80"}, ["cuda", "gpu"]),
        ("llvm -mcpu=znver3", "llvm", {"mcpu": "znver3"}, ["cpu"]),
        ({"kind": "llvm", "mcpu": "znver3", "keys": ["a", "cpu"]}, "llvm", {"mcpu": "znver3"}, ["a", "cpu"]),
        ("c", "c", {}, ["cpu"]),
    ],
)
def test_targets(spec: Any, kind: str, attrs: dict[str, Any], keys: list[str]) -> None:
    made = Target(spec)
    assert (made.kind.name, str(made.kind), made.attrs, made.keys, made.host) == (kind, kind, attrs, keys, None)
    assert Target(made.export()) == made == Target(made) and hash(made) == hash(Target(spec))
    assert str(made).startswith(f'{{"kind":"{kind}","tag":"","keys":[')


def test_the_target_of_this_machine() -> None:
    mine = Target("llvm")
    assert mine.attrs == {"mtriple": mine.machine.triple} and mine.mtriple == mine.machine.triple
    assert Target({"kind": "llvm", "num-cores": 3}).machine.cores == 3
    assert Target.from_device("cpu") == Target.from_device(supple.cpu()) and Target.from_device("cpu").machine.is_host
    assert Target("cuda", host="llvm").host == mine == Target("cuda").with_host("llvm").host
    assert mine.get_target_device_type() == 1 and "llvm" in Target.list_kinds()
    with pytest.raises(AttributeError, match="mcpu"):
        mine.mcpu


def test_the_current_target() -> None:
    assert Target.current() is None
    with pytest.raises(ValueError, match="no target is set"):
        Target.current(allow_none=False)
    with Target("llvm") as outer:
        with Target("cuda"):
            assert Target.current().kind.name == "cuda"
            with pytest.raises(NotSupportedError, match="target kind 'cuda' is not supported"):
                supple.compile(MODULE)
        assert Target.current() is outer
    assert Target.current() is None


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nope", "the kind 'nope' is not defined"),
        ("", "empty target"),
        ({"mcpu": "x"}, "'kind' is missing"),
        ({"kind": "llvm", "mcp": "x"}, "unknown option 'mcp'; did you mean 'mcpu'"),
        ({"kind": "llvm", "mcpu": "znver33"}, "unknown processor 'znver33'"),
        ({"kind": "llvm", "keys": "cpu"}, "keys are a list"),
        ("llvm mcpu", "cannot read 'mcpu'"),
    ],
)
def test_wrong_targets(spec: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Target(spec)
    with pytest.raises(ValueError, match=message):
        supple.compile(MODULE, {"kind": spec} if spec == "nope" else spec if isinstance(spec, dict) else Target(spec))


def test_targets_in_programs() -> None:
    text = """
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    T.func_attr({"a": T.target("llvm"), "b": T.target({"host": {"kind": "llvm"}, "kind": "cuda"})})
    A[0] = T.float32(1)
"""
    made = from_source(text)
    assert made.attrs["a"] == Target("llvm") and made.attrs["b"].host == Target("llvm")
    for style in ("supple", "relax"):
        assert structural_equal(from_source(made.script(style=style)), made), style
    assert 'T.target({"host": {"kind": "llvm"}, "kind": "cuda"})' in made.script()
    assert '"keys": ["cuda", "gpu"], "kind": "cuda", "tag": ""' in made.script(style="relax")
    assert relax.VDevice(Target("cuda")).kind == "cuda"


def test_executables_in_files(tmp_path: Path) -> None:
    executable = supple.compile(MODULE, results="numpy")
    file = tmp_path / "module.so"
    executable.export_library(file)
    loaded = load_module(str(file))
    x, y = np.ones(4, "float32"), (supple.runtime.empty((2,), "bfloat16"), supple.runtime.ShapeTuple([3]))
    for machine in (loaded, relax.VirtualMachine(loaded, supple.cpu()), loaded.jit()):
        result = machine["main"](x, y)
        np.testing.assert_array_equal(result[0], [2, 3, 4, 5])
        assert result[2] == "a"
    with pytest.raises(SuppleError) as first:
        executable["main"](np.ones(3, "float32"), y)
    with pytest.raises(SuppleError) as second:
        loaded["main"](np.ones(3, "float32"), y)
    assert str(first.value) == str(second.value) and type(first.value) is type(second.value)
    assert loaded.as_text() == executable.as_text()
    with pytest.raises(TypeError, match="unknown option 'fcompile'"):
        executable.export_library(file, fcompile=None)
    assert [p.name for p in tmp_path.iterdir()] == ["module.so"]


def test_other_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "module.so"
    supple.compile(MODULE).export_library(file)
    data = file.read_bytes()
    with pytest.raises(FileNotFoundError):
        load_module(tmp_path / "none.so")
    for damaged in (b"", b"\x7fELF", data[:-1], data[:60], data[:200] + b"\0" + data[201:], data + b"\0"):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"module\.so is "):
            load_module(file)


def _file_of(text: bytes, blobs: bytes, length: int | None = None) -> bytes:
    body = struct.pack("<Q", len(text) if length is None else length) + text + blobs
    return library._MAGIC + hashlib.blake2b(body, digest_size=library._DIGEST).digest() + body


def test_files_that_say_what_no_program_says_are_refused(tmp_path: Path) -> None:
    """With a checksum that fits: every part of the description replaced by every kind of value."""
    file = tmp_path / "module.so"
    supple.compile(MODULE).export_library(file)
    body = file.read_bytes()[len(library._MAGIC) + library._DIGEST :]
    (length,) = struct.unpack_from("<Q", body)
    text, blobs = body[8 : 8 + length], body[8 + length :]
    described = json.loads(text)["Program"]
    junk: list[Any] = [
        1, -1, 2**200, 1.5, True, [], [1], {}, {"a": 1, "b": 2}, {"bytes": [0, 2**62]}, {"bytes": ["a", 1]},
        {"Span": 3},
        {"array": ["float32", [2**40, 2**40], 0, 4]}, {"array": ["nope", [1], 0, 4]},
        {"array": ["handle", [1], 0, 8]},
        {"Program": {}}, {"ParamSpec": {"name": "x", "spec": {"ShapeSpec": {"text": "", "ndim": "2"}}}},
    ]  # fmt: skip
    texts = [
        json.dumps({"Program": {**described, name: value}}).encode()
        for name in ("objects", "functions", "constants", "sites", "calls", "text", "closures", "machine")
        for value in (*junk, *([found] for found in junk if name in ("objects", "functions", "constants")))
        if value != []  # a program may have none of them
    ]
    files = [_file_of(t, blobs) for t in (*texts, b"1", b"null", b"\xff", b"[" * 5000, b"", b'{"Program": []}')]
    for data in (*files, _file_of(text, blobs, 2**63), _file_of(text, blobs, length + 1)):
        file.write_bytes(data)
        with pytest.raises(library.LibraryError, match=r"module\.so is not a compiled program"):
            library.load_program(file)


def test_many_write_one_file(tmp_path: Path) -> None:
    """Threads that export to one path at once, with names that the file system takes."""
    file = tmp_path / ("\u6f22 " + "n" * 240)
    program = supple.compile(MODULE).program
    programs = [program, dataclasses.replace(program, text="more" * 1000)]

    def write(number: int) -> None:
        for _ in range(10):
            library.save_program(programs[number % 2], file)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert [p.name for p in tmp_path.iterdir()] == [file.name]
    assert load_module(file).program.text in [p.text for p in programs]


def test_a_file_for_another_processor_is_refused(tmp_path: Path) -> None:
    executable = supple.compile(MODULE)
    executable.program.machine = (*executable.program.machine, "+nothing")
    executable.export_library(tmp_path / "m")
    with pytest.raises(NotSupportedError, match=r"this machine has no \+nothing"):
        load_module(tmp_path / "m")


def test_directories_for_a_while(tmp_path: Path) -> None:
    with tempdir() as directory:
        Path(directory.relpath("a")).write_text("a")
        assert directory.listdir() == ["a"] and Path(directory.path).is_dir()
        place = Path(directory.path)
    assert not place.exists() and directory.temp_dir is None
    own = tempdir(str(tmp_path / "own"))
    assert own.temp_dir == str(tmp_path / "own") and Path(own.path).is_dir()
    own.remove()
    with pytest.raises(ValueError, match="was removed"):
        own.relpath("a")


def test_other_names_of_processors() -> None:
    assert Machine.parse("llvm -mcpu=core-avx2").cpu == "haswell"
    assert Machine.parse("llvm -mcpu=skx").cpu == "skylake-avx512"
    with pytest.raises(ValueError, match="unknown processor"):
        Machine.parse("llvm -mcpu=core-avx9")
