"""torch.save and torch.load: PyTorch's zip files, written and read without running their pickles.

A file of PyTorch's is a zip archive: a pickle that names what is in it, and the bytes of each
storage in a file of its own. Python's pickles are programs that may call anything; the reader here
knows the names that weights and settings need, each standing for something harmless, and refuses
every other one.
"""

from __future__ import annotations

import io
import os
import pickle
import struct
import zipfile
from collections import OrderedDict, defaultdict
from typing import Any, ClassVar

import numpy as np

from ..core import dtype as dt
from ..core import tensor as core
from . import dtypes
from .absent import absent
from .names import names
from .nn.parameter import Parameter
from .sizes import Size
from .storage import relatives
from .tensor import wrap

STORAGES = {
    "FloatStorage": dt.float32,
    "DoubleStorage": dt.float64,
    "HalfStorage": dt.float16,
    "LongStorage": dt.int64,
    "IntStorage": dt.int32,
    "ShortStorage": dt.int16,
    "CharStorage": dt.int8,
    "ByteStorage": dt.uint8,
    "BoolStorage": dt.bool_,
    "BFloat16Storage": "bfloat16",
}
NAMES = {str(dtype): name for name, dtype in STORAGES.items()}
Path = str | os.PathLike[str]


class UnpicklingError(pickle.UnpicklingError):
    """A file holds something besides tensors and plain data; nothing of it was run."""


# -- writing ------------------------------------------------------------------------------------


class _Global:
    """Something that the pickle names, as PyTorch's reader will find it."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name


class _StorageType:
    """The class of a storage, which a persistent id holds."""

    def __init__(self, name: str) -> None:
        self.name = name


_PythonPickler: Any = vars(pickle)["_Pickler"]  # Python's writer in Python, which can be extended


class _Writer(_PythonPickler):  # type: ignore[misc]  # of any class
    """Writes tensors as PyTorch does: by the number of their storage, sizes and strides."""

    dispatch: ClassVar[dict[Any, Any]] = dict(_PythonPickler.dispatch)

    def __init__(self, file: Any) -> None:
        super().__init__(file, protocol=2)
        self.storages: dict[Any, tuple[str, np.ndarray[Any, Any]]] = {}

    def save(self, obj: Any, save_persistent_id: bool = True) -> None:
        """Write one object."""
        if isinstance(obj, _Global):
            self.write(pickle.GLOBAL + f"{obj.module}\n{obj.name}\n".encode())
        elif isinstance(obj, core.Tensor):
            self._save_tensor(obj)
        elif isinstance(obj, (np.dtype, dtypes.dtype)):
            self.write(pickle.GLOBAL + f"torch\n{obj.name}\n".encode())
        elif isinstance(obj, Size):
            self._save_call(_Global("torch", "Size"), (tuple(obj),))
        else:
            super().save(obj, save_persistent_id)

    def _save_call(self, function: _Global, args: tuple[Any, ...]) -> None:
        self.save(function)
        self.save(args)
        self.write(pickle.REDUCE)

    def _save_tensor(self, tensor: Any) -> None:
        if id(tensor) in self.memo:
            self.write(self.get(self.memo[id(tensor)][0]))
            return
        if isinstance(tensor, Parameter):
            data: Any = (_TensorParts(tensor, False), tensor.requires_grad, OrderedDict())
            self._save_call(_Global("torch._utils", "_rebuild_parameter"), data)
        else:
            self._save_parts(tensor, tensor.requires_grad and tensor.is_leaf)
        self.memoize(tensor)

    def _save_parts(self, tensor: Any, requires_grad: bool) -> None:
        root, where = _memory(tensor)
        key = self._storage_key(root)
        args: Any = (
            _Persistent(key),
            where.offset,
            tuple(int(n) for n in tensor.shape),
            tuple(int(n) for n in where.strides),
            requires_grad,
            OrderedDict(),
        )
        self._save_call(_Global("torch._utils", "_rebuild_tensor_v2"), args)

    def _storage_key(self, root: Any) -> tuple[str, str, str, str, int]:
        first = min([id(root), *[id(other) for other in relatives(root)]])
        if first not in self.storages:
            array = np.ascontiguousarray(root.detach()._read())
            self.storages[first] = str(len(self.storages)), array
        number, array = self.storages[first]
        kind = NAMES.get(str(array.dtype))
        if kind is None:
            raise TypeError(f"torch.save cannot write a tensor of dtype {array.dtype}")
        return "storage", kind, number, "cpu", array.size


class _TensorParts:
    """A tensor to be written as such, though it is a parameter."""

    def __init__(self, tensor: Any, requires_grad: bool) -> None:
        self.tensor, self.requires_grad = tensor, requires_grad


class _Persistent:
    """Where a storage is."""

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key


def _save_tensor_parts(self: _Writer, obj: _TensorParts) -> None:
    self._save_parts(obj.tensor, obj.requires_grad)


def _save_persistent(self: _Writer, obj: _Persistent) -> None:
    tag, kind, number, where, count = obj.key
    self.save((tag, _Global("torch", kind), number, where, count))
    self.write(pickle.BINPERSID)


_Writer.dispatch[_TensorParts] = _save_tensor_parts
_Writer.dispatch[_Persistent] = _save_persistent


def _memory(tensor: Any) -> tuple[Any, Any]:
    """Return the tensor whose memory one shows, and where in it."""
    from .geometry import geometry_of  # noqa: PLC0415  (beside what needs it)

    root, where = tensor, geometry_of(tensor)
    while getattr(root, "is_view_of", None) is not None:
        root = root.is_view_of
    return root, where


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Write an object to a file that PyTorch can read: nests of tensors and plain data.

    >>> import io
    >>> from weft import torch
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'w': tensor([1., 1.])}
    """
    if isinstance(f, (str, os.PathLike)) and not os.path.isdir(os.path.dirname(f) or "."):
        raise RuntimeError(f"Parent directory {os.path.dirname(f)} does not exist.")
    content = io.BytesIO()
    writer = _Writer(content)
    writer.dump(_plain(obj))
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        _put(archive, "archive/data.pkl", content.getvalue())
        _put(archive, "archive/byteorder", b"little")
        for number, array in writer.storages.values():
            _put(archive, f"archive/data/{number}", array.tobytes())
        _put(archive, "archive/version", b"3\n")


