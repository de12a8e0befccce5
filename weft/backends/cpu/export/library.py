"""Export a model: kernels, a runtime, tables and weights, linked to a shared library.

The kernels are those that Python runs, the same object code if the target is the same. Everything
else of the library is LLVM IR of Weft's own for the least x86-64, so that it can say politely that
a processor lacks what the kernels need. What links it is image.py: no compiler or linker is needed.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import llvmlite.binding as llvm
import numpy as np

from ....core.errors import ArgumentError, ArgumentTypeError, WeftError
from ....core.locks import fork_safe_lock
from ....graph.state import State
from ...exporting import BESIDE, INSIDE, ExportedModel, ExportedTensor, ExportOptions
from ..codegen.target import sse2, target_named
from ..runtime.native.pool import pool_text
from ..runtime.native.sleep import futex
from ..runtime.objects import object_code
from ..runtime.threads import FUTEX
from . import threads
from .checks import write_checks
from .data import LibraryData
from .files import write_files
from .header import header_text
from .image import Address, Image, Word
from .instances import write_instances
from .processor import required
from .programs import ExportedProgram, ProgramTables
from .records import ABI_VERSION, DTYPES, INFO_BYTES, MODEL
from .routine import OPTIONAL, RuntimeModule
from .running import write_running
from .shared_library import write_shared_library
from .weights import Weights, read_weights

MATHEMATICS = frozenset({"fmod", "fmodf"})  # of libm; all else of C is in libc


class ExportError(WeftError, OSError):
    """A library cannot be written where it should be."""


def check_platform() -> None:
    """Raise where no libraries can be written: they are ELF files for x86-64."""
    machine = platform.machine().lower()
    if not sys.platform.startswith("linux") or machine not in ("x86_64", "amd64"):
        raise ArgumentError(
            f"export writes libraries for Linux on x86-64. This machine is {sys.platform} on "
            f"{machine}"
        )


def check_options(options: ExportOptions) -> None:
    """Raise if options make no sense."""
    if options.weights not in (INSIDE, BESIDE):
        raise ArgumentError(
            f'export: weights must be "{INSIDE}" or "{BESIDE}". Received: {options.weights!r:.60}'
        )
    prefix = options.prefix
    if not (prefix.isidentifier() and prefix.isascii()):
        raise ArgumentTypeError(
            f"export: prefix must be a name that C allows. Received: {prefix!r:.60}"
        )
    if options.path.suffix != ".so":
        raise ArgumentError(
            f"export: the file must end in .so; its header is written beside it. "
            f"Received: {str(options.path)!r}"
        )


def write_library(model: ExportedModel, options: ExportOptions) -> list[Path]:
    """Write a model as a shared library, its header, and its weights if they lie beside it.

    Return the paths. Files are written whole under other names, then renamed.
    """
    built = _Library(model, options)
    written = [options.path, options.path.with_suffix(".h")]
    _write_whole(written[0], built.write)
    _write_whole(written[1], lambda file: file.write(built.header().encode()))
    if built.beside:
        written.append(options.path.with_name(built.beside))
        _write_whole(written[2], built.write_weights)
    return written


class _Library:
    def __init__(self, model: ExportedModel, options: ExportOptions) -> None:
        self.model, self.options = model, options
        self.programs: Sequence[ExportedProgram] = model.programs
        self.target = target_named(options.target)
        self.data = LibraryData()
        self.weights = _weights_of(self.programs, model)
        apart = options.weights == BESIDE and self.weights.states
        self.beside = options.path.stem + ".safetensors" if apart else ""
        self.base = sse2(self.target.triple)
        self.module = RuntimeModule(self.base, options.prefix)

    def write(self, file: BinaryIO) -> None:
        """Write the library."""
        image = Image(threads.RENAMED)
        self._add_code(image)
        image.add_data("weft_workers", threads.worker_words())
        image.add_data("weft_model", self._model())
        self.data.add_to(image)
        if self.weights.states and not self.beside:
            image.add_blob("weft_weights", self.weights.data(), self.weights.nbytes)
        missing = image.undefined
        needed = ["libc.so.6", *(["libm.so.6"] if MATHEMATICS & set(missing) else [])]
        write_shared_library(
            file,
            image,
            exports=self.module.exports,
            soname=self.options.path.name,
            needed=needed,
            optional=OPTIONAL,
        )

    def write_weights(self, file: BinaryIO) -> None:
        """Write the file that lies beside the library."""
        file.write(self.weights.header)
        file.writelines(self.weights.data())

    # -- code --------------------------------------------------------------------------------------

    def _add_code(self, image: Image) -> None:
        _prepare_assembler()
        for write in (write_checks, write_running, write_files, write_instances):
            write(self.module)
        threads.write_threads(self.module)
        image.add_object(object_code(self.module.text(), self.base))
        sleep = futex(FUTEX[self.base.architecture])
        image.add_object(object_code(pool_text(self.base, sleep), self.base))
        added: set[str] = set()
        for program in self.programs:
            for name, text in program.modules.items():
                if name not in added:
                    entry = name == program.entry
                    code = object_code(text, self.target)
                    image.add_object(code, alone=f"{name}." if entry else "")
                    added.add(name)

    # -- tables ------------------------------------------------------------------------------------

    def _model(self) -> list[Word]:
        """Return the words of the record that everything else is found by."""
        data, model, weights = self.data, self.model, self.weights
        tables = ProgramTables(data, _numbers(self.programs))
        programs = [
            word for i, p in enumerate(self.programs) for word in self._program(tables, i, p)
        ]
        outputs = _outputs(model)
        kept = [n for s in weights.states for n in (s.offset, s.value.nbytes, int(s.changes))]
        features = required(self.target)
        words: dict[str, Word] = {
            "size|version": INFO_BYTES | ABI_VERSION << 32,
            "name": data.text(model.name),
            "target": data.text(self._target_name()),
            "weft": data.text(self.options.version),
            "beside": data.text(self.beside) if self.beside else 0,
            "inputs": self._infos(model.inputs),
            "input_count": len(model.inputs),
            "outputs": self._infos(outputs),
            "output_count": len(outputs),
            "states": self._infos(_states(weights)),
            "state_count": len(weights.states),
            "program_count": len(self.programs),
            "features": data.records(
                [w for f in features for w in (f.leaf, f.register, f.mask, data.text(f.name))]
            ),
            "feature_count": len(features),
            "programs": data.records(programs),
            "weights": Address("weft_weights") if weights.states and not self.beside else 0,
            "header": self._header_bytes(),
            "header_bytes": len(weights.header),
            "data_bytes": weights.nbytes,
            "kept": data.numbers(kept),
            "order": data.numbers(weights.order),
            "most_arguments": tables.most["arguments"],
            "most_entries": tables.most["entries"],
            "most_numbers": tables.most["numbers"],
            "stage_bytes": tables.stage_bytes,
            "dtype_names": data.records([*map(data.text, DTYPES), data.text("a number of none")]),
            "dtype_bytes": data.numbers([*map(_itemsize, DTYPES)]),
        }
        return [words[name] for name in MODEL]

    def _header_bytes(self) -> Address:
        """Return where the header of files of weights lies."""
        header = self.weights.header
        whole = [int.from_bytes(header[i : i + 8], "little") for i in range(0, len(header), 8)]
        return self.data.numbers(whole)

    def _program(self, tables: ProgramTables, i: int, program: ExportedProgram) -> list[Word]:
        entries = program.plan.entries
        assert len(entries) <= 1, "without calls of the host a run is one function"
        function: Word = Address(f"{program.entry}.{entries[0]}") if entries else 0
        shapes = [tensor.shapes[i] for tensor in self.model.inputs]
        return tables.record(program, shapes, function)

    def _infos(self, tensors: Iterable[ExportedTensor]) -> Address:
        words: list[Word] = []
        for tensor in tensors:
            shape = tensor.shape
            count = 1
            for size in shape:
                count *= size
            nbytes = -1 if -1 in shape else count * tensor.dtype.itemsize
            facts = DTYPES[tensor.dtype.name] | len(shape) << 32
            words += [self.data.text(tensor.name), self.data.numbers([*shape, 0]), facts, nbytes]
        return self.data.records(words)

    # -- for people --------------------------------------------------------------------------------

    def _target_name(self) -> str:
        return self.target.cpu if self.options.target == "native" else self.options.target

    def header(self) -> str:
        """Return the text of the C header."""
        options, model = self.options, self.model
        facts = {
            "model": model.name,
            "target": self._target_name(),
            "weights": self.beside or "inside",
            "written by": f"Weft {options.version}",
        }
        tensors = {
            "input": [*map(_described, model.inputs)],
            "output": [*map(_described, _outputs(model))],
            "state": [*map(_described, _states(self.weights))],
        }
        return header_text(options.prefix, options.path.name, facts, tensors)


def _described(tensor: ExportedTensor) -> tuple[str, str, tuple[int, ...]]:
    return tensor.name, tensor.dtype.name, tensor.shape


def _outputs(model: ExportedModel) -> list[ExportedTensor]:
    programs: Sequence[ExportedProgram] = model.programs
    return [
        ExportedTensor(
            name,
            programs[0].plan.fetches[i].dtype,
            tuple(program.shapes[i] for program in programs),
        )
        for i, name in enumerate(model.outputs)
    ]


def _states(weights: Weights) -> list[ExportedTensor]:
    return [ExportedTensor(s.name, s.value.dtype, (s.value.shape,)) for s in weights.states]


def _all_states(programs: Sequence[ExportedProgram]) -> dict[Any, State]:
    return {state.key: state for program in programs for state in program.plan.sources.states}


def _numbers(programs: Sequence[ExportedProgram]) -> dict[Any, int]:
    return {key: i for i, key in enumerate(_all_states(programs))}


def _weights_of(programs: Sequence[ExportedProgram], model: ExportedModel) -> Weights:
    states = _all_states(programs)
    changed = {
        program.plan.sources.states[number].key
        for program in programs
        for number, _ in program.plan.commits
    }
    return read_weights(list(states.values()), [model.states[key] for key in states], changed)


@cache
def _prepare_assembler() -> None:
    """Let LLVM understand instructions that IR has no words for: CPUID."""
    with fork_safe_lock("llvm"):
        llvm.initialize_native_asmparser()


def _itemsize(name: str) -> int:
    return 2 if name == "bfloat16" else np.dtype(name).itemsize


def _write_whole(path: Path, write: Callable[[BinaryIO], Any]) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "wb") as file:
            write(file)
        part.replace(path)
    except OSError as error:
        raise ExportError(f"export: {path} cannot be written: {error}") from None
    finally:
        with suppress(OSError):
            part.unlink()
