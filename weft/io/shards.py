"""Finding the files behind a path: one file, a HuggingFace shard index, or a directory of either.

A shard index, `model.safetensors.index.json`, says which file holds which tensor:
`{"metadata": {...}, "weight_map": {"layer.0.weight": "model-00001-of-00002.safetensors", ...}}`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from .encode import parse
from .errors import CheckpointError, FileFormatError, FileMissingError, ReadError
from .foreign import PICKLE_SUFFIXES, refuse_pickle_suffix
from .tensorfile import Array, read_tensors

INDEX_SUFFIX: Final = ".safetensors.index.json"
MANIFEST: Final = "manifest.json"
_USUAL_NAMES: Final = ("model.safetensors", "model" + INDEX_SUFFIX)
_MAX_INDEX_BYTES: Final = 100_000_000  # the format's own limit for a header


class ShardIndex(NamedTuple):
    """Which file holds which tensor, and the metadata of the whole."""

    path: Path
    files: dict[str, list[str]]  # file name -> names of its tensors
    metadata: dict[str, Any]


def locate(path: Path) -> Path:
    """Return the weight file or shard index that a path means."""
    if not path.is_dir():
        return path
    if (path / MANIFEST).is_file():
        raise CheckpointError(
            f"{path} is a checkpoint, which holds more than tensors; read it with "
            "wf.io.load_state(path), e.g. wf.io.load_state(path)['model']"
        )
    return _weights_in(path)


def is_index(path: Path) -> bool:
    """Tell whether a path names a shard index."""
    return path.name.endswith(INDEX_SUFFIX)


def read_index(path: Path) -> ShardIndex:
    """Read and check a shard index."""
    data = parse(_index_text(path), str(path))
    weight_map = data.get("weight_map") if isinstance(data, dict) else None
    if not isinstance(weight_map, dict) or not weight_map:
        raise FileFormatError(f"{path} has no 'weight_map' from tensor names to file names")
    files: dict[str, list[str]] = {}
    for name, file in weight_map.items():
        files.setdefault(_checked_shard(path, name, file), []).append(name)
    metadata = data.get("metadata")
    return ShardIndex(path, files, metadata if isinstance(metadata, dict) else {})


def read_shards(index: ShardIndex) -> dict[str, Array]:
    """Return the arrays of all shards; nothing is read unless every shard is there."""
    folder = index.path.parent
    absent = [file for file in sorted(index.files) if not (folder / file).is_file()]
    if absent:
        more = f" and {len(absent) - 5} more" if len(absent) > 5 else ""
        raise FileMissingError(
            f"{index.path} names {len(index.files)} files, of which {len(absent)} are missing in "
            f"{folder}: {', '.join(absent[:5])}{more}"
        )
    arrays: dict[str, Array] = {}
    for file, names in sorted(index.files.items()):
        arrays.update(_read_shard(index, file, names))
    return arrays


def _read_shard(index: ShardIndex, file: str, names: list[str]) -> dict[str, Array]:
    found = read_tensors(index.path.parent / file)
    absent = [name for name in names if name not in found]
    if absent:
        raise FileFormatError(
            f"{index.path} says that {file} holds {absent[0]!r}, but it does not "
            f"({len(absent)} such names): index and files do not belong together"
        )
    return {name: found[name] for name in names}


def _index_text(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            text = file.read(_MAX_INDEX_BYTES + 1)
    except FileNotFoundError:
        raise FileMissingError(f"there is no file {path}") from None
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error}") from error
    if len(text) > _MAX_INDEX_BYTES:
        raise FileFormatError(f"{path} is larger than any shard index: over {_MAX_INDEX_BYTES} B")
    return text


def _checked_shard(index: Path, name: str, file: Any) -> str:
    """Return a shard's file name if it stays in the directory of the index."""
    plain = isinstance(file, str) and file not in ("", "..") and "\\" not in file
    if not plain or Path(file).name != file:
        raise FileFormatError(
            f"{index}: the file of {name!r} must be a plain file name beside the index. "
            f"Received: {file!r}"
        )
    refuse_pickle_suffix(index.parent / file)
    return str(file)


def _weights_in(folder: Path) -> Path:
    for name in _USUAL_NAMES:
        if (folder / name).is_file():
            return folder / name
    names = sorted(entry.name for entry in folder.iterdir())
    indexes = [name for name in names if name.endswith(INDEX_SUFFIX)]
    found = indexes or [name for name in names if name.endswith(".safetensors")]
    if len(found) == 1:
        return folder / found[0]
    if found:
        raise FileFormatError(
            f"{folder} holds {len(found)} weight files ({', '.join(found[:5])}) and no index; name "
            "the file to load"
        )
    for name in names:
        if Path(name).suffix.lower() in PICKLE_SUFFIXES:
            refuse_pickle_suffix(folder / name)
    raise FileMissingError(f"{folder} holds no .safetensors file and no {_USUAL_NAMES[1]}")
