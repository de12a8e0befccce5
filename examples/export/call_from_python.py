"""Call an exported model from Python with ctypes and NumPy alone: Weft is not imported.

python examples/export/make_models.py out
python examples/export/call_from_python.py out/mlp.so out/mlp.bin
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64"),
)
Array = np.ndarray[Any, Any]
_Shape = ctypes.POINTER(ctypes.c_int64)


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("shape", _Shape),
        ("dtype", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
    )


class _TensorInfo(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("shape", _Shape),
        ("dtype", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("nbytes", ctypes.c_int64),
    )


class _Info(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("abi_version", ctypes.c_uint32),
        *((name, ctypes.c_char_p) for name in ("name", "target", "weft_version", "weights_file")),
        ("inputs", ctypes.POINTER(_TensorInfo)),
        ("input_count", ctypes.c_int64),
        ("outputs", ctypes.POINTER(_TensorInfo)),
        ("output_count", ctypes.c_int64),
        ("states", ctypes.POINTER(_TensorInfo)),
        ("state_count", ctypes.c_int64),
        ("program_count", ctypes.c_int64),
    )


TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, TASK, ctypes.c_void_p, ctypes.c_int64)


class _Options(ctypes.Structure):
    _fields_ = (
        ("struct_size", ctypes.c_uint32),
        ("abi_version", ctypes.c_uint32),
        ("threads", ctypes.c_int64),
        ("weights", ctypes.c_char_p),
        ("parallel_for", PARALLEL_FOR),
        ("user", ctypes.c_void_p),
        ("message", ctypes.c_char_p),
        ("message_bytes", ctypes.c_int64),
    )


class ModelError(RuntimeError):
    """A function of the library returned an error, whose number is `code`."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Model:
    """An instance of an exported model."""

    ABI = 1

    def __init__(
        self,
        path: str,
        *,
        prefix: str = "weft",
        threads: int = 0,
        weights: str | None = None,
        parallel_for: Any = None,
    ) -> None:
        self._library, self._prefix = ctypes.CDLL(path), prefix
        self._instance = ctypes.c_void_p()
        describe = self._function("describe", ctypes.POINTER(_Info))
        if self._function("abi_version", ctypes.c_uint32)() != self.ABI:
            raise ModelError(2, f"{path} has another version of the interface")
        self.info = describe().contents
        self._run = self._function("run", ctypes.c_int32)
        message = ctypes.create_string_buffer(512)
        self._callback = parallel_for or PARALLEL_FOR()
        options = _Options(
            ctypes.sizeof(_Options),
            self.ABI,
            threads,
            None if weights is None else str(weights).encode(),
            self._callback,
            None,
            ctypes.cast(message, ctypes.c_char_p),
            len(message),
        )
        opened = self._function("open", ctypes.c_int32)
        code = opened(ctypes.byref(options), ctypes.byref(self._instance))
        if code:
            raise ModelError(code, message.value.decode() or self.error_text(code))

    def __call__(self, *arrays: Array) -> list[Array]:
        """Return the outputs for inputs."""
        inputs, kept = _tensors(arrays)
        outputs = (_Tensor * self.info.output_count)()
        function = self._function("output_shapes", ctypes.c_int32)
        self.check(
            function(self._instance, inputs, _long(len(arrays)), outputs, _long(len(outputs)))
        )
        made = [np.empty(t.shape[: t.ndim], DTYPES[t.dtype]) for t in outputs]
        for tensor, array in zip(outputs, made, strict=True):
            tensor.data = array.ctypes.data
        self.run(inputs, outputs)
        del kept
        return made

    def run(self, inputs: Any, outputs: Any) -> None:
        """Run on arrays of tensors, as `tensors` makes them: what takes no time but the model's."""
        self.check(
            self._run(self._instance, inputs, _long(len(inputs)), outputs, _long(len(outputs)))
        )

    @property
    def states(self) -> dict[str, Array]:
        """Return all states: weights, and what runs have made of them."""
        found = {}
        for info in self.info.states[: self.info.state_count]:
            array = np.empty(info.shape[: info.ndim], DTYPES[info.dtype])
            (tensor,), kept = _tensors([array])
            get = self._function("get_state", ctypes.c_int32)
            self.check(get(self._instance, info.name, ctypes.byref(tensor)))
            found[info.name.decode()] = array
            del kept
        return found

    def set_states(self, values: Mapping[str, Array]) -> None:
        """Give states other values."""
        for name, array in values.items():
            (tensor,), kept = _tensors([array])
            put = self._function("set_state", ctypes.c_int32)
            self.check(put(self._instance, name.encode(), ctypes.byref(tensor)))
            del kept

    def save(self, path: str) -> None:
        """Write all states to a safetensors file."""
        self.check(self._function("save", ctypes.c_int32)(self._instance, str(path).encode()))

    def load(self, path: str) -> None:
        """Read all states from such a file."""
        self.check(self._function("load", ctypes.c_int32)(self._instance, str(path).encode()))

    def close(self) -> None:
        """Free the instance."""
        self._function("close", None)(self._instance)
        self._instance = ctypes.c_void_p()

    def check(self, code: int) -> None:
        """Raise if a function returned an error."""
        if code:
            message = self._function("message", ctypes.c_char_p)(self._instance)
            raise ModelError(code, message.decode() or self.error_text(code))

    def error_text(self, code: int) -> str:
        """Return what a code means."""
        text: bytes = self._function("error_text", ctypes.c_char_p)(code)
        return text.decode()

    def _function(self, name: str, returns: Any) -> Any:
        function = getattr(self._library, f"{self._prefix}_{name}")
        function.restype = returns
        return function


