"""An optimizer whose steps are taken by parameter servers, each worker at its own pace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from ...core.errors import ArgumentError, ArgumentTypeError
from ...core.tensor import Tensor
from ...optim import Optimizer
from ..errors import DistributedError
from ..launcher.heartbeat import pulse
from ..world import world
from .client import ServerConnection
from .layout import Key, lay_out, share_keys
from .server import ParameterServer
from .windows import SharedWindow

_Item = TypeVar("_Item")


class AsyncOptimizer:
    """Take the place of an optimizer: `step` sends gradients to servers and fetches parameters.

    optimizer   the same on all ranks, of the same parameters; servers use it
    staleness   a gradient is applied to parameters at most so many updates newer than those that
                it was computed with; 0: workers take turns
    servers     how many ranks, the first ones, are servers; parameters are shared among them

    On a server `batches` is empty, and `finish` serves until all workers have ended. On a worker,

        optimizer = wf.distributed.parallel(optimizer, mode="async", staleness=4)
        for x, y in optimizer.batches(loader):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
        optimizer.finish()

    after which all ranks have the same, last parameters. A worker that dies is forgotten, if the
    ranks were started with `weft launch --survive`.
    """

    def __init__(self, optimizer: Optimizer, *, staleness: int = 4, servers: int = 1) -> None:
        self._check(optimizer, servers)
        self.inner = optimizer
        self.params: list[Tensor] = list(optimizer.parameters())
        transport: Any = world().exchanges.transport
        self.rank: int = transport.rank
        self.ranks: int = transport.size
        self.servers = servers
        self.staleness = staleness
        self.counts: Counter[int] = Counter()  # of updates by staleness, once all have ended
        self.lost: list[int] = []
        self._finished = False
        keys = [Key(i, tuple(p.shape), np.dtype(p.dtype)) for i, p in enumerate(self.params)]
        world().exchanges.check(f"parallel(mode='async', {staleness=}, {servers=}) of {keys}")
        groups = len(optimizer.param_groups)
        layouts = [lay_out(own, self.workers, groups) for own in share_keys(keys, servers)]
        size = layouts[self.rank].size if self.is_server else 0
        comm = transport.comm.Dup()
        self._window = SharedWindow(transport.library, comm, size)
        self._servers = comm.Split(int(self.is_server), self.rank)
        self._server: ParameterServer | None = None
        self._connections: list[ServerConnection] = []  # of a worker
        self._others: list[ServerConnection] = []  # of a server
        self._begin(layouts)

    def _check(self, optimizer: Any, servers: int) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError(
                "asynchronous training takes an optimizer, which servers use. "
                f"Received: {type(optimizer).__name__}"
            )
        ranks = world().size
        if not 1 <= servers < ranks:
            raise ArgumentError(
                f"of {ranks} ranks, {servers} cannot be servers: there must be at least one server "
                "and one worker (weft launch -n 4 ...)"
            )

    def _begin(self, layouts: Sequence[Any]) -> None:
        if self.is_server:
            self._server = ParameterServer(
                self._window,
                layouts[self.rank],
                range(self.servers, self.ranks),
                self.params,
                self._take_step,
                self._kept_of,
                self.staleness,
            )
        self._window.comm.Barrier()  # values are there
        worker = -1 if self.is_server else self.worker
        connections = [
            ServerConnection(self._window, s, layout, worker) for s, layout in enumerate(layouts)
        ]
        if self.is_server:
            self._others = [one for one in connections if one.rank != self.rank]
        else:
            self._connections = connections
            self._fetch()

    # -- who this is -------------------------------------------------------------------------------

    @property
    def is_server(self) -> bool:
        """Whether this rank is a server."""
        return self.rank < self.servers

    @property
    def workers(self) -> int:
        """How many workers there are."""
        return self.ranks - self.servers

    @property
    def worker(self) -> int:
        """Which of the workers this rank is."""
        if self.is_server:
            raise DistributedError(f"rank {self.rank} is a server, no worker")
        return self.rank - self.servers

    def batches(self, loader: Iterable[_Item]) -> Iterator[_Item]:
        """Yield what this rank trains on: nothing on a server."""
        if not self.is_server:
            yield from loader

    # -- what an optimizer does --------------------------------------------------------------------

    @property
    def param_groups(self) -> list[Any]:
        """The groups of the optimizer; learning rates that are changed here go to the servers."""
        return self.inner.param_groups

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        self.inner.zero_grad(set_to_none)

    def step(self) -> None:
        """Send the gradients to the servers, and fetch parameters for the next step."""
        if not self._connections or self._finished:
            what = "a server" if self.is_server else "finished"
            raise DistributedError(f"step: this rank is {what}; see AsyncOptimizer.batches")
        rates = [float(group["lr"]) for group in self.inner.param_groups]
        gradients = {i: p.grad for i, p in enumerate(self.params)}
        for connection in self._connections:
            connection.push(gradients, rates)
        pulse.count += 1
        self._fetch()

    def _fetch(self) -> None:
        # Servers in one order on all workers, so that nobody waits in a circle.
        for connection in self._connections:
            connection.fetch(self.params)

    def fetch_state(self) -> None:
        """Let this worker's optimizer have what those of the servers keep (momentum, counts ...).

        So its `state_dict` is that of all; what is loaded before training begins the servers have.
        """
        if not self.is_server and not self._finished:
            self._take_states()

    def _take_states(self) -> None:
        for connection in self._connections:
            count, slots = connection.optimizer_state()
            self.inner.t = max(self.inner.t, count)
            self.inner.state.update((self.params[i], kept) for i, kept in slots.items())

    def finish(self) -> None:
        """End: a server serves until all workers have; then all ranks have the same parameters."""
        if self._finished:
            return
        self._finished = True
        if self._server is not None:
            self._server.serve()
            for connection in self._others:
                connection.read_last(self.params)
            self._servers.Barrier()  # nobody goes before all have read
            self.counts, self.lost = self._server.admission.applied, self._server.lost
        else:
            for connection in self._connections:
                connection.end()  # to all of them first: others may wait for any
            for connection in self._connections:
                connection.read_last(self.params)
            if self.worker == 0:  # who writes the last checkpoint
                self._take_states()
            for connection in self._connections:
                connection.leave()
        self._window.close()

    # -- on a server -------------------------------------------------------------------------------

    def _take_step(self, rates: Sequence[float]) -> None:
        for group, rate in zip(self.inner.param_groups, rates, strict=True):
            group["lr"] = rate
        self.inner.step()

    def _kept_of(self, numbers: Sequence[int]) -> tuple[int, dict[int, Any]]:
        """Return how many steps a server has taken, and what it keeps of its parameters."""
        kept = self.inner.state
        return self.inner.t, {i: kept[self.params[i]] for i in numbers if self.params[i] in kept}

    def __enter__(self) -> AsyncOptimizer:
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if kind is None:
            self.finish()
