"""Checkpoints that all processes write together, each its part, and that any number can read.

A checkpoint is a directory (see `weft/io/py`). Every process writes one file into a directory
under another name, all at the same time; the first one then writes the manifest and renames the
directory. So it appears whole or not at all, whoever is killed when. Processes that do not see the
directory, as there is no shared disk, hand their parts to the first.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple, SupportsIndex

import numpy as np

from ..core.tensor import Tensor
from ..io import (
    ArrayPart,
    CheckpointError,
    CheckpointManager,
    CheckpointWarning,
    SaveError,
    load_state,
    load_state_metadata,
    save_state,
)
from ..io.encode import decode_state, encode_parts, encode_plain
from ..io.parts import divided, part_name, plans_of, write_part, write_rest
from ..io.spans import ArraySpan, cut
from ..io.state import existing, read_arrays, replace_checkpoint, verify_some
from .errors import DistributedError
from .together import attempt, everyone, hand_arrays, raise_any, together
from .world import ProcessGroup, world

Array = np.ndarray[Any, Any]
_MARK: Final = "writers-meet-here"
_PATIENCE: Final = 5.0  # seconds until a network's disk has shown a new directory to all hosts


def save_checkpoint(
    directory: Any,
    state: Any,
    metadata: Mapping[str, Any] | None = None,
    *,
    group: ProcessGroup | None = None,
) -> None:
    """Write a nested state together: all processes of a group call it, with the same nest.

    What is the same on all processes (weights, of data-parallel training) is divided among them,
    and each writes a part. Of what is divided already each gives its `ArrayPart`. Numbers and text
    are those of the first process. `load_checkpoint` and `wf.io.load_state` read it.

    >>> import os, tempfile
    >>> import weft as wf
    >>> path = os.path.join(tempfile.mkdtemp(), "checkpoint")
    >>> save_checkpoint(path, {"w": wf.tensor([1.0, 2.0])}, {"step": 3})
    >>> wf.io.load_state(path), wf.io.load_state_metadata(path)
    ({'w': tensor([1., 2.])}, {'step': 3})
    """
    members = world() if group is None else group
    tree, whole, own = encode_parts(state)
    described = encode_plain(dict(metadata or {}), "metadata")
    _check_agreement(members, whole, own)
    held = _own_share(members, whole, own)
    writing = _Writing(members, held)
    if members.rank == 0:
        _lead(writing, directory, tree, described)
    else:
        writing.follow()


def load_checkpoint(directory: Any, *, like: Any = None, group: ProcessGroup | None = None) -> Any:
    """Return the state of a checkpoint; all processes of a group call it, in any number.

    like   a state whose `ArrayPart`s say which parts of arrays this process wants; all others it
           gets whole. Without it, everything is whole

    Each process checks some of the files; one that does not see the directory gets the state from
    the first.
    """
    members = world() if group is None else group
    seen = everyone(members, _is_there(directory))
    if not seen[0]:
        return load_state(directory)  # says what is missing
    _verifytogether(members, directory, seen)
    found = attempt(lambda: _read(directory, like)) if seen[members.rank or 0] else (None, None)
    if not all(seen):
        found = _pass_on(members, directory, seen, found, like)
    raise_any(members, found[1], CheckpointError)
    return found[0]


def consolidate(source: Any, target: Any, *, group: ProcessGroup | None = None) -> None:
    """Write a checkpoint in parts as one of a single file of tensors; the first process does it.

    >>> import os, tempfile
    >>> import weft as wf
    >>> folder = tempfile.mkdtemp()
    >>> save_checkpoint(os.path.join(folder, "parts"), {"w": wf.tensor([1.0])}, {"step": 1})
    >>> consolidate(os.path.join(folder, "parts"), os.path.join(folder, "whole"))
    >>> sorted(os.listdir(os.path.join(folder, "whole")))
    ['manifest.json', 'state.json', 'state.safetensors']
    """
    members = world() if group is None else group
    error = None
    if members.rank == 0:
        _, error = attempt(
            lambda: save_state(target, load_state(source), load_state_metadata(source))
        )
    raise_any(members, error, SaveError)


# -- saving ----------------------------------------------------------------------------------------


class HeldPart(NamedTuple):
    """What a process writes of an array: values, with dtype and shape of the whole and a place."""

    values: Array
    about: tuple[str, tuple[int, ...], ArraySpan]


class Written(NamedTuple):
    """What a process has written: its file, and of which arrays it has what."""

    name: str
    file: dict[str, Any] | None
    held: dict[str, tuple[str, tuple[int, ...], ArraySpan]]


class _Writing:
    """What a process does while a checkpoint is written."""

    def __init__(self, members: ProcessGroup, held: dict[str, HeldPart]) -> None:
        self.members = members
        self.rank = members.rank or 0
        self.name = part_name(self.rank, members.size)
        self.held = held

    def follow(self) -> None:
        """Write this process's part into the directory that the first one made."""
        folder = everyone(self.members, None)[0]
        if folder is not None:
            with suppress(SaveError):  # the first process has it too, and tells all
                self.write(Path(folder))
        raise_any(self.members, None, SaveError)

    def write(self, folder: Path) -> list[Written]:
        """Write this part; return what all wrote."""
        seen = everyone(self.members, self.rank == 0 or _meets(folder))
        file, error = None, None
        if seen[self.rank]:
            file, error = attempt(lambda: write_part(folder, self.name, self.arrays))
        taken, problem = self._hand_over(folder, seen)
        held = {name: item.about for name, item in self.held.items()}
        said = everyone(self.members, (Written(self.name, file, held), error or problem))
        errors = {i: e for i, (_, e) in enumerate(said) if e is not None}
        if errors:
            raise together(errors, SaveError)
        return [one._replace(file=taken.get(i, one.file)) for i, (one, _) in enumerate(said)]

    @property
    def arrays(self) -> dict[str, Array]:
        """What this process writes."""
        return {name: item.values for name, item in self.held.items()}

    def _hand_over(self, folder: Path, seen: list[bool]) -> tuple[dict[int, Any], str | None]:
        """Let the first process write the parts of those who do not see the directory."""
        blind = [i for i, sees in enumerate(seen) if not sees]
        written: dict[int, Any] = {}
        problem: str | None = None
        if blind and self.rank == 0:
            _warn_blind(folder, blind)
        for i in blind:
            arrays = hand_arrays(self.members, self.arrays if self.rank == i else None, i)
            if self.rank == 0 and arrays is not None:
                write = partial(write_part, folder, part_name(i, self.members.size), arrays)
                written[i], error = attempt(write)
                problem = problem or error
        return written, problem


