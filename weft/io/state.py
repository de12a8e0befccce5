"""A checkpoint: a directory with a nested state, its checksums, and metadata.

    state.safetensors   every tensor and array of the state
    state.json          the nest they stand in, and all other values
    manifest.json       sizes and SHA-256 of both files, the metadata, and its own checksum

One that several processes wrote together has a file of tensors from each (see parts.py).

The directory is written under another name and renamed, so under its own name it is complete; the
checksums find what a disk or a copy spoiled later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..core.errors import ArgumentError
from .disk import StrPath, Writer, previous_of, replace_directory, resolve_target, sweep
from .encode import decode_state, dump, encode_plain, encode_state, parse
from .errors import CheckpointError, FileFormatError, FileMissingError, ReadError, SaveError
from .parts import FORMAT, TREE, array_plans, describe, is_part, read_parts, sha256
from .parts import VERSION as PARTS_VERSION
from .shards import MANIFEST
from .spans import ArraySpan, cut
from .tensorfile import Array, read_tensors, write_tensors

TENSORS: Final = "state.safetensors"
_VERSION: Final = 1
_MAX_MANIFEST_BYTES: Final = 100_000_000


def save_state(directory: StrPath, state: Any, metadata: Mapping[str, Any] | None = None) -> None:
    """Write a nested state (dictionaries, lists, tensors, arrays, numbers, text) as a directory.

    The directory appears complete or not at all; one that is already there is replaced only then.

    >>> import os, tempfile
    >>> import weft as wf
    >>> path = os.path.join(tempfile.mkdtemp(), "checkpoint")
    >>> save_state(path, {"model": {"w": wf.tensor([1.0])}, "betas": (0.9, 0.999)})
    >>> load_state(path)
    {'model': {'w': tensor([1.])}, 'betas': (0.9, 0.999)}
    """
    checkpoint_target(directory)  # before the state is looked at, which may take long
    tree, arrays = encode_state(state)
    described = encode_plain(dict(metadata or {}), "metadata")
    replace_checkpoint(directory, lambda folder: _write(folder, dump(tree), arrays, described))


def replace_checkpoint(directory: StrPath, write: Writer) -> None:
    """Let `write(folder)` make a checkpoint, and put it in its place when it is complete."""
    target = checkpoint_target(directory)
    make_parent(target)
    replace_directory(target, write)
    sweep(target.parent)


def load_state(directory: StrPath) -> Any:
    """Return the state that `save_state` wrote, after checking every checksum."""
    verified_manifest(existing(directory))
    return decode_state(*read_arrays(directory))


def read_arrays(
    directory: StrPath, spans: Mapping[str, ArraySpan] | None = None
) -> tuple[Any, dict[str, Array]]:
    """Return the nest of a checkpoint and its arrays, some of which may be wanted in part.

    Its files are not checked against the manifest.
    """
    folder = existing(directory)
    manifest = checked_manifest(folder)
    tree = parse(_read(folder / TREE), str(folder / TREE))
    wanted = spans or {}
    if manifest["version"] == PARTS_VERSION:
        return tree, read_parts(folder, manifest, wanted)
    arrays = read_tensors(folder / TENSORS)
    absent = sorted(wanted.keys() - arrays.keys())
    if absent:
        raise CheckpointError(f"{folder} has no array {absent[0]!r}")
    return tree, {**arrays, **{name: cut(arrays[name], span) for name, span in wanted.items()}}


def load_state_metadata(directory: StrPath) -> dict[str, Any]:
    """Return the metadata that `save_state` was given."""
    return read_manifest(existing(directory))


def verify(folder: Path) -> dict[str, Any]:
    """Return a checkpoint's metadata if the whole checkpoint is good; else say what is wrong."""
    return _metadata_of(verified_manifest(folder))


def verified_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a checkpoint whose files are all as it says."""
    manifest = checked_manifest(folder)
    for name in _files_of(manifest, folder):
        verify_file(folder, name, manifest["files"].get(name))
    return manifest


def verify_some(directory: StrPath, index: int, count: int) -> None:
    """Check every `count`-th file of a checkpoint, from `index` on: others check the rest."""
    folder = existing(directory)
    manifest = checked_manifest(folder)
    for name in _files_of(manifest, folder)[index::count]:
        verify_file(folder, name, manifest["files"].get(name))


def _files_of(manifest: Mapping[str, Any], folder: Path) -> list[str]:
    """Return the files that a checkpoint must have."""
    if manifest["version"] == _VERSION:
        return [TENSORS, TREE]
    array_plans(manifest, folder)  # says if arrays are not whole
    return sorted({TREE, *manifest["files"]})


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return a checkpoint's metadata without reading its other files."""
    return _metadata_of(checked_manifest(folder))


