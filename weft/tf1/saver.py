"""`tf.train.Saver`: the values of variables in files, and back."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..io import save
from .checkpoint_files import (
    OWN,
    CheckpointReader,
    checkpoint_exists,
    get_checkpoint_mtimes,
    remove_checkpoint,
    update_checkpoint_state,
)
from .errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from .graph import Graph, get_default_graph
from .keys import GraphKeys
from .meta_graph import MetaGraph, export_meta_graph, read_meta_graph
from .shapes import listed
from .variable import Variable

__all__ = ["Saver", "SaverDef", "import_meta_graph"]


class SaverDef:
    """Names of the versions of checkpoints; Weft's own are safetensors, whichever is asked for."""

    LEGACY, V1, V2 = 0, 1, 2


class Saver:
    """Saves and restores variables: `saver.save(sess, "run/model.ckpt", global_step=step)`.

    var_list      the variables, as a list or under names of their own; by default all of the graph
    max_to_keep   how many checkpoints are kept, the newest; None or 0: all
    keep_checkpoint_every_n_hours   keep one of so many hours for good

    A checkpoint is one safetensors file, `<prefix>.safetensors`, which other programs read; nothing
    of it is a pickle. `restore` reads TensorFlow's own checkpoints (version 2) as well.
    """

    def __init__(
        self,
        var_list: Any = None,
        reshape: bool = False,
        sharded: bool = False,
        max_to_keep: int | None = 5,
        keep_checkpoint_every_n_hours: float = 10000.0,
        name: str | None = None,
        restore_sequentially: bool = False,
        saver_def: Any = None,
        builder: Any = None,
        defer_build: bool = False,
        allow_empty: bool = False,
        write_version: Any = SaverDef.V2,
        pad_step_number: bool = False,
        save_relative_paths: bool = False,
        filename: str | None = None,
    ) -> None:
        self._given = var_list
        self._reshape = reshape
        self._max_to_keep = max_to_keep or 0
        self._keep_seconds = keep_checkpoint_every_n_hours * 3600
        self._next_kept = time.time() + self._keep_seconds
        self._allow_empty = allow_empty
        self._pad_step_number = pad_step_number
        self._last: list[tuple[str, float]] = []
        self._named: dict[str, Any] | None = None
        self._graph = get_default_graph()
        if not defer_build:
            self.build()

    def build(self) -> None:
        """Fix which variables are saved."""
        if self._named is not None:
            return
        given = self._given
        if given is None:
            given = [
                *self._graph.get_collection(GraphKeys.GLOBAL_VARIABLES),
                *self._graph.get_collection(GraphKeys.SAVEABLE_OBJECTS),
            ]
        self._named = _by_name(given)
        if not self._named and not self._allow_empty:
            raise ValueError("No variables to save")

    # -- saving ------------------------------------------------------------------------------------

    def save(
        self,
        sess: Any,
        save_path: Any,
        global_step: Any = None,
        latest_filename: str | None = None,
        meta_graph_suffix: str = "meta",
        write_meta_graph: bool = True,
        write_state: bool = True,
        strip_default_attrs: bool = False,
        save_debug_info: bool = False,
    ) -> str:
        """Write a checkpoint; return its prefix, which ends in the step if one is given."""
        self.build()
        prefix = self._prefix(sess, save_path, global_step)
        folder = os.path.dirname(prefix)
        if folder and not os.path.isdir(folder):
            raise ValueError(
                f"Parent directory of {os.fspath(save_path)} doesn't exist, can't save."
            )
        save(prefix + OWN, self._values(sess), {"written_by": "tf.train.Saver"})
        if write_state:
            self._note(prefix, meta_graph_suffix)
            update_checkpoint_state(
                folder or ".", prefix, [path for path, _ in self._last], latest_filename
            )
        if write_meta_graph:
            self.export_meta_graph(f"{prefix}.{meta_graph_suffix}", graph=sess.graph)
        return prefix

    def _prefix(self, sess: Any, save_path: Any, global_step: Any) -> str:
        prefix = str(os.fspath(save_path))
        if global_step is None:
            return prefix
        if not isinstance(global_step, (int, np.integer)):
            global_step = sess.run(global_step)
        number = int(global_step)
        return f"{prefix}-{number:08d}" if self._pad_step_number else f"{prefix}-{number}"

    def _values(self, sess: Any) -> dict[str, Any]:
        found = {}
        for name, variable in (self._named or {}).items():
            value = sess.read_variable(variable)
            if value is None:
                raise FailedPreconditionError(
                    None,
                    variable.op,
                    f"Attempting to use uninitialized value {variable.op.name}\n"
                    "\t [[node save/SaveV2]]",
                )
            found[name] = value
        return found

    def _note(self, prefix: str, meta_graph_suffix: str) -> None:
        """Remember a checkpoint, and remove those that are too many."""
        self._last = [entry for entry in self._last if entry[0] != prefix]
        self._last.append((prefix, time.time()))
        if not self._max_to_keep or len(self._last) <= self._max_to_keep:
            return
        oldest, written = self._last.pop(0)
        if written > self._next_kept:
            self._next_kept += self._keep_seconds
            return
        remove_checkpoint(oldest, meta_graph_suffix=meta_graph_suffix)

    # -- restoring ---------------------------------------------------------------------------------

    def restore(self, sess: Any, save_path: Any) -> None:
        """Give the variables the values of a checkpoint, of Weft's or TensorFlow's."""
        self.build()
        if save_path is None:
            raise ValueError("Can't load save_path when it is None.")
        prefix = os.fspath(save_path)
        if not checkpoint_exists(prefix):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {prefix}")
        reader = CheckpointReader(prefix)
        values = {name: self._read(reader, name, v) for name, v in (self._named or {}).items()}
        for name, value in values.items():
            sess.write_variable((self._named or {})[name], value)

    def _read(self, reader: CheckpointReader, name: str, variable: Any) -> np.ndarray[Any, Any]:
        if not reader.has_tensor(name):
            raise NotFoundError(
                None,
                variable.op,
                f"Key {name} not found in checkpoint {reader.prefix}, which has "
                f"{', '.join(reader.names()[:20])}\n\t [[node save/RestoreV2]]",
            )
        value = reader.get_tensor(name)
        sizes = variable.shape.as_list() if variable.shape.sizes is not None else list(value.shape)
        if self._reshape and value.size == np.prod(sizes):
            value = value.reshape(sizes)
        if not variable.shape.is_compatible_with(value.shape):
            raise InvalidArgumentError(
                None,
                variable.op,
                f"Assign requires shapes of both tensors to match. lhs shape= "
                f"{listed(variable.shape)} rhs shape= [{','.join(map(str, value.shape))}]"
                f"\n\t [[node save/Assign ({name})]]",
            )
        if value.dtype != variable.dtype.dtype:
            raise InvalidArgumentError(
                None,
                variable.op,
                f"tensor_name = {name}; expected dtype {variable.dtype.name} does not equal "
                f"original dtype {value.dtype.name}\n\t [[node save/RestoreV2]]",
            )
        return value

    # -- which ones there are ----------------------------------------------------------------------

    @property
    def last_checkpoints(self) -> list[str]:
        """Return the checkpoints that are kept, the oldest first."""
        return [path for path, _ in self._last]

    def set_last_checkpoints(self, last_checkpoints: Sequence[str]) -> None:
        """Say which checkpoints there are, the oldest first."""
        self._last = [(path, 0.0) for path in last_checkpoints]

    def set_last_checkpoints_with_time(
        self, last_checkpoints_with_time: Sequence[tuple[str, float]]
    ) -> None:
        """Say which checkpoints there are, and when they were written."""
        self._last = list(last_checkpoints_with_time)

    def recover_last_checkpoints(self, checkpoint_paths: Sequence[str]) -> None:
        """Take those of some checkpoints that are still there."""
        there = [path for path in checkpoint_paths if checkpoint_exists(path)]
        self._last = list(zip(there, get_checkpoint_mtimes(there), strict=True))

    # -- graphs ------------------------------------------------------------------------------------

    def export_meta_graph(
        self,
        filename: str | None = None,
        collection_list: Any = None,
        as_text: bool = False,
        export_scope: Any = None,
        clear_devices: bool = False,
        clear_extraneous_savers: bool = False,
        graph: Graph | None = None,
        **others: Any,
    ) -> MetaGraph:
        """Write down which graph the checkpoint belongs to; see `import_meta_graph`."""
        names = {key: variable.op.name for key, variable in (self._named or {}).items()}
        return export_meta_graph(filename, graph=graph or self._graph, saved=names)

    def as_saver_def(self) -> Saver:
        """Return what describes the saver: itself."""
        return self

    def to_proto(self, export_scope: Any = None) -> Saver:
        """Return what describes the saver: itself."""
        return self


def _by_name(given: Any) -> dict[str, Any]:
    """Return variables under the names that files have for them."""
    if isinstance(given, Mapping):
        found = {str(name): _checked(variable) for name, variable in given.items()}
    else:
        found = {}
        for variable in given:
            key = _checked(variable).name.removesuffix(":0")
            if found.setdefault(key, variable) is not variable:
                raise ValueError(f"At least two variables have the same name: {key}")
    return found


def _checked(variable: Any) -> Any:
    if not isinstance(variable, Variable):
        raise TypeError(
            f"Variable to save is not a Variable: {variable!r:.80} ({type(variable).__name__})"
        )
    return variable


def import_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    **others: Any,
) -> Saver | None:
    """Make the graph of a checkpoint the default one again; return a saver of its variables.

    The operations of a graph are functions of Weft's, which files do not hold: this works while the
    process that wrote the file lives, and the default graph is empty. Otherwise build the graph by
    the program that made it, and restore with a Saver.
    """
    graph, saved = read_meta_graph(meta_graph_or_file, import_scope)
    if not saved:
        return None
    variables = {v.op.name: v for v in graph.get_collection(GraphKeys.GLOBAL_VARIABLES)}
    return Saver({key: variables[name] for key, name in saved.items() if name in variables})