def _lead(writing: _Writing, directory: Any, tree: Any, metadata: Any) -> None:
    """Make the directory, write with the others, and rename it at the end."""

    def write(folder: Path) -> None:
        (folder / _MARK).touch()
        everyone(writing.members, str(folder))
        met.append(True)
        written = writing.write(folder)
        (folder / _MARK).unlink()
        files = {said.name: said.file for said in written}
        plans = plans_of((said.name, said.held) for said in written)
        write_rest(folder, tree, files, plans, metadata)

    met: list[bool] = []
    _, error = attempt(lambda: replace_checkpoint(directory, write))
    if not met:  # the others still wait for the name of the directory
        everyone(writing.members, None)
    raise_any(writing.members, error, SaveError)


def _own_share(
    members: ProcessGroup, whole: Mapping[str, Array], own: Mapping[str, ArrayPart]
) -> dict[str, HeldPart]:
    """Return what this process writes."""
    held: dict[str, HeldPart] = {}
    for name, span in divided(whole, members.size)[members.rank or 0]:
        array = whole[name]
        held[name] = HeldPart(cut(array, span), (array.dtype.name, array.shape, span))
    for name, part in own.items():
        values = part.values._value if isinstance(part.values, Tensor) else part.values
        held[name] = HeldPart(values, (values.dtype.name, part.shape, part.span))
    return held


def _check_agreement(
    members: ProcessGroup, whole: Mapping[str, Array], own: Mapping[str, ArrayPart]
) -> None:
    """Refuse states that are not of the same arrays on all processes."""
    lines = [f"{name}: {array.dtype}{list(array.shape)}" for name, array in whole.items()]
    lines += [f"{name}: part of {list(part.shape)}" for name, part in own.items()]
    sums = everyone(members, hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest())
    if len(set(sums)) == 1:
        return
    said = [set(lines_of) for lines_of in everyone(members, sorted(lines))]
    other = next(i for i, one in enumerate(said) if one != said[0])
    only = sorted(said[0] ^ said[other])[:3]
    raise DistributedError(
        f"save_checkpoint: rank 0 and rank {other} have different arrays: {', '.join(only)}"
    )


