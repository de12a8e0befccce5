"""What a worker does at each step: fetch what is new of the parameters, leave a gradient."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ...core.row_sparse import RowSparse
from ...core.tensor import Tensor
from ..errors import DistributedError
from ..launcher.heartbeat import pulse
from .layout import ABSENT, DENSE, STATE, WORDS, Key, ServerLayout, WindowRegion
from .windows import Array, SharedWindow

_FIRST, _LONGEST = 0.00005, 0.002  # seconds between looks at a server


class ServerConnection:
    """One server, as a worker sees it."""

    def __init__(self, window: SharedWindow, rank: int, layout: ServerLayout, worker: int) -> None:
        self._window = window
        self.rank = rank
        self._layout = layout
        self._worker = worker
        self._steps = self._wanted = 0
        self._seen = -1  # the version that was fetched last
        self.version = 0

    @property
    def keys(self) -> tuple[Key, ...]:
        """The parameters that the server has."""
        return self._layout.keys

    def fetch(self, params: Sequence[Tensor]) -> None:
        """Wait until this worker may begin, and fetch what has changed of the parameters."""
        self._steps += 1
        self._tell("asked", self._steps)
        with pulse.waiting(f"a fetch from server {self.rank}"):
            self._wait(self._place("granted"), self._steps)
        self.version = self._ask(self._place("version"))
        for key in self.keys:
            self._fetch_key(key, params[key.number])
        self._seen = self.version
        self._tell("fetched", self._steps)

    def push(self, gradients: Mapping[int, Any], rates: Sequence[float]) -> None:
        """Leave gradients and learning rates for the server; return at once."""
        for key in self.keys:
            self._put_gradient(key, gradients.get(key.number))
        start = self._layout.rates[self._worker].start
        self._window.put(self.rank, start, np.array(rates, np.float64))
        self._tell("pushed", self._steps)

    def optimizer_state(self) -> Any:
        """Return what the server's optimizer keeps of its parameters."""
        self._wanted += 1
        self._tell("wanted", self._wanted)
        with pulse.waiting(f"the optimizer's state of server {self.rank}"):
            self._wait(self._place("given"), self._wanted)  # which tells if the server is lost
            return self._window.comm.recv(source=self.rank, tag=STATE)

    def end(self) -> None:
        """Say that this worker takes no more steps."""
        self._tell("ended", 1)

    def leave(self) -> None:
        """Say that this worker has read all that it needs."""
        self._tell("gone", 1)

    def read_last(self, params: Sequence[Tensor]) -> None:
        """Wait until the server has applied everything, and read what it has."""
        with pulse.waiting("the end of other workers"):
            self._wait(self._layout.final, 1)
        self.read_all(params)

    def read_all(self, params: Sequence[Tensor]) -> None:
        """Fetch all values of all parameters of the server."""
        for key in self.keys:
            place = self._layout.places[key.number]
            found = self._window.get(self.rank, place.values, key.dtype, key.shape)
            params[key.number]._value = found

    # -- parameters --------------------------------------------------------------------------------

    def _fetch_key(self, key: Key, param: Tensor) -> None:
        place = self._layout.places[key.number]
        dense, sparse = self._window.get(self.rank, place.versions, np.int64).tolist()
        if dense > self._seen:
            param._value = self._window.get(self.rank, place.values, key.dtype, key.shape)
        elif sparse > self._seen:
            self._fetch_rows(key, param)

    def _fetch_rows(self, key: Key, param: Tensor) -> None:
        place = self._layout.places[key.number]
        versions = self._window.get(self.rank, place.row_versions, np.int64)
        rows = np.flatnonzero(versions > self._seen)
        width = key.nbytes // key.rows
        found = self._window.get_rows(self.rank, place.values.start, width, rows)
        values = param._value if param._value.flags.writeable else param._value.copy()
        values[rows] = found.view(key.dtype).reshape(len(rows), *key.shape[1:])
        param._value = values

    # -- gradients ---------------------------------------------------------------------------------

    def _put_gradient(self, key: Key, grad: Any) -> None:
        place = self._layout.gradients[self._worker][key.number]
        form = ABSENT
        if isinstance(grad, RowSparse) and key.rows:
            rows, values = _coalesced(grad)
            form = len(rows)
            self._window.put(self.rank, place.rows.start, rows)
            self._window.put(self.rank, place.values.start, values)
        elif grad is not None:
            form = DENSE
            array = (grad.to_dense() if isinstance(grad, RowSparse) else grad).numpy()
            self._window.put(self.rank, place.values.start, array.astype(key.dtype, copy=False))
        self._window.put(self.rank, place.form.start, np.array([form], np.int64))

    # -- words -------------------------------------------------------------------------------------

    def _place(self, name: str) -> WindowRegion:
        start = self._layout.words[self._worker].start
        return WindowRegion(start + 8 * WORDS.index(name), 8)

    def _tell(self, name: str, value: int) -> None:
        self._window.put_word(self.rank, self._place(name).start, value)

    def _ask(self, place: WindowRegion) -> int:
        return int(self._window.get(self.rank, place, np.int64)[0])

    def _wait(self, place: WindowRegion, value: int) -> None:
        pause: float = _FIRST
        looked = time.monotonic()
        while self._ask(place) < value:
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)
            if time.monotonic() - looked > _LOOK:
                looked = time.monotonic()
                self._window.sync()
                if self.rank in self._window.lost_ranks():
                    raise DistributedError(
                        f"the parameter server on rank {self.rank} is lost, and what it held with "
                        "it: start again from the last checkpoint (weft launch --max-restarts)"
                    )


_LOOK: Final = 0.5


def _coalesced(grad: RowSparse) -> tuple[Array, Array]:
    found = grad.coalesce()
    return found.rows.numpy().astype(np.int64, copy=False), np.asarray(found.values.numpy())
