"""The DataLoader: batches of a dataset, made here or by workers, resumable at any batch."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any

from ..core.cached_property import cached_property
from ..core.device import check_device
from ..core.errors import ArgumentError, ArgumentTypeError
from ..core.placing import moved_tensors
from .ahead import BatchThread, is_of_weft
from .checks import as_count, as_real, check_callable
from .fetch import END, Job, Recipe, epoch_generator
from .iterable import IterableDataset, IterableSource
from .order import BatchOrder
from .pool import WorkerPool, context_of
from .run import EpochRun, LocalRun, PooledRun, Rotation, ShardedRun
from .sharding import WHOLE, BatchPart, agreed, part_of
from .streams import ORDER, fresh_seed

_STATE_VERSION = 1


@dataclass
class Position:
    """How far an epoch has come. `order` and `shards` only where seed and epoch do not say all."""

    epoch: int = 0
    batch: int = 0
    order: Any = None
    shards: Rotation | None = None
    touched: bool = False  # whether a batch was delivered since it was begun

    def begun(self) -> Position:
        """Return where the next iteration starts: an epoch left in the middle is not resumed."""
        return Position(self.epoch + 1) if self.touched else replace(self)


class DataLoader:
    """Iterate over a dataset in batches; each `iter(loader)` is one epoch.

    dataset          has a length and items (`Dataset`, or anything alike), or is a stream
    batch_size       items a batch; None gives single items, without a batch dimension
    shuffle          visit the items in a random order, another one in each epoch
    sampler          a `Sampler`, or any iterable of indices, instead of `shuffle`
    batch_sampler    an iterable of lists of indices, instead of all of the above
    num_workers      processes that make batches ahead; 0 makes them here
    collate_fn       list of items -> batch; `default_collate` stacks them into tensors
    batch_transform  batch -> batch, e.g. `MixUp`; runs in the worker
    drop_last        leave out a last batch that is not full
    seed             of order and augmentation; None draws one from the default generator
    prefetch_factor  batches that each worker makes ahead
    prefetch         batches that a thread makes ahead without workers, while machine code runs;
                     items must not draw from global generators. None: 0 in a loop; in training
                     by Trainer and its kin 2 if all that makes items is Weft's own
    persistent_workers  keep the workers from one epoch to the next
    timeout          seconds to wait for a batch of a worker before an error; 0 waits for ever
    worker_init_fn   called as `worker_init_fn(worker_id)` in each worker before its first batch
    multiprocessing_context  "fork", "spawn", "forkserver" or a context; None: "fork" on Linux
    shard            True: each process of `wf.distributed` has its rows of every batch, whose size
                     is that of all together; or (index, count): part `index` of so many
    device           where the tensors of batches are to be; what a thread makes ahead (`prefetch`)
                     is copied there ahead

    Batches come in the same order, with the same random numbers, for any number of workers.
    `state_dict()` between two batches, given to `load_state_dict` of a loader that is built alike,
    makes the next `iter(loader)` go on with exactly the batch that would have come next; the
    number of workers may differ.

    >>> from weft.data import DataLoader, TensorDataset
    >>> loader = DataLoader(TensorDataset([1.0, 2.0, 3.0]), batch_size=2)
    >>> list(loader)
    [tensor([1., 2.]), tensor([3.])]
    """

    def __init__(  # noqa: PLR0913  (independent options, named as in PyTorch)
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool = False,
        sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        drop_last: bool = False,
        seed: int | None = None,
        *,
        batch_sampler: Iterable[Any] | None = None,
        batch_transform: Callable[[Any], Any] | None = None,
        prefetch_factor: int = 2,
        prefetch: int | None = None,
        persistent_workers: bool = False,
        timeout: float = 0.0,
        worker_init_fn: Callable[[int], Any] | None = None,
        multiprocessing_context: Any = None,
        shard: bool | tuple[int, int] = False,
        device: Any = None,
    ) -> None:
        self.dataset = _checked_dataset(dataset)
        self.batch_size = None if batch_size is None else as_count(self, "batch_size", batch_size)
        self.device = None if device is None else check_device(device)
        self.drop_last = drop_last
        self.num_workers = as_count(self, "num_workers", num_workers, 0)
        self._prefetch = as_count(self, "prefetch_factor", prefetch_factor)
        self.prefetch = None if prefetch is None else as_count(self, "prefetch", prefetch, 0)
        self._timeout = as_real(self, "timeout", timeout, 0.0)
        self._persistent = persistent_workers
        self._context = multiprocessing_context
        for name, fn in (
            ("collate_fn", collate_fn),
            ("batch_transform", batch_transform),
            ("worker_init_fn", worker_init_fn),
        ):
            if fn is not None:
                check_callable(self, name, fn)
        self._collate, self._transform, self._init = collate_fn, batch_transform, worker_init_fn
        self._check_combination(shuffle, sampler, batch_sampler)
        self._order = self._make_order(shuffle, sampler, batch_sampler)
        self._part = part_of(self, shard)
        seed = agreed(fresh_seed(), self._part) if seed is None else as_count(self, "seed", seed, 0)
        self.seed = seed
        epoch_generator(self.seed, 0)  # refuses a seed that is too large
        self._position = Position()
        self._iterations = 0
        self._pool: WorkerPool | None = None

    # -- iteration ---------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        return self.iterate(self.prefetch or 0)

    def placed(self, batch: Any) -> Any:
        """Return a batch with its tensors on the device that was asked for."""
        return batch if self.device is None else moved_tensors(batch, self.device)

    def iterate(self, prefetch: int) -> EpochIterator:
        """Iterate with as many batches made ahead by a thread, unless there are workers."""
        position = self._position.begun()
        self._position = position
        self._iterations += 1
        return EpochIterator(self, position, self._start(position, prefetch))

    @cached_property
    def worth_prefetching(self) -> bool:
        """Tell whether batches take time, and Weft's own code alone makes them in this process."""
        recipe = self._recipe()
        taken_at_once = recipe.batch_taker is not None and recipe.transform is None
        if self.num_workers or taken_at_once:
            return False
        return is_of_weft((recipe.dataset, recipe.collate, recipe.transform))

    def __len__(self) -> int:
        return self._part.length(self._whole_length())

    def _whole_length(self) -> int:
        if self._order is not None:
            return len(self._order)
        try:
            total = len(self.dataset)
        except TypeError:
            raise ArgumentTypeError(
                f"a DataLoader over {type(self.dataset).__name__} has no length: the dataset is a "
                "stream without __len__"
            ) from None
        size = self.batch_size or 1
        return total // size if self.drop_last else -(-total // size)

    @property
    def shares_rows(self) -> bool:
        """Tell whether it gives this process some rows of each batch (shard=...)."""
        return self._part.parts > 1 and not self._part.turns

    @property
    def has_order(self) -> bool:
        """Tell whether it knows its batches, and how many there are, before it makes them."""
        try:
            return self._order is not None and len(self._order) >= 0
        except TypeError:
            return False

    def taking_turns(self, place: int, parts: int) -> DataLoader:
        """Return a loader of every `parts`-th batch from number `place` on, as whole batches."""
        if self._order is None:
            raise ArgumentError(
                "DataLoader: the batches of a stream are known only by reading them all; let the "
                "stream give each process its own part"
            )
        made = copy(self)
        made._part = BatchPart(place, parts, turns=True)
        made._position, made._pool = Position(), None
        return made

    @property
    def epoch(self) -> int:
        """Return the number of the epoch in progress, or of the next one if none is."""
        return self._position.epoch

    @property
    def batches_done(self) -> int:
        """Return how many batches of this epoch have been delivered."""
        return self._position.batch

    def set_epoch(self, epoch: int) -> None:
        """Begin the given epoch with the next `iter(loader)`."""
        self._position = Position(as_count(self, "epoch", epoch, 0))

    def close(self) -> None:
        """End persistent workers now instead of when the loader is deleted."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None

    # -- state -------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the position as plain data: seed, epoch, and batches delivered."""
        position = self._position
        return {
            "version": _STATE_VERSION,
            "seed": self.seed,
            "epoch": position.epoch,
            "batch": position.batch,
            "batch_size": self.batch_size,
            "length": self._known_length(),
            "order": position.order,
            "sampler": None if self._order is None else self._order.state_dict(),
            "shards": None if position.shards is None else position.shards.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue where `state_dict` was taken, with the next `iter(loader)`."""
        position = self._read_state(state)
        if self.seed != state["seed"]:
            self.close()  # persistent workers know the old seed
        self.seed = state["seed"]
        self._position = position
        if self._order is not None:
            self._order.load_state_dict(state["sampler"])

    def _read_state(self, state: Mapping[str, Any]) -> Position:
        is_state: bool = isinstance(state, Mapping)
        if not is_state or state.get("version") != _STATE_VERSION:
            raise ArgumentError(
                "DataLoader: expected a state from DataLoader.state_dict(). "
                f"Received: {state!r:.80}"
            )
        absent = [name for name in self.state_dict() if name not in state]
        if absent:
            raise ArgumentError(f"DataLoader: the state lacks {absent}. Received: {list(state)}")
        for name, here in (("batch_size", self.batch_size), ("length", self._known_length())):
            if state[name] != here:
                raise ArgumentError(
                    f"DataLoader: the state was taken with {name} {state[name]}, this loader has "
                    f"{here}; a position can be continued only over the same data in the same "
                    "batches"
                )
        epoch = as_count(self, "epoch", state["epoch"], 0)
        batch = as_count(self, "batch", state["batch"], 0)
        return Position(epoch, batch, state["order"], self._read_shards(state, batch))

    def _read_shards(self, state: Mapping[str, Any], batch: int) -> Rotation | None:
        given = state["shards"]
        before = 0 if given is None else len(given["counts"])
        here = self.num_workers if self._shards_itself else 0
        if before == here or batch == 0:
            return None if given is None or not here else Rotation.from_state(given)
        raise ArgumentError(
            f"DataLoader: the dataset shards itself, so its position belongs to {before} "
            f"worker(s), and this loader has {here}; use the same num_workers to continue"
        )

    # -- construction ------------------------------------------------------------------------

    def _check_combination(self, shuffle: bool, sampler: Any, batch_sampler: Any) -> None:
        ordered = shuffle or sampler is not None
        if batch_sampler is not None and (ordered or self.drop_last or self.batch_size != 1):
            raise ArgumentError(
                "DataLoader: batch_sampler decides all that batch_size, shuffle, sampler and "
                "drop_last would; leave these out"
            )
        if sampler is not None and shuffle:
            raise ArgumentError("DataLoader: give a sampler or shuffle=True, not both")
        if self.drop_last and self.batch_size is None:
            raise ArgumentError("DataLoader: drop_last needs a batch_size")
        is_stream = isinstance(self.dataset, IterableDataset)
        if is_stream and (ordered or batch_sampler is not None):
            raise ArgumentError(
                "DataLoader: a stream comes in its own order, without shuffle or samplers; use "
                "dataset.shuffle(buffer_size)"
            )
        if not self.num_workers and (self._persistent or self._timeout):
            raise ArgumentError(
                "DataLoader: persistent_workers and timeout need num_workers of at least 1"
            )
        if self.num_workers and self.prefetch:
            raise ArgumentError(
                "DataLoader: prefetch is for num_workers=0; workers make prefetch_factor batches "
                "ahead"
            )
        context_of(self._context)

    def _make_order(self, shuffle: bool, sampler: Any, batch_sampler: Any) -> BatchOrder | None:
        if isinstance(self.dataset, IterableDataset):
            return None
        if batch_sampler is not None:
            return BatchOrder.of_batches(batch_sampler)
        return BatchOrder.of_items(
            self.dataset, sampler, shuffle, self.batch_size or 1, self.drop_last
        )

    def _recipe(self) -> Recipe:
        return Recipe(
            self.dataset,
            self.batch_size,
            self.drop_last,
            self._collate,
            self._transform,
            self.seed,
        )

    def _known_length(self) -> int | None:
        try:
            return len(self.dataset)
        except TypeError:
            return None

    @property
    def _shards_itself(self) -> bool:
        return isinstance(self.dataset, IterableDataset) and self.dataset.shards_itself

    # -- one epoch ---------------------------------------------------------------------------

    def _start(self, position: Position, prefetch: int) -> EpochRun:
        if not self.num_workers:
            recipe, jobs = self._recipe(), self._jobs(position)
            if not prefetch:
                return LocalRun(recipe, jobs)
            return PooledRun(partial(BatchThread, recipe, self.device), jobs, 1, prefetch + 1)
        if self._shards_itself:
            position.shards = position.shards or Rotation.of(self.num_workers)
            template = Job(self._iterations, position.epoch, 0)
            return ShardedRun(self._workers, template, position.shards, self._prefetch)
        jobs = self._jobs(position)
        return PooledRun(self._workers, jobs, self.num_workers, self._prefetch)

    def _jobs(self, position: Position) -> Iterator[Job]:
        """Yield the jobs of an epoch from its position on."""
        iteration, epoch = self._iterations, position.epoch
        if self._order is None:
            for number in count(position.batch):
                yield Job(iteration, epoch, number)
            return
        start = position.batch
        generator = epoch_generator(self.seed, epoch).fork(ORDER)
        batches, position.order = self._order.batches(generator, epoch, position.order)
        place, part = 0, self._part
        for number, indices in enumerate(batches):
            turn = number if part is WHOLE else part.turn(number)
            if turn is not None and turn >= start:
                before, rows = (0, indices) if part is WHOLE else part.rows(indices)
                yield Job(iteration, epoch, number, place + before, rows)
            place += len(indices)

    def _workers(self) -> WorkerPool:
        if self._pool is not None and not self._pool.closed:
            return self._pool
        pool = WorkerPool(
            self._recipe(),
            self.num_workers,
            context=self._context,
            init=self._init,
            timeout=self._timeout,
        )
        if self._persistent:
            self._pool = pool
            weakref.finalize(self, pool.close)
        return pool


class EpochIterator:
    """The batches of one epoch; it moves the loader's position along."""

    def __init__(self, loader: DataLoader, position: Position, run: EpochRun) -> None:
        self._loader = loader
        self._position = position
        self._run: EpochRun | None = run
        self._keeps_workers = loader._persistent
        if not self._keeps_workers:
            weakref.finalize(self, run.close)  # also when a loop is left by `break`

    def __iter__(self) -> EpochIterator:
        return self

    def __next__(self) -> Any:
        if self._run is None:
            raise StopIteration
        if self._keeps_workers and self._loader._position is not self._position:
            self._run = None
            raise ArgumentError(
                "DataLoader: this iteration ended when another one over the same loader began; "
                "persistent_workers can serve only one at a time"
            )
        try:
            batch = self._run.next()
        except BaseException:
            self._finish()
            raise
        if batch is END:
            self._finish()
            if self._loader._position is self._position:
                self._loader._position = Position(self._position.epoch + 1)
            raise StopIteration
        self._position.batch += 1
        self._position.touched = True
        loader = self._loader
        return batch if loader.device is None else loader.placed(batch)

    def pause(self) -> None:
        """End the workers of this epoch until the next batch is asked for; persistent ones stay."""
        if self._run is not None and not self._keeps_workers:
            self._run.pause()

    def _finish(self) -> None:
        run, self._run = self._run, None
        if run is not None and not self._keeps_workers:
            run.close()


def _checked_dataset(dataset: Any) -> Any:
    """Return the dataset, an iterable that has no items by index as a stream."""
    if isinstance(dataset, IterableDataset) or hasattr(dataset, "__getitem__"):
        return dataset
    if isinstance(dataset, Iterable) and not isinstance(dataset, Iterator):
        return IterableSource(dataset)
    raise ArgumentTypeError(
        "DataLoader: dataset must have items by index and a length (Dataset), or be a stream "
        f"(IterableDataset). Received: {type(dataset).__name__} {dataset!r:.60}"
    )