# -- writing ---------------------------------------------------------------------------------------


def _write(folder: Path, tree: bytes, arrays: Mapping[str, Array], metadata: Any) -> None:
    write_tensors(folder / TENSORS, arrays, {})
    (folder / TREE).write_bytes(tree)
    manifest = {
        "format": FORMAT,
        "version": _VERSION,
        "files": {name: describe(folder / name) for name in (TENSORS, TREE)},
        "metadata": metadata,
    }
    manifest["sha256"] = hashlib.sha256(dump(manifest)).hexdigest()
    (folder / MANIFEST).write_bytes(dump(manifest))


def checkpoint_target(directory: StrPath) -> Path:
    """Return the directory to write; refuse one whose replacement would lose other files."""
    target = resolve_target(directory)
    if not target.name:
        raise ArgumentError(f"save_state: cannot write to {target}; name a directory in it")
    if target.exists() and not target.is_dir():
        raise ArgumentError(f"save_state: {target} is a file; choose another name")
    if target.is_dir():
        ours = {TENSORS, TREE, MANIFEST}
        names = [entry.name for entry in target.iterdir()]
        others = sorted(name for name in names if name not in ours and not is_part(name))
        if others:
            raise ArgumentError(
                f"save_state: {target} holds other things than a checkpoint ({others[0]!r}), and "
                "would be replaced as a whole; choose another name"
            )
    return target


def make_parent(target: Path) -> None:
    """Make the directory that a checkpoint stands in."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SaveError(
            error.errno or 0,
            f"cannot make the directory {target.parent}: {error.strerror}; choose another one",
        ) from error


# -- reading ---------------------------------------------------------------------------------------


def existing(directory: StrPath) -> Path:
    """Return the directory, or what it was if a crash interrupted its replacement."""
    folder = resolve_target(directory)
    if folder.is_dir():
        return folder
    previous = previous_of(folder)
    if previous.is_dir():
        return previous
    raise FileMissingError(f"there is no checkpoint {folder}")


def checked_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a checkpoint, itself sound."""
    path = folder / MANIFEST
    if not path.is_file():
        raise CheckpointError(f"{folder} has no {MANIFEST}: it is incomplete, or no checkpoint")
    manifest = parse(_read(path, _MAX_MANIFEST_BYTES), str(path))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CheckpointError(f"{path} is not the manifest of a Weft checkpoint")
    if manifest.get("version") not in (_VERSION, PARTS_VERSION):
        raise CheckpointError(
            f"{folder} is a checkpoint of version {manifest.get('version')!r}; this Weft reads "
            f"versions up to {PARTS_VERSION}: upgrade Weft to read it"
        )
    digest = manifest.pop("sha256", None)
    if digest != hashlib.sha256(dump(manifest)).hexdigest():
        raise CheckpointError(f"{path} is damaged: its checksum differs")
    if not isinstance(manifest.get("files"), dict):
        raise CheckpointError(f"{path} lists no files")
    return manifest


def _metadata_of(manifest: dict[str, Any]) -> dict[str, Any]:
    metadata = decode_state(manifest.get("metadata"), {})
    return metadata if isinstance(metadata, dict) else {}


def verify_file(folder: Path, name: str, expected: Any) -> None:
    """Say what is wrong with a file of a checkpoint, if anything is."""
    path = folder / name
    if not isinstance(expected, dict):
        raise CheckpointError(f"{folder / MANIFEST} does not list {name}")
    if not path.is_file():
        raise CheckpointError(f"{folder} is incomplete: {name} is missing")
    size = path.stat().st_size
    if size != expected.get("bytes"):
        raise CheckpointError(
            f"{path} has {size} bytes instead of {expected.get('bytes')}: it was cut off or changed"
        )
    try:
        digest = sha256(path)
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error}") from error
    if digest != expected.get("sha256"):
        raise CheckpointError(f"{path} is damaged: its checksum differs from the manifest's")


def _read(path: Path, limit: int | None = None) -> bytes:
    try:
        with path.open("rb") as file:
            text = file.read() if limit is None else file.read(limit + 1)
    except OSError as error:
        raise ReadError(f"cannot read {path}: {error}") from error
    if limit is not None and len(text) > limit:
        raise FileFormatError(f"{path} is larger than {limit} bytes and cannot be a manifest")
    return text
