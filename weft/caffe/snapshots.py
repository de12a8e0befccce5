"""Files of solvers: where one stands, as .solverstate or .solverstate.h5, beside the weights.

Besides what Caffe keeps (iteration, history), a snapshot holds where the inputs and the random
numbers stand, in a field of its own that Caffe passes over: a run that is killed and resumed goes
on as if nothing had been.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..core.imports import require
from ..data import DataFileError
from ..io.disk import replace_file
from .binary import parse_message_file, serialize_message
from .blobs import array_blob, blob_array
from .errors import CaffeError, CaffemodelError
from .inputs_protocol import Array
from .message import Message, SolverState

HDF5 = ".h5"
_MOST_BLOBS = 100_000  # of a history, which a damaged file may claim to be of any length


class Standing(NamedTuple):
    """Where a solver stands: what its files hold besides the weights."""

    iteration: int
    learned_net: str
    current_step: int
    history: list[Array]
    ours: dict[str, Any]  # where inputs and random numbers stand; empty in files of Caffe's


def snapshot_name(prefix: str, iteration: int, kind: str, *, hdf5: bool) -> Path:
    """Return the name of a file of a snapshot; `kind` is "caffemodel" or "solverstate"."""
    return Path(f"{prefix}_iter_{iteration}.{kind}{HDF5 if hdf5 else ''}")


def save_standing(path: Path, standing: Standing) -> None:
    """Write where a solver stands; the name says in which format."""
    replace_file(path, lambda new: _WRITERS[path.suffix == HDF5](new, standing))


def load_standing(path: Any) -> Standing:
    """Read where a solver stands."""
    file = Path(path)
    if not file.is_file():
        raise CaffeError(f"File not found: {file}; a snapshot is a .solverstate file")
    return _READERS[file.suffix == HDF5](file)


def learned_net_of(path: Any, standing: Standing) -> Path:
    """Return the weights that belong to a snapshot: where they were written, or beside it."""
    named = Path(standing.learned_net)
    if named.is_file():
        return named
    beside = Path(path).parent / named.name
    if not named.name or not beside.is_file():
        raise CaffeError(
            f"{os.fspath(path)}: its weights are in {standing.learned_net!r}, which is neither "
            f"there nor beside it"
        )
    return beside


# -- binary protocol buffers -----------------------------------------------------------------------


def _write_binary(path: Path, standing: Standing) -> None:
    state = SolverState(
        iter=standing.iteration,
        learned_net=standing.learned_net,
        current_step=standing.current_step,
        weft=json.dumps(standing.ours).encode(),
    )
    for array in standing.history:
        state.history.append(array_blob(array))
    path.write_bytes(serialize_message(state))


def _read_binary(path: Path) -> Standing:
    state: Message = parse_message_file(path, SolverState)
    history = [blob_array(b, f"{path}: history {i}") for i, b in enumerate(state.history)]
    ours = _parsed(path, state.weft) if state.has("weft") else {}
    return Standing(state.iter, state.learned_net, state.current_step, history, ours)


def _parsed(path: Path, content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise CaffemodelError(f"{path}: the state of the inputs is damaged ({error})") from None
    if not isinstance(found, dict):
        raise CaffemodelError(f"{path}: the state of the inputs is damaged")
    return found


# -- HDF5 ------------------------------------------------------------------------------------------


def _write_hdf5(path: Path, standing: Standing) -> None:
    library = require("h5py", "caffe", "writing HDF5 snapshots")
    with library.File(path, "w") as file:
        file["iter"] = np.array([standing.iteration], np.int32)
        file["learned_net"] = np.bytes_(standing.learned_net.encode())
        file["current_step"] = np.array([standing.current_step], np.int32)
        file["weft"] = np.frombuffer(json.dumps(standing.ours).encode(), np.uint8)
        group = file.create_group("history")
        for number, array in enumerate(standing.history):
            group[str(number)] = array


def _read_hdf5(path: Path) -> Standing:
    library = require("h5py", "caffe", "reading HDF5 snapshots")
    try:
        with library.File(path, "r") as file:
            group = file["history"]
            if len(group) > _MOST_BLOBS:
                raise ValueError(f"a history of {len(group)} blobs")
            history = [np.asarray(group[str(i)][()], np.float32) for i in range(len(group))]
            ours = _parsed(path, file["weft"][()].tobytes()) if "weft" in file else {}
            name = bytes(file["learned_net"][()]).decode()
            iteration, current = (int(np.ravel(file[n])[0]) for n in ("iter", "current_step"))
            return Standing(iteration, name, current, history, ours)
    except CaffeError:
        raise
    except Exception as error:  # of any kind: h5py hands out what each step of a read stumbles on
        raise DataFileError(path, None, f"no snapshot of a solver, or damaged: {error}") from None


_WRITERS = {False: _write_binary, True: _write_hdf5}
_READERS = {False: _read_binary, True: _read_hdf5}
