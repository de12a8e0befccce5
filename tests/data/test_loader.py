"""DataLoader: batches, order, options; the same for any number of workers."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
from weft.core.errors import ArgumentError, ArgumentTypeError
from weft.core.rng import default_generator
from weft.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    IterableSource,
    RandomSampler,
    TensorDataset,
    item_generator,
    shard,
    transforms,
    worker_info,
)


class Noisy(Dataset):
    """Items that draw random numbers, as augmentation does."""

    def __init__(self, n: int = 23) -> None:
        self.n = n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> tuple[int, float]:
        return i, float(wf.rand((), generator=item_generator()))


class Letters(IterableDataset):
    """A stream whose items draw random numbers while they are made."""

    def __iter__(self) -> Iterator[tuple[int, float]]:
        for i in range(23):
            yield i, float(wf.rand((), generator=item_generator()))


class Files(IterableDataset):
    """A stream that divides itself."""

    shards_itself = True

    def __iter__(self) -> Iterator[int]:
        for file in shard(range(5)):
            yield from range(10 * file, 10 * file + file + 2)


def plain(batches: Any) -> list[Any]:
    """Return batches as nested lists that can be compared."""
    return [
        [part.tolist() if hasattr(part, "tolist") else part for part in batch]
        if isinstance(batch, tuple | list)
        else batch.tolist()
        for batch in batches
    ]


def flat(batches: list[list[Any]]) -> list[Any]:
    return list(chain.from_iterable(batches))


def epochs(loader: DataLoader, n: int = 2) -> list[Any]:
    return [plain(loader) for _ in range(n)]


def test_batches_in_order() -> None:
    loader = DataLoader(TensorDataset(np.arange(7)), batch_size=3)
    assert plain(loader) == [[0, 1, 2], [3, 4, 5], [6]]
    assert len(loader) == 3


def test_drop_last() -> None:
    loader = DataLoader(TensorDataset(np.arange(7)), batch_size=3, drop_last=True)
    assert plain(loader) == [[0, 1, 2], [3, 4, 5]]
    assert len(loader) == 2


def test_without_batches_items_come_singly() -> None:
    loader = DataLoader([(1, np.zeros(2)), (2, np.ones(2))], batch_size=None)
    assert [(number, row.tolist()) for number, row in loader] == [(1, [0, 0]), (2, [1, 1])]
    assert len(loader) == 2


def test_empty_dataset_gives_no_batches() -> None:
    for workers in (0, 2):
        loader = DataLoader(TensorDataset(np.zeros((0, 3))), batch_size=2, num_workers=workers)
        assert list(loader) == []
        assert len(loader) == 0


def test_shuffle_visits_each_item_once_in_another_order_each_epoch() -> None:
    loader = DataLoader(TensorDataset(np.arange(50)), batch_size=7, shuffle=True, seed=1)
    first, second = (flat(batches) for batches in epochs(loader))
    assert sorted(first) == sorted(second) == list(range(50))
    assert first != second != list(range(50))


def test_seed_decides_order() -> None:
    def order(seed: int) -> list[Any]:
        return plain(DataLoader(TensorDataset(np.arange(20)), 4, shuffle=True, seed=seed))

    assert order(3) == order(3) != order(4)


def test_without_seed_the_default_generator_decides() -> None:
    def order() -> list[Any]:
        wf.manual_seed(5)
        return plain(DataLoader(TensorDataset(np.arange(20)), 4, shuffle=True))

    assert order() == order()


def test_iterating_leaves_the_default_generator_alone() -> None:
    loader = DataLoader(Noisy(), 4, shuffle=True, seed=0)
    before = default_generator.get_state()
    list(loader)
    assert default_generator.get_state() == before


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("persistent", [False, True])
def test_any_number_of_workers_gives_the_same_batches(workers: int, persistent: bool) -> None:
    def run(workers: int, **options: Any) -> list[Any]:
        loader = DataLoader(Noisy(), 4, shuffle=True, seed=7, num_workers=workers, **options)
        return epochs(loader, 3)

    assert run(workers, persistent_workers=persistent) == run(0)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("drop_last", [False, True])
def test_streams_are_shared_without_change(workers: int, drop_last: bool) -> None:
    pipelines = [
        Letters(),
        Letters().shuffle(5),
        Letters().map(lambda x: (*x, float(wf.rand((), generator=item_generator())))),
        Letters().prefetch(2).filter(lambda x: x[0] % 3),
    ]
    for dataset in pipelines:
        alone = DataLoader(dataset, 4, seed=2, drop_last=drop_last)
        shared = DataLoader(dataset, 4, seed=2, drop_last=drop_last, num_workers=workers)
        assert epochs(shared) == epochs(alone)


def test_stream_that_shards_itself_is_read_in_turns() -> None:
    loader = DataLoader(Files(), 2, num_workers=2)
    everything = sorted(flat(plain(DataLoader(Files(), 2))))
    (batches,) = epochs(loader, 1)
    assert sorted(flat(batches)) == everything
    assert batches[:3] == [[0, 1], [10, 11], [20, 21]]


def test_augmentation_is_the_same_with_workers() -> None:
    images = TensorDataset(
        np.arange(8 * 3 * 10 * 10, dtype=np.float32).reshape(8, 3, 10, 10) / 2400, np.arange(8)
    )
    augment = transforms.Compose(
        [
            transforms.RandomCrop(8, padding=1),
            transforms.RandomHorizontalFlip(),
            transforms.RandomRotation(20),
            transforms.ColorJitter(0.2, 0.2, 0.2, 0.1),
            transforms.RandomErasing(),
        ]
    )
    runs = []
    for workers in (0, 2):
        loader = DataLoader(
            images.map(augment, key=0),
            4,
            seed=3,
            num_workers=workers,
            batch_transform=transforms.MixUp(8),
        )
        runs.append(epochs(loader))
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[0][1]


def test_fast_path_equals_slow_path() -> None:
    class Slow(Dataset):
        def __len__(self) -> int:
            return 10

        def __getitem__(self, i: int) -> Any:
            return fast[i]

    fast = TensorDataset(np.arange(20.0).reshape(10, 2), np.arange(10))
    for dataset in (fast, fast.subset([3, 1, 4, 1, 5])):
        slow = Slow() if dataset is fast else Slow().subset([3, 1, 4, 1, 5])
        assert plain(DataLoader(dataset, 3)) == plain(DataLoader(slow, 3))


def test_subclass_with_other_items_does_not_take_the_fast_path() -> None:
    class Doubled(TensorDataset):
        def __getitem__(self, index: Any) -> Any:
            return super().__getitem__(index) * 2

    assert plain(DataLoader(Doubled(np.arange(3)), 2)) == [[0, 2], [4]]
    assert plain(DataLoader(Doubled(np.arange(3)).subset([2, 1]), 2)) == [[4, 2]]


def test_custom_collate_and_batch_transform() -> None:
    loader = DataLoader(
        list("abcd"), 2, collate_fn="".join, batch_transform=lambda text: text.upper()
    )
    assert list(loader) == ["AB", "CD"]


@pytest.mark.parametrize("workers", [0, 2])
def test_foreign_samplers(workers: int) -> None:
    loader = DataLoader(TensorDataset(np.arange(9)), 2, sampler=[8, 1, 5], num_workers=workers)
    assert epochs(loader) == [[[8, 1], [5]]] * 2
    batches = [[1, 2, 3], [0]]
    loader = DataLoader(TensorDataset(np.arange(9)), batch_sampler=batches, num_workers=workers)
    assert epochs(loader) == [[[1, 2, 3], [0]]] * 2
    assert len(loader) == 2


def test_batch_sampler_of_weft() -> None:
    sampler = BatchSampler(RandomSampler(9, seed=1), 4, drop_last=True)
    loader = DataLoader(TensorDataset(np.arange(9)), batch_sampler=sampler)
    first, second = epochs(loader)
    assert [len(batch) for batch in first] == [4, 4]
    assert first != second


def test_dictionary_dataset_with_sampler_of_keys() -> None:
    assert plain(DataLoader({"a": 1, "b": 2}, 2, sampler=["b", "a"])) == [[2, 1]]


def test_plain_iterable_becomes_a_stream() -> None:
    assert plain(DataLoader({3: None}.keys(), 2)) == [[3]]


def test_worker_knows_itself_and_is_seeded() -> None:
    class Facts(Dataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, i: int) -> Any:
            info = worker_info()
            assert info is not None
            own = (np.random.rand(), float(wf.rand(())))  # noqa: NPY002  (is what is tested)
            return info.id, info.num_workers, str(info.seed), own

    assert worker_info() is None
    loader = DataLoader(Facts(), 1, num_workers=2, seed=1)
    first, second = ([*map(str, loader)] for _ in range(2))
    assert len({*first, *second}) == 8  # no two batches draw the same numbers
    assert [*map(str, DataLoader(Facts(), 1, num_workers=2, seed=1))] == first
    assert "tensor([1]), tensor([2])" in first[1]


def test_worker_init_fn_runs_first() -> None:
    seen: list[int] = []
    loader = DataLoader(
        IterableSource(lambda: iter(seen), shards_itself=True),
        1,
        num_workers=2,
        worker_init_fn=seen.append,
    )
    assert plain(loader) == [[0], [1]]


def test_two_loops_at_once() -> None:
    loader = DataLoader(TensorDataset(np.arange(3)), 1, num_workers=1)
    pairs = [(int(a), int(b)) for a in loader for b in loader]
    assert pairs == [(a, b) for a in range(3) for b in range(3)]


def test_persistent_workers_serve_the_newest_loop() -> None:
    loader = DataLoader(TensorDataset(np.arange(6)), 1, num_workers=2, persistent_workers=True)
    old = iter(loader)
    next(old)
    assert plain(loader) == [[i] for i in range(6)]
    with pytest.raises(ArgumentError, match="another one over the same loader began"):
        next(old)
    loader.close()
    assert plain(loader) == [[i] for i in range(6)]


def test_length_of_streams() -> None:
    class Sized(Letters):
        def __len__(self) -> int:
            return 23

    assert len(DataLoader(Sized(), 4)) == 6
    with pytest.raises(TypeError, match="stream without __len__"):
        len(DataLoader(Letters(), 4))


@given(n=st.integers(0, 40), size=st.integers(1, 9), drop_last=st.booleans(), shuffle=st.booleans())
def test_every_item_once(n: int, size: int, drop_last: bool, shuffle: bool) -> None:
    data = TensorDataset(np.arange(n))
    loader = DataLoader(data, size, shuffle=shuffle, drop_last=drop_last, seed=0)
    batches = plain(loader)
    assert len(batches) == len(loader)
    seen = flat(batches)
    assert len(set(seen)) == len(seen) == (n - n % size if drop_last else n)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"batch_size": 0}, "batch_size must be at least 1"),
    ({"batch_size": 2.5}, "batch_size"),
    ({"num_workers": -1}, "num_workers must be at least 0"),
    ({"prefetch_factor": 0}, "prefetch_factor must be at least 1"),
    ({"timeout": -1}, "timeout must be finite and at least 0"),
    ({"timeout": 1}, "need num_workers"),
    ({"persistent_workers": True}, "need num_workers"),
    ({"collate_fn": 3}, "collate_fn must be callable"),
    ({"worker_init_fn": 3}, "worker_init_fn must be callable"),
    ({"shuffle": True, "sampler": [0]}, "not both"),
    ({"sampler": iter([0])}, "an iterator lasts for one epoch"),
    ({"sampler": 3}, "sampler must be"),
    ({"batch_sampler": [[0]], "batch_size": 2}, "leave these out"),
    ({"batch_size": None, "drop_last": True}, "drop_last needs a batch_size"),
    ({"multiprocessing_context": "thread"}, "multiprocessing_context must be one of"),
    ({"multiprocessing_context": 3}, "multiprocessing_context must be the name"),
    ({"seed": -1}, "seed"),
    ({"seed": 1 << 64}, "seed"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=lambda value: str(value)[:40])
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        DataLoader(TensorDataset(np.arange(3)), **options)


def test_bad_datasets() -> None:
    with pytest.raises(ArgumentTypeError, match="dataset must have items by index"):
        DataLoader(3)
    with pytest.raises(ArgumentTypeError, match="dataset must have items by index"):
        DataLoader(iter([1]))
    with pytest.raises(ArgumentError, match="comes in its own order"):
        DataLoader(Letters(), shuffle=True)


Pair = namedtuple("Pair", "x y")


def test_named_tuples_stay_named_tuples_through_workers() -> None:
    loader = DataLoader([Pair(1, "a"), Pair(2, "b")], 2, num_workers=1)
    assert [(batch.x.tolist(), batch.y) for batch in loader] == [([1, 2], ["a", "b"])]
