"""Checkpoints on disk: the file that names the newest one, and readers of their contents.

A checkpoint of Weft's is `<prefix>.safetensors`; those of TensorFlow (version 2, `<prefix>.index`)
are read too. The file `checkpoint` beside them is TensorFlow's own, in the text form of messages.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.errors import WeftError
from ..io import load
from ..io.bundle import TensorBundle
from .dtypes import as_dtype
from .errors import DataLossError, NotFoundError

__all__ = [
    "CheckpointReader",
    "CheckpointState",
    "NewCheckpointReader",
    "checkpoint_exists",
    "generate_checkpoint_state_proto",
    "get_checkpoint_mtimes",
    "get_checkpoint_state",
    "latest_checkpoint",
    "list_variables",
    "load_checkpoint",
    "load_variable",
    "remove_checkpoint",
    "update_checkpoint_state",
]

OWN = ".safetensors"
_FIELD = re.compile(r'^\s*(\w+)\s*:\s*(?:"((?:[^"\\]|\\.)*)"|([-+.\w]+))\s*$')
_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}


# -- the file `checkpoint` -------------------------------------------------------------------------


class CheckpointState:
    """What the file `checkpoint` says: the newest checkpoint, and all that are kept."""

    def __init__(
        self,
        model_checkpoint_path: str = "",
        all_model_checkpoint_paths: Sequence[str] = (),
        all_model_checkpoint_timestamps: Sequence[float] = (),
        last_preserved_timestamp: float = 0.0,
    ) -> None:
        self.model_checkpoint_path = model_checkpoint_path
        self.all_model_checkpoint_paths = list(all_model_checkpoint_paths)
        self.all_model_checkpoint_timestamps = list(all_model_checkpoint_timestamps)
        self.last_preserved_timestamp = last_preserved_timestamp

    def __str__(self) -> str:
        lines = [f'model_checkpoint_path: "{_escaped(self.model_checkpoint_path)}"']
        lines += [
            f'all_model_checkpoint_paths: "{_escaped(path)}"'
            for path in self.all_model_checkpoint_paths
        ]
        return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        found = match[1]
        return chr(int(found, 8)) if found[0] in "01234567" else _LETTERS.get(found, found)

    return _ESCAPE.sub(one, text)


def get_checkpoint_state(
    checkpoint_dir: Any, latest_filename: str | None = None
) -> CheckpointState | None:
    """Return what the file `checkpoint` of a folder says; None if there is none."""
    path = os.path.join(os.fspath(checkpoint_dir), latest_filename or "checkpoint")
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    fields: dict[str, list[str]] = {}
    for line in lines:
        match = _FIELD.match(line)
        if match:
            text = match[3] if match[2] is None else _unescaped(match[2])
            fields.setdefault(match[1], []).append(text)
    if not fields.get("model_checkpoint_path"):
        return None
    folder = os.fspath(checkpoint_dir)
    return CheckpointState(
        _joined(folder, fields["model_checkpoint_path"][-1]),
        [_joined(folder, path) for path in fields.get("all_model_checkpoint_paths", [])],
    )


def _joined(folder: str, path: str) -> str:
    return path if os.path.isabs(path) else os.path.join(folder, path)


def generate_checkpoint_state_proto(
    save_dir: Any,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    all_model_checkpoint_timestamps: Any = None,
    last_preserved_timestamp: Any = None,
) -> CheckpointState:
    """Return what the file `checkpoint` is to say; paths are relative where the folder's is."""
    paths = list(all_model_checkpoint_paths or [])
    if not paths or paths[-1] != model_checkpoint_path:
        paths.append(model_checkpoint_path)
    folder = os.fspath(save_dir)
    if not os.path.isabs(folder):
        paths = [path if os.path.isabs(path) else os.path.relpath(path, folder) for path in paths]
    return CheckpointState(paths[-1], paths)


def update_checkpoint_state(
    save_dir: Any,
    model_checkpoint_path: str,
    all_model_checkpoint_paths: Sequence[str] | None = None,
    latest_filename: str | None = None,
    all_model_checkpoint_timestamps: Any = None,
    last_preserved_timestamp: Any = None,
) -> None:
    """Write the file `checkpoint` of a folder; it is never there by half."""
    state = generate_checkpoint_state_proto(
        save_dir, model_checkpoint_path, all_model_checkpoint_paths
    )
    path = os.path.join(os.fspath(save_dir), latest_filename or "checkpoint")
    temporary = f"{path}.tmp{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(str(state))
    os.replace(temporary, path)


def latest_checkpoint(checkpoint_dir: Any, latest_filename: str | None = None) -> str | None:
    """Return the prefix of the newest checkpoint in a folder; None if there is none."""
    state = get_checkpoint_state(checkpoint_dir, latest_filename)
    if state is None or not checkpoint_exists(state.model_checkpoint_path):
        return None
    return state.model_checkpoint_path


