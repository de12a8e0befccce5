"""torch.utils.data.distributed: each process its part of a dataset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .... import distributed
from ....data import ShardSampler

__all__ = ["DistributedSampler"]


class DistributedSampler(ShardSampler):
    """The places of a dataset that are this process's: every N-th of one order for all.

    Call `set_epoch` before each epoch, so that shuffled orders differ from epoch to epoch.

    >>> list(DistributedSampler(range(5), num_replicas=2, rank=1, shuffle=False))
    [1, 3, 0]
    """

    def __init__(
        self,
        dataset: Any,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        self.dataset = dataset
        self.num_replicas = distributed.size() if num_replicas is None else num_replicas
        self.rank = distributed.rank() if rank is None else rank
        super().__init__(
            dataset,
            num_shards=self.num_replicas,
            index=self.rank,
            shuffle=shuffle,
            seed=seed,
            drop_last=drop_last,
        )

    def __iter__(self) -> Iterator[Any]:
        return iter([int(i) for i in self.order(self._own, self.epoch)])