def _put(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add a file whose content begins at a multiple of 64 bytes, as PyTorch's do."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    here = archive.fp.tell() if archive.fp is not None else 0
    start = here + 30 + len(name)
    room = -(start + 4) % 64
    info.extra = struct.pack("<HH", 0x4246, room) + b"Z" * room
    archive.writestr(info, content)


def _plain(obj: Any) -> Any:
    """Return an object with modules and optimizers refused, which are code and not data."""
    from ..nn import Module  # noqa: PLC0415  (to tell what it is)

    if isinstance(obj, Module):
        raise TypeError(
            "torch.save of a whole module would save code; save module.state_dict() instead"
        )
    return obj


# -- reading ------------------------------------------------------------------------------------


class _Storage:
    """The bytes of a storage, as an array."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array


class _Kind:
    """A class of storages that a pickle names."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype


class _Reader(pickle.Unpickler):
    """Reads pickles that name nothing but what is in the table."""

    def __init__(self, content: bytes, read: Any) -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8")
        self._read_storage = read
        self._storages: dict[str, _Storage] = {}

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a name; refuse all that are unknown."""
        if module in ("torch", "torch.storage") and name in STORAGES:
            return _Kind(STORAGES[name])
        if module == "torch" and name in _DTYPES:
            return dtypes.named(name)
        found = _KNOWN.get((module, name))
        if found is None:
            raise UnpicklingError(
                f"the file names {module}.{name}, which is neither a tensor nor plain data; it is "
                "not run. Save a state dictionary, or convert the file where it was made"
            )
        return found

    def persistent_load(self, pid: Any) -> _Storage:
        """Return the storage that an id names."""
        _, kind, key, _, count = pid
        if key not in self._storages:
            dtype = dt.as_dtype(kind.dtype)
            self._storages[key] = _Storage(np.frombuffer(self._read_storage(key), dtype, count))
        return self._storages[key]


_DTYPES = frozenset(names("bool uint8 int8 int16 int32 int64 float16 float32 float64 bfloat16"))


def _rebuilt_tensor(
    storage: _Storage,
    offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool = False,
    hooks: Any = None,
    metadata: Any = None,
) -> Any:
    array = storage.array
    last = (
        offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if 0 not in size else 0
    )
    if offset < 0 or last >= max(array.size, 1) or any(s < 0 for s in stride):
        raise UnpicklingError("a tensor reaches beyond its storage; the file is damaged")
    steps = tuple(s * array.itemsize for s in stride)
    window = np.lib.stride_tricks.as_strided(array[offset:], tuple(size), steps)
    made = wrap(np.array(window))
    return made.requires_grad_() if requires_grad else made


def _rebuilt_parameter(data: Any, requires_grad: bool, hooks: Any = None, state: Any = None) -> Any:
    return Parameter(data, requires_grad)


def _numpy_scalar(dtype: Any, content: Any) -> Any:
    raise UnpicklingError("the file holds NumPy scalars; save them as Python numbers")


_KNOWN: dict[tuple[str, str], Any] = {
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "defaultdict"): defaultdict,
    ("torch._utils", "_rebuild_tensor_v2"): _rebuilt_tensor,
    ("torch._utils", "_rebuild_tensor"): _rebuilt_tensor,
    ("torch._utils", "_rebuild_parameter"): _rebuilt_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): _rebuilt_parameter,
    ("torch", "Size"): Size,
    ("torch", "device"): str,
    ("builtins", "set"): set,
    ("builtins", "list"): list,
    ("builtins", "dict"): dict,
    ("builtins", "int"): int,
    ("builtins", "float"): float,
    ("__builtin__", "set"): set,
    ("collections", "Counter"): dict,
}


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **_: Any,
) -> Any:
    """Read what `torch.save` wrote, here or in PyTorch; no code of the file is run."""
    try:
        archive = zipfile.ZipFile(f)
    except zipfile.BadZipFile:
        raise UnpicklingError(
            "the file is no zip archive: files of PyTorch before 1.6 are pickles, which are not "
            "run; save it again with a newer PyTorch"
        ) from None
    with archive:
        names = archive.namelist()
        found = [name for name in names if name.endswith("/data.pkl") or name == "data.pkl"]
        if len(found) != 1:
            raise UnpicklingError("the archive holds no data.pkl: it is not PyTorch's")
        folder = found[0].removesuffix("data.pkl")
        order = archive.read(f"{folder}byteorder") if f"{folder}byteorder" in names else b"little"
        if order != b"little":
            raise UnpicklingError("the file was written on a machine of another byte order")
        reader = _Reader(archive.read(found[0]), lambda key: archive.read(f"{folder}data/{key}"))
        try:
            return reader.load()
        except UnpicklingError:
            raise
        except Exception as error:  # whatever a damaged pickle leads to
            raise UnpicklingError(
                f"the file is damaged ({type(error).__name__}: {error})"
            ) from None


__getattr__ = absent(globals(), {})
