"""Exchanges of one process: their order, their errors, and what goes on meanwhile."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from weft.distributed.exchanges import Exchanges, ExchangeSignature, take
from weft.distributed.programs import checksum
from weft.distributed.transport import AloneTransport


class SlowTransport(AloneTransport):
    """One process whose sums wait until they are let go."""

    def __init__(self):
        super().__init__()
        self.gate = threading.Event()
        self.order = []

    def reduce(self, array, how):
        self.gate.wait(10)
        self.order.append(float(array.flat[0]))
        return array * 2


class OtherTransport(AloneTransport):
    """One process beside another that does something else."""

    def agree(self, number):
        return [number, number + (1 << 40)]

    def objects(self, item):
        return [item, "max of int64[]"]


SUM = ExchangeSignature("sum", (2,), "float64")


def test_what_was_begun_has_an_array_of_its_own_and_goes_in_order():
    exchanges = Exchanges(slow := SlowTransport())
    array = np.ones(2)
    begun = [exchanges.start(array * i, SUM) for i in range(3)]
    array[...] = 7
    assert not begun[0].is_done
    slow.gate.set()
    np.testing.assert_array_equal(exchanges.exchange(array, SUM), [14, 14])
    assert slow.order == [0, 1, 2, 7]
    for i, one in enumerate(begun):
        np.testing.assert_array_equal(take(one.ticket).wait(), [2 * i, 2 * i])
    exchanges.finish()


def test_an_error_is_raised_by_who_waits():
    exchanges = Exchanges(AloneTransport())
    begun = exchanges.start(np.ones(2), ExchangeSignature("nonsense", (2,), "float64"))
    for _ in range(2):
        with pytest.raises(AttributeError, match="nonsense"):
            begun.wait()
    exchanges.finish()


def test_who_does_something_else_is_named():
    exchanges = Exchanges(OtherTransport())
    with pytest.raises(RuntimeError, match=r"rank 0: sum of float64\[2\]; rank 1: max of int64"):
        exchanges.exchange(np.ones(2), SUM)
    with pytest.raises(RuntimeError, match="rank 0: here"):
        exchanges.check("here")


def test_checksums_are_63_bits_of_a_text():
    assert checksum("a") != checksum("b")
    assert 0 <= checksum("a") < 2**63


def test_alone_what_was_sent_is_received():
    alone = AloneTransport()
    alone.send(np.ones(2), 0, 3)
    got = np.zeros(2)
    alone.receive(got, 0, 3)
    np.testing.assert_array_equal(got, [1, 1])
    with pytest.raises(LookupError, match="nothing was sent with tag 3"):
        alone.receive(got, 0, 3)