def tensors(arrays: Sequence[Array]) -> Any:
    """Return arrays as the library takes them; they must live as long as that is used."""
    made, kept = _tensors(arrays)
    made.kept = kept
    return made


def _tensors(arrays: Sequence[Array]) -> tuple[Any, list[Any]]:
    made, kept = (_Tensor * len(arrays))(), []
    for tensor, array in zip(made, arrays, strict=True):
        flat = np.asarray(array, order="C")
        shape = (ctypes.c_int64 * flat.ndim)(*flat.shape)
        tensor.data, tensor.shape = flat.ctypes.data, shape
        tensor.dtype, tensor.ndim = DTYPES.index(flat.dtype.name), flat.ndim
        kept += [flat, shape]
    return made, kept


_long = ctypes.c_int64


def read_arrays(path: str) -> tuple[list[Array], list[list[Array]]]:
    """Return the inputs that make_models.py wrote, and what Python computed of them in each run."""
    with open(path, "rb") as file:
        inputs, runs, outputs = struct.unpack("<3q", file.read(24))
        return (
            [_read_array(file) for _ in range(inputs)],
            [[_read_array(file) for _ in range(outputs)] for _ in range(runs)],
        )


def _read_array(file: BinaryIO) -> Array:
    dtype, ndim = struct.unpack("<2q", file.read(16))
    shape = struct.unpack(f"<{ndim}q", file.read(8 * ndim))
    kind = np.dtype(DTYPES[dtype])
    nbytes = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    return np.frombuffer(file.read(nbytes), kind).reshape(shape)


def main() -> int:
    """Run a model on given inputs, and compare every bit with what Python computed."""
    model = Model(sys.argv[1])
    info = model.info
    print(f"{info.name.decode()}, for {info.target.decode()}, {info.program_count} program(s)")
    inputs, runs = read_arrays(sys.argv[2])
    equal = all(
        found.tobytes() == expected.tobytes()
        for run in runs
        for found, expected in zip(model(*inputs), run, strict=True)
    )
    model.close()
    print("equal" if equal else "DIFFERENT")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