def checkpoint_exists(checkpoint_prefix: Any) -> bool:
    """Tell whether there is a checkpoint with a prefix."""
    prefix = os.fspath(checkpoint_prefix)
    return any(os.path.isfile(f"{prefix}{end}") for end in (OWN, ".index", ""))


def get_checkpoint_mtimes(checkpoint_prefixes: Sequence[Any]) -> list[float]:
    """Return when checkpoints were written; those that are not there are left out."""
    return [
        os.path.getmtime(f"{prefix}{end}")
        for prefix in map(os.fspath, checkpoint_prefixes)
        for end in [next((e for e in (OWN, ".index", "") if os.path.isfile(f"{prefix}{e}")), None)]
        if end is not None
    ]


def remove_checkpoint(
    checkpoint_prefix: Any, checkpoint_format_version: Any = None, meta_graph_suffix: str = "meta"
) -> None:
    """Remove the files of a checkpoint."""
    prefix = os.fspath(checkpoint_prefix)
    shards = glob.glob(f"{glob.escape(prefix)}.data-?????-of-?????")
    for path in [f"{prefix}{OWN}", f"{prefix}.index", f"{prefix}.{meta_graph_suffix}", *shards]:
        if os.path.isfile(path):
            os.remove(path)


# -- contents --------------------------------------------------------------------------------------


class CheckpointReader:
    """The tensors of a checkpoint by name: `tf.train.NewCheckpointReader(prefix)`."""

    def __init__(self, prefix: Any) -> None:
        self.prefix = os.fspath(prefix)
        self._own: dict[str, Any] | None = None
        self._bundle: TensorBundle | None = None
        try:
            if os.path.isfile(self.prefix + OWN):
                self._own = load(self.prefix + OWN)
            else:
                self._bundle = TensorBundle(self.prefix)
        except FileNotFoundError:
            raise NotFoundError(
                None,
                None,
                f"Unsuccessful TensorSliceReader constructor: Failed to find any matching files "
                f"for {self.prefix}",
            ) from None
        except WeftError as error:
            raise DataLossError(None, None, str(error)) from error

    def names(self) -> list[str]:
        """Return the names of the tensors, sorted."""
        if self._bundle is not None:
            return self._bundle.names()
        return sorted(self._own or ())

    def has_tensor(self, tensor_name: str) -> bool:
        """Tell whether there is a tensor of a name."""
        if self._bundle is not None:
            return tensor_name in self._bundle
        return tensor_name in (self._own or ())

    def get_tensor(self, tensor_name: str) -> np.ndarray[Any, Any]:
        """Return a tensor as an array."""
        if not self.has_tensor(tensor_name):
            raise NotFoundError(None, None, f"Key {tensor_name} not found in checkpoint")
        if self._bundle is None:
            return np.asarray((self._own or {})[tensor_name].numpy())
        try:
            return self._bundle.read(tensor_name)
        except WeftError as error:
            raise DataLossError(None, None, str(error)) from error

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """Return the shapes of all tensors."""
        if self._bundle is not None:
            return {name: list(self._bundle.shape(name)) for name in self.names()}
        return {name: list(value.shape) for name, value in (self._own or {}).items()}

    def get_variable_to_dtype_map(self) -> dict[str, Any]:
        """Return the types of all tensors."""
        if self._bundle is not None:
            return {name: as_dtype(self._bundle.dtype(name)) for name in self.names()}
        return {name: as_dtype(value.dtype) for name, value in (self._own or {}).items()}

    def debug_string(self) -> bytes:
        """Return a list of what there is."""
        types, shapes = self.get_variable_to_dtype_map(), self.get_variable_to_shape_map()
        return "\n".join(f"{n} ({types[n].name}) {shapes[n]}" for n in self.names()).encode()


def NewCheckpointReader(filepattern: Any) -> CheckpointReader:
    """Return a reader of the checkpoint with a prefix."""
    return CheckpointReader(filepattern)


def load_checkpoint(ckpt_dir_or_file: Any) -> CheckpointReader:
    """Return a reader of a checkpoint, or of the newest in a folder."""
    path = os.fspath(ckpt_dir_or_file)
    found = latest_checkpoint(path) if os.path.isdir(path) else path
    if found is None:
        raise ValueError(
            f"Couldn't find 'checkpoint' file or checkpoints in given directory {path}"
        )
    return CheckpointReader(found)


def load_variable(ckpt_dir_or_file: Any, name: str) -> np.ndarray[Any, Any]:
    """Return a tensor of a checkpoint."""
    return load_checkpoint(ckpt_dir_or_file).get_tensor(name.removesuffix(":0"))


def list_variables(ckpt_dir_or_file: Any) -> list[tuple[str, list[int]]]:
    """Return the names and shapes of the tensors of a checkpoint."""
    return sorted(load_checkpoint(ckpt_dir_or_file).get_variable_to_shape_map().items())
