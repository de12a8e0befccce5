"""A checkpoint: a directory with a nested state, its checksums, and metadata.

    state.safetensors   every tensor and array of the state
    state.json          the nest they stand in, and all other values
    manifest.json       sizes and SHA-256 of both files, the metadata, and its own checksum

The directory is written under another name and renamed, so under its own name it is complete; the
checksums find what a disk or a copy spoiled later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..core.errors import ArgumentError
from .disk import StrPath, previous_of, replace_directory, resolve_target, sweep
from .encode import decode_state, dump, encode_plain, encode_state, parse
from .errors import CheckpointError, FileFormatError, FileMissingError, ReadError, SaveError
from .shards import MANIFEST
from .tensorfile import Array, read_tensors, write_tensors

TENSORS: Final = "state.safetensors"
TREE: Final = "state.json"
_FORMAT: Final = "weft-checkpoint"
_VERSION: Final = 1
_MAX_MANIFEST_BYTES: Final = 10_000_000


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
    target = _checked_target(directory)
    tree, arrays = encode_state(state)
    described = encode_plain(dict(metadata or {}), "metadata")
    _make_parent(target)
    replace_directory(target, lambda folder: _write(folder, dump(tree), arrays, described))
    sweep(target.parent)


def load_state(directory: StrPath) -> Any:
    """Return the state that `save_state` wrote, after checking every checksum."""
    folder = _existing(directory)
    verify(folder)
    tree = parse(_read(folder / TREE), str(folder / TREE))
    return decode_state(tree, read_tensors(folder / TENSORS))


def load_state_metadata(directory: StrPath) -> dict[str, Any]:
    """Return the metadata that `save_state` was given."""
    return read_manifest(_existing(directory))


def verify(folder: Path) -> dict[str, Any]:
    """Return a checkpoint's metadata if the whole checkpoint is good; else say what is wrong."""
    manifest = _checked_manifest(folder)
    for name in (TENSORS, TREE):
        _verify_file(folder, name, manifest["files"].get(name))
    return _metadata_of(manifest)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return a checkpoint's metadata without reading its other files."""
    return _metadata_of(_checked_manifest(folder))


# -- writing ---------------------------------------------------------------------------------------


def _write(folder: Path, tree: bytes, arrays: Mapping[str, Array], metadata: Any) -> None:
    write_tensors(folder / TENSORS, arrays, {})
    (folder / TREE).write_bytes(tree)
    manifest = {
        "format": _FORMAT,
        "version": _VERSION,
        "files": {name: _describe(folder / name) for name in (TENSORS, TREE)},
        "metadata": metadata,
    }
    manifest["sha256"] = hashlib.sha256(dump(manifest)).hexdigest()
    (folder / MANIFEST).write_bytes(dump(manifest))


def _describe(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": _sha256(path)}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checked_target(directory: StrPath) -> Path:
    """Return the directory to write; refuse one whose replacement would lose other files."""
    target = resolve_target(directory)
    if not target.name:
        raise ArgumentError(f"save_state: cannot write to {target}; name a directory in it")
    if target.exists() and not target.is_dir():
        raise ArgumentError(f"save_state: {target} is a file; choose another name")
    if target.is_dir():
        ours = {TENSORS, TREE, MANIFEST}
        others = sorted(entry.name for entry in target.iterdir() if entry.name not in ours)
        if others:
            raise ArgumentError(
                f"save_state: {target} holds other things than a checkpoint ({others[0]!r}), and "
                "would be replaced as a whole; choose another name"
            )
    return target


def _make_parent(target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SaveError(
            error.errno or 0,
            f"cannot make the directory {target.parent}: {error.strerror}; choose another one",
        ) from error


# -- reading ---------------------------------------------------------------------------------------


def _existing(directory: StrPath) -> Path:
    """Return the directory, or what it was if a crash interrupted its replacement."""
    folder = resolve_target(directory)
    if folder.is_dir():
        return folder
    previous = previous_of(folder)
    if previous.is_dir():
        return previous
    raise FileMissingError(f"there is no checkpoint {folder}")


def _checked_manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    if not path.is_file():
        raise CheckpointError(f"{folder} has no {MANIFEST}: it is incomplete, or no checkpoint")
    manifest = parse(_read(path, _MAX_MANIFEST_BYTES), str(path))
    if not isinstance(manifest, dict) or manifest.get("format") != _FORMAT:
        raise CheckpointError(f"{path} is not the manifest of a Weft checkpoint")
    if manifest.get("version") != _VERSION:
        raise CheckpointError(
            f"{folder} is a checkpoint of version {manifest.get('version')!r}; this Weft reads "
            f"version {_VERSION}: upgrade Weft to read it"
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


def _verify_file(folder: Path, name: str, expected: Any) -> None:
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
        digest = _sha256(path)
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
