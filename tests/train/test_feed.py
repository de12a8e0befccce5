"""Batches without end, with exact epochs and positions."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

import weft as wf
from weft.core.errors import WeftError
from weft.data import DataLoader, IterableDataset, TensorDataset
from weft.train.feed import Feed


class Unsized:
    """A loader that does not know its length; keeps count of what it gave."""

    def __init__(self, items: list[int]) -> None:
        self.items = items

    def __iter__(self) -> Any:
        return iter(self.items)


class Stream(IterableDataset):
    def __iter__(self) -> Any:
        return iter(range(5))


def walk(feed: Feed, count: int) -> list[tuple[Any, int, int]]:
    return [(_plain(feed.draw()), feed.epoch, feed.index) for _ in range(count)]


def _plain(batch: Any) -> Any:
    return batch.tolist() if hasattr(batch, "tolist") else batch


def loaders() -> dict[str, Any]:
    return {
        "list": lambda: [1, 2, 3],
        "unsized": lambda: Unsized([1, 2, 3]),
        "loader": lambda: DataLoader(TensorDataset(wf.arange(7)), 2, shuffle=True, seed=3),
        "stream": lambda: DataLoader(Stream(), 2, seed=1),
    }


@pytest.mark.parametrize("kind", ["list", "unsized"])
def test_epoch_ends_with_its_last_batch(kind: str) -> None:
    feed = Feed(loaders()[kind]())
    assert walk(feed, 4) == [(1, 0, 1), (2, 0, 2), (3, 1, 0), (1, 1, 1)]


def test_position_is_exact_where_the_length_is_known() -> None:
    feed = Feed([1, 2, 3])
    walk(feed, 4)
    assert feed.position == Fraction(4, 3)
    feed = Feed(Unsized([1, 2, 3]))
    walk(feed, 4)
    assert feed.position == 1


def test_the_length_is_that_of_each_pass() -> None:
    class Growing:
        """One batch more in each pass."""

        def __init__(self) -> None:
            self.count = 1

        def __len__(self) -> int:
            return self.count

        def __iter__(self) -> Any:
            self.count += 1
            return iter(range(self.count))

    feed = Feed(Growing())
    assert walk(feed, 6) == [(0, 0, 1), (1, 1, 0), (0, 1, 1), (1, 1, 2), (2, 2, 0), (0, 2, 1)]
    assert (feed.length, feed.position) == (4, Fraction(9, 4))


@pytest.mark.parametrize("kind", list(loaders()))
@pytest.mark.parametrize("epoch_length", [None, 2, 5])
def test_resume_at_every_batch(kind: str, epoch_length: int | None) -> None:
    make = loaders()[kind]
    whole = walk(Feed(make(), epoch_length), 14)
    for at in range(14):
        first = Feed(make(), epoch_length)
        walk(first, at)
        second = Feed(make(), epoch_length)
        second.load_state_dict(first.state_dict())
        assert walk(second, 14 - at) == whole[at:], at


def test_state_does_not_disturb_the_walk() -> None:
    feed = Feed(loaders()["stream"]())
    seen = []
    for _ in range(8):
        seen += walk(feed, 1)
        feed.state_dict()
    assert seen == walk(Feed(loaders()["stream"]()), 8)


def test_epoch_length_goes_on_where_the_last_epoch_ended() -> None:
    feed = Feed([1, 2, 3], epoch_length=2)
    assert [item for item, _, _ in walk(feed, 5)] == [1, 2, 3, 1, 2]
    assert feed.epoch == 2


def test_generator_that_runs_out_says_so() -> None:
    feed = Feed(x for x in [1, 2])
    walk(feed, 2)
    with pytest.raises(WeftError, match="gives no batches after 1 epochs; if it is a generator"):
        feed.draw()


@pytest.mark.parametrize("empty", [[], Unsized([])])
def test_empty_loader(empty: Any) -> None:
    with pytest.raises(WeftError, match="gives no batches"):
        Feed(empty).draw()


def test_bad_arguments() -> None:
    with pytest.raises(WeftError, match=r"must be iterable. Received: int"):
        Feed(3)
    with pytest.raises(WeftError, match="epoch_length must be an integer from 1 on"):
        Feed([1], epoch_length=0)
