"""What a server does: let workers fetch, and apply their gradients, until all have ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from ...core.row_sparse import RowSparse
from ...core.tensor import Tensor, wrap
from .admission import Admission
from .layout import ABSENT, DENSE, STATE, WORDS, Key, ServerLayout
from .windows import SharedWindow

_IDLE: Final = 0.0002  # seconds to sleep when there is nothing to do
_LOOK: Final = 0.2  # seconds between looks for ranks that are lost


class ParameterServer:
    """Holds some of the parameters.

    ranks     of the workers
    params    all parameters, of which the layout's keys are this server's
    step      updates the parameters that have gradients, with these learning rates
    state     gives what the optimizer keeps of some parameters, by their numbers
    """

    def __init__(
        self,
        window: SharedWindow,
        layout: ServerLayout,
        ranks: Sequence[int],
        params: Sequence[Tensor],
        step: Callable[[Sequence[float]], None],
        state: Callable[[Sequence[int]], Any],
        staleness: int,
    ) -> None:
        self._window = window
        self._layout = layout
        self._ranks = list(ranks)
        self._params = params
        self._step, self._state = step, state
        self._sending: list[Any] = []  # states on their way to workers
        self.admission = Admission(staleness)
        self.lost: list[int] = []  # ranks
        self._living = set(range(len(ranks)))
        self._words = [
            dict(zip(WORDS, np.split(window.own(region, np.int64), len(WORDS)), strict=True))
            for region in layout.words
        ]
        self._looked = time.monotonic()
        for key in layout.keys:
            self._publish(key, None)

    def serve(self) -> None:
        """Serve until every worker has ended or is lost, and has read the last values."""
        while not all(self._has_ended(w) for w in self._living):
            if not self._turn():
                time.sleep(_IDLE)
        self._window.own(self._layout.final, np.int64)[0] = 1
        while any(not self._word(w, "gone") for w in self._living):
            self._look()
            self._window.sync()
            if not self._answer_all():
                time.sleep(_IDLE)

    def _word(self, worker: int, name: str) -> int:
        return int(self._words[worker][name][0])

    def _has_ended(self, worker: int) -> bool:
        """Tell whether a worker has ended, and everything that it sent was applied."""
        return bool(self._word(worker, "ended")) and not self._has_sent(worker)

    def _has_sent(self, worker: int) -> bool:
        return self._word(worker, "pushed") > self._word(worker, "done")

    def _turn(self) -> bool:
        """Do what can be done; tell whether there was anything."""
        self._window.sync()
        self._look()
        for w in self._living:
            if self._has_ended(w):
                self.admission.forget(w)  # it fetched for a step that it does not take
        return self._answer_all() or self._apply_one() or self._admit_all()

    def _answer_all(self) -> bool:
        """Send what the optimizer keeps to those who want it; tell whether there were any."""
        asking = [
            w for w in sorted(self._living) if self._word(w, "wanted") > self._word(w, "given")
        ]
        for w in asking:
            state = self._state([key.number for key in self._layout.keys])
            self._sending = [one for one in self._sending if not one.test()[0]]
            self._sending.append(self._window.comm.isend(state, self._ranks[w], STATE))
            self._words[w]["given"][0] = self._words[w]["wanted"][0]
        return bool(asking)

    # -- fetching ----------------------------------------------------------------------------------

    def _admit_all(self) -> bool:
        admitted = [w for w in sorted(self._living) if self._asks(w) and self.admission.admit(w)]
        for w in admitted:
            words = self._words[w]
            words["version"][0] = self.admission.version
            words["granted"][0] = words["asked"][0]
        return bool(admitted)

    def _asks(self, worker: int) -> bool:
        return self._word(worker, "asked") > self._word(worker, "granted")

    def _is_fetching(self, worker: int) -> bool:
        return self._word(worker, "granted") > self._word(worker, "fetched")

    # -- applying ----------------------------------------------------------------------------------

    def _apply_one(self) -> bool:
        if any(self._is_fetching(w) for w in self._living):
            return False  # a fetch sees the values of one version
        delivered = [
            w for w in self._living if self._has_sent(w) and self.admission.is_under_way(w)
        ]
        chosen = self.admission.choose(delivered)
        if chosen is None:
            return False
        self._apply(chosen)
        self._words[chosen]["done"][0] = self._words[chosen]["pushed"][0]
        return True

    def _apply(self, worker: int) -> None:
        gradients = {key: self._gradient(worker, key) for key in self._layout.keys}
        for key, grad in gradients.items():
            self._params[key.number].grad = grad
        self._step(self._window.own(self._layout.rates[worker], np.float64).tolist())
        self.admission.apply(worker)
        for key, grad in gradients.items():
            if grad is not None:
                self._publish(key, grad)
            self._params[key.number].grad = None

    def _gradient(self, worker: int, key: Key) -> Any:
        place = self._layout.gradients[worker][key.number]
        form = int(self._window.own(place.form, np.int64)[0])
        if form == ABSENT:
            return None
        values = self._window.own(place.values, key.dtype)
        if form == DENSE:
            return wrap(values.reshape(key.shape).copy())
        rows = self._window.own(place.rows, np.int64)[:form].copy()
        width = int(np.prod(key.shape[1:]))
        taken = values[: form * width].reshape(form, *key.shape[1:]).copy()
        return RowSparse(wrap(rows), wrap(taken), key.shape, is_coalesced=True)

    def _publish(self, key: Key, grad: Any) -> None:
        """Put new values where workers fetch them, and say of which version they are."""
        place = self._layout.places[key.number]
        values = self._window.own(place.values, key.dtype).reshape(key.shape)
        versions = self._window.own(place.versions, np.int64)
        if isinstance(grad, RowSparse):
            rows = grad.rows.numpy()
            values[rows] = self._params[key.number].numpy()[rows]
            self._window.own(place.row_versions, np.int64)[rows] = self.admission.version
            versions[1] = self.admission.version
        else:
            values[...] = self._params[key.number].numpy()
            versions[0] = self.admission.version

    # -- workers that are lost ---------------------------------------------------------------------

    def _look(self) -> None:
        if time.monotonic() - self._looked < _LOOK:
            return
        self._looked = time.monotonic()
        gone = self._window.lost_ranks()
        for w in [w for w in self._living if self._ranks[w] in gone]:
            self._living.discard(w)
            self.admission.forget(w)
            self.lost.append(self._ranks[w])
