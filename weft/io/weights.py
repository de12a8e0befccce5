"""Saving and loading named tensors: `save`, `load`, `load_metadata`, `load_into`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.tensor import Tensor, wrap
from ..nn import Module
from .disk import StrPath, replace_file, sweep
from .encode import decode_state, dump, encode_plain, parse
from .errors import FileFormatError
from .foreign import checked_path, checked_target
from .shards import MANIFEST, is_index, locate, read_index, read_shards
from .state import load_state_metadata
from .tensorfile import as_array, read_tensors, read_text, write_tensors

if TYPE_CHECKING:
    from ..nn import LoadReport

# Metadata of the format is text by name. Weft keeps its own as JSON under one name; "format" tells
# other readers that names and layouts are PyTorch's (transformers refuses files without it).
_METADATA: Final = "weft"
_FORMAT: Final = {"format": "pt"}

Rename = Callable[[str], str | None]


def save(
    path: StrPath, tensors: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
) -> None:
    """Write named tensors (or NumPy arrays) to a safetensors file, with metadata beside them.

    The file appears complete or not at all, and an existing one is kept if anything fails. The
    metadata may hold what JSON can, tuples, and non-finite numbers.

    >>> import os, tempfile
    >>> import weft as wf
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> save(path, {"weight": wf.tensor([1.0, 2.0])}, {"epoch": 3})
    >>> load(path), load_metadata(path)
    ({'weight': tensor([1., 2.])}, {'epoch': 3})
    """
    if isinstance(path, Mapping | Module):
        raise ArgumentTypeError("save: the path comes first: wf.save(path, tensors)")
    target = checked_target("save", path)
    arrays = {name: as_array(name, value) for name, value in _checked_tensors(tensors).items()}
    described = encode_plain(_checked_metadata(metadata), "metadata")
    text = {**_FORMAT, _METADATA: dump(described).decode()}
    replace_file(target, lambda temporary: write_tensors(temporary, arrays, text))
    sweep(target.parent)


def load(path: StrPath) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file, a HuggingFace shard index, or a directory of those.

    Pickles (.pt, .pth, .bin, .pkl) are refused: reading one can run code.
    """
    source = locate(checked_path(path))
    arrays = read_shards(read_index(source)) if is_index(source) else read_tensors(source)
    return {name: wrap(array) for name, array in arrays.items()}


def load_metadata(path: StrPath) -> dict[str, Any]:
    """Return the metadata of a file that `save` wrote, of any safetensors file, or a checkpoint."""
    source = checked_path(path)
    if (source / MANIFEST).is_file():
        return load_state_metadata(source)
    source = locate(source)
    if is_index(source):
        return read_index(source).metadata
    return _unpacked(read_text(source), source)


def load_into(
    module: Module, path: StrPath, *, strict: bool = True, rename: Rename | None = None
) -> LoadReport:
    """Load weights into a module, report what did not fit, and raise for that if `strict`.

    `rename(name)` turns a name of the file into one of the module; None leaves the tensor out. A
    tensor that the module holds under several names may stand in the file under only one of them,
    as HuggingFace files have it.
    """
    if not isinstance(module, Module):
        raise ArgumentTypeError(
            f"load_into: expected a Module, then a path. Received: {type(module).__name__}"
        )
    state = _renamed(load(path), rename)
    _complete_shared(module, state)
    return module.load_state_dict(state, strict=strict)


# -- helpers ---------------------------------------------------------------------------------------


def _unpacked(text: dict[str, str], source: Path) -> dict[str, Any]:
    """Return Weft's metadata if the file has any, else the text that another writer put there."""
    if _METADATA not in text:
        return dict(text)
    metadata = decode_state(parse(text[_METADATA], f"the metadata of {source}"), {})
    if not isinstance(metadata, dict):
        raise FileFormatError(f"the metadata of {source} is no dictionary. Received: {metadata!r}")
    return metadata


def _renamed(state: dict[str, Tensor], rename: Rename | None) -> dict[str, Tensor]:
    if rename is None:
        return state
    result: dict[str, Tensor] = {}
    for old, tensor in state.items():
        new = rename(old)
        if new is not None and new in result:
            raise ArgumentError(f"load_into: rename gives the name {new!r} to two tensors")
        if new is not None:
            result[new] = tensor
    return result


def _complete_shared(module: Module, state: dict[str, Tensor]) -> None:
    """Put a shared tensor under all its names if the state has it under one."""
    names_of: dict[int, list[str]] = {}
    for name, tensor in _all_names(module, ""):
        names_of.setdefault(id(tensor), []).append(name)
    for names in names_of.values():
        known = next((name for name in names if name in state), None)
        if known is not None:
            state.update({name: state[known] for name in names if name not in state})


def _all_names(module: Module, prefix: str) -> Iterator[tuple[str, Tensor]]:
    """Yield every tensor under each of its names, which `named_parameters` does not."""
    for name, parameter in module.named_parameters(recurse=False):
        yield prefix + name, parameter
    for name, child in module.named_children():
        yield from _all_names(child, f"{prefix}{name}.")


def _checked_tensors(tensors: Any) -> Mapping[str, Any]:
    if isinstance(tensors, Mapping):
        return tensors
    hint = "model.state_dict()" if isinstance(tensors, Module) else "{'name': tensor}"
    raise ArgumentTypeError(
        f"save: expected a dictionary of tensors such as {hint}. Received: {type(tensors).__name__}"
    )


def _checked_metadata(metadata: Any) -> Mapping[str, Any]:
    if metadata is None or isinstance(metadata, Mapping):
        return metadata or {}
    raise ArgumentTypeError(
        f"save: metadata must be a dictionary. Received: {type(metadata).__name__}"
    )
