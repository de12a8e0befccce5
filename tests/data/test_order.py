"""Which items make up which batch of an epoch."""

import numpy as np
import pytest

from weft.core.errors import ArgumentTypeError
from weft.core.rng import Generator
from weft.data import BatchSampler, RandomSampler, SequentialSampler
from weft.data.order import BatchOrder, is_repeatable
from weft.data.sampler import as_list


class Counting:
    """A sampler of another library, which gives another order each time."""

    def __init__(self):
        self.epoch, self.calls = None, 0

    def __len__(self):
        return 5

    def __iter__(self):
        self.calls += 1
        return iter([(i + self.calls) % 5 for i in range(5)])

    def set_epoch(self, epoch):
        self.epoch = epoch

    def state_dict(self):
        return {"calls": self.calls}

    def load_state_dict(self, state):
        self.calls = state["calls"]


def read(order, epoch=0, saved=None):
    batches, kept = order.batches(Generator(3), epoch, saved)
    return [as_list(batch) for batch in batches], kept


def test_own_samplers_are_functions_of_the_seed():
    order = BatchOrder.of_items(range(5), None, False, 2, False)
    assert read(order) == ([[0, 1], [2, 3], [4]], None)
    shuffled = BatchOrder.of_items(range(5), None, True, 2, True)
    assert read(shuffled) == read(shuffled)
    assert (len(order), len(shuffled), shuffled.state_dict()) == (3, 2, None)
    assert is_repeatable(BatchSampler(RandomSampler(5), 2))
    assert not is_repeatable(BatchSampler(Counting(), 2))


def test_the_order_of_other_samplers_is_kept():
    sampler = Counting()
    order = BatchOrder.of_items(None, sampler, False, 2, False)
    batches, saved = read(order, epoch=7)
    assert (batches, sampler.epoch) == ([[1, 2], [3, 4], [0]], 7)
    assert read(order, saved=saved)[0] == batches
    assert read(order)[0] != batches
    state = order.state_dict()
    sampler.calls = 0
    order.load_state_dict(state)
    assert sampler.calls == 2


def test_batches_may_be_given_as_they_are():
    order = BatchOrder.of_batches([np.array([0, 2]), (1,), ["a"]])
    batches, saved = read(order)
    assert batches == [[0, 2], [1], ["a"]]
    assert read(order, saved=saved)[0] == batches


def test_endless_samplers_are_not_kept():
    class Endless:
        def __iter__(self):
            return iter([[0], [1]])

    order = BatchOrder.of_batches(Endless())
    assert read(order) == ([[0], [1]], None)
    with pytest.raises(ArgumentTypeError, match="has no length"):
        len(order)


def test_iterators_are_refused():
    with pytest.raises(ArgumentTypeError, match="lasts for one epoch only"):
        BatchOrder.of_items(range(3), iter(SequentialSampler(3)), False, 2, False)