def _meets(folder: Path) -> bool:
    """Tell whether this process sees a directory that the first one has made."""
    until = time.monotonic() + _PATIENCE
    while not (folder / _MARK).exists():
        if not folder.parent.exists() or time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _warn_blind(folder: Path, blind: list[int]) -> None:
    warnings.warn(
        f"ranks {', '.join(map(str, blind))} do not see {folder.parent}, so their parts go through "
        "rank 0, one after another: a directory on a shared disk is faster",
        CheckpointWarning,
        stacklevel=5,
    )


# -- loading ---------------------------------------------------------------------------------------


def _is_there(directory: Any) -> bool:
    try:
        existing(directory)
    except FileNotFoundError:
        return False
    return True


def _verifytogether(members: ProcessGroup, directory: Any, seen: list[bool]) -> None:
    """Check the files of a checkpoint, each process some of them."""
    error = None
    if seen[members.rank or 0]:
        readers = [i for i, sees in enumerate(seen) if sees]
        place = readers.index(members.rank or 0)
        _, error = attempt(lambda: verify_some(directory, place, len(readers)))
    raise_any(members, error, CheckpointError)


def _read(directory: Any, like: Any) -> Any:
    return decode_state(*read_arrays(directory, _wanted(like)))


def _wanted(like: Any) -> dict[str, ArraySpan]:
    """Return which parts of arrays a state names."""
    if like is None:
        return {}
    return {name: part.span for name, part in encode_parts(like)[2].items()}


def _pass_on(
    members: ProcessGroup, directory: Any, seen: list[bool], found: Any, like: Any
) -> tuple[Any, str | None]:
    """Send the state from the first process to those that do not see the directory."""
    rank = members.rank or 0
    asked = everyone(members, None if seen[rank] else _wanted(like))
    for i, spans in enumerate(asked):
        if spans is None:
            continue
        tree, arrays, error = None, {}, None
        if rank == 0:
            read, error = attempt(partial(read_arrays, directory, spans))
            tree, arrays = read if read is not None else (None, {})
        tree, error = everyone(members, (tree, error))[0]
        given = hand_arrays(members, arrays if rank == 0 else None, 0, target=i)
        if rank == i:
            state = None if error else decode_state(tree, given or {})
            found = state, error
    result: tuple[Any, str | None] = found
    return result


class DistributedCheckpointManager(CheckpointManager):
    """Save, find, keep and remove the checkpoints of a run that all processes make together.

    As `wf.io.CheckpointManager`, whose methods must be called on all processes: the first one
    numbers, finds and removes, all write and read.
    """

    def save(
        self, step: SupportsIndex, state: Any, metrics: Mapping[str, Any] | None = None
    ) -> Path:
        """Write a checkpoint together, remove those no longer kept, and return its path."""
        members = world()
        path, metadata = self.next_save(step, metrics) if members.rank == 0 else (None, None)
        path, metadata = everyone(members, (path, metadata))[0]
        save_checkpoint(path, state, metadata)
        if members.rank == 0:
            self.remove_others(path)
        everyone(members, None)  # nobody looks for the latest before the old ones are gone
        return Path(path)

    def latest(self) -> Path | None:
        """Return the newest good checkpoint."""
        return self._found_by_first(super().latest)

    def best(self) -> Path | None:
        """Return the good checkpoint with the best metric."""
        return self._found_by_first(super().best)

    def load(self, path: Any = None, *, like: Any = None) -> Any:
        """Return the state saved at a path, by default the latest good one."""
        found = self.latest() if path is None else path
        if found is None:
            raise CheckpointError(f"there is no good checkpoint in {self.directory}")
        return load_checkpoint(found, like=like)

    def _found_by_first(self, find: Callable[[], Path | None]) -> Path | None:
        members = world()
        found = attempt(find) if members.rank == 0 else (None, None)
        found = everyone(members, found)[0]
        if found[1] is not None:
            raise CheckpointError(found[1])
        path: Path | None = found[0]
        return path
