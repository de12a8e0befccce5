"""Programs of processes: known by a number, and told apart by their operations."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft import distributed as dist
from weft.distributed.exchanges import Exchanges, ExchangeSignature
from weft.distributed.programs import (
    BITS,
    OF_NUMBERS,
    RunningProgram,
    agree,
    checksum,
    difference,
    packed,
)
from weft.distributed.transport import AloneTransport
from weft.graph.outline import OutlineLine
from weft.graph.run import Program


class NumberedProgram:
    def __init__(self, number):
        self.number = number


def test_one_number_of_an_exchange_and_its_program():
    one, other = checksum("a"), checksum("b")
    seven, eight = NumberedProgram(7), NumberedProgram(8)
    assert agree([packed(one, seven), packed(one, seven)]) == (True, True, True)
    assert agree([packed(one, seven), packed(other, seven)]) == (False, True, True)
    assert agree([packed(one, seven), packed(one, eight)]) == (True, True, False)
    more = NumberedProgram(7 + (1 << OF_NUMBERS))
    assert agree([packed(one, seven), packed(one, more)]) == (True, False, False)
    assert all(agree([packed(one, seven), packed(one, None)]))  # eager beside compiled
    assert packed(one, None) < 2**63
    assert packed(one, seven) & ((1 << BITS) - 1) == 7


class NumbersBeside(AloneTransport):
    """One process beside another that computes with other numbers."""

    def agree(self, number):
        return [number, number ^ 1]

    def objects(self, item):
        sizes, numbers = item
        return [item, (sizes + self.longer, [OutlineLine("mul(..., 3.0)", "b.py:2"), *numbers[1:]])]


@pytest.mark.parametrize("longer", [0, 1])
def test_other_numbers_in_the_same_program_are_told_once(longer, recwarn):
    with wf.Graph() as graph:
        x = wf.placeholder((2,), wf.float32)
        y = x * 2.0
    program = RunningProgram(Program(graph, [y.value], [x.value]))
    exchanges = Exchanges(NumbersBeside())
    exchanges.transport.longer = longer  # then numbers may follow from sizes
    for _ in range(2):
        exchanges.exchange(np.ones(1), ExchangeSignature("sum", (1,), "float64"), program)
    said = [str(one.message) for one in recwarn]
    assert len(said) == 1 - longer
    if said:
        assert "different numbers: rank 0: mul(..., 2.0)" in said[0]
        assert "rank 1: mul(..., 3.0), b.py:2" in said[0]


def test_where_programs_part_is_said_with_the_users_line():
    tanh = [OutlineLine("linear(outer)", ""), OutlineLine("tanh(0.0)", "train.py:3")]
    relu = [OutlineLine("linear(outer)", ""), OutlineLine("relu(0.0)", "train.py:4")]
    assert difference([None, tanh, relu]) == (
        "rank 1 runs 2 operations, rank 2 2, and they part at operation 1: "
        "rank 1: tanh(0.0), train.py:3; rank 2: relu(0.0), train.py:4"
    )
    assert difference([tanh, tanh[:1]]).endswith("rank 1: nothing more")


class Beside(AloneTransport):
    """One process beside another that runs another program."""

    numbers = None

    def agree(self, number):
        self.numbers = [number, number ^ (1 << OF_NUMBERS)]
        return self.numbers

    def objects(self, item):
        return [item, [*item, OutlineLine("neg(1.0)", "")]]


def test_a_captured_step_tells_its_program_with_its_exchanges(monkeypatch):
    model = wf.nn.Linear(2, 1)
    handle = dist.parallel(model)
    seen = []
    compare = Exchanges._compare
    monkeypatch.setattr(Exchanges, "_compare", lambda *args: seen.append(args[2]) or compare(*args))

    def step(x):
        model.zero_grad()
        model(x).sum().backward()

    step(wf.ones(1, 2))
    wf.jit(step)(wf.ones(1, 2))
    handle.close()
    assert seen[0] is None
    assert seen[1].lines[0].text == "state() -> float32 (2-d)"
    exchanges = Exchanges(Beside())
    signature = ExchangeSignature("sum", (), "float32")
    with pytest.raises(dist.MismatchError, match=r"do not run the same program: .*: neg\(1.0\)"):
        exchanges.exchange(wf.ones(()).numpy(), signature, seen[1])
    exchanges.differing = 1
    exchanges.transport.agree = lambda number: [number, number]
    exchanges.exchange(wf.ones(()).numpy(), signature, seen[1])


def test_programs_that_differ_by_their_nature_are_not_compared(monkeypatch):
    seen = []
    monkeypatch.setattr(Exchanges, "_compare", lambda *args: seen.append(args[2]))

    def by_value(x):
        y = dist.all_reduce(x)
        return y + 1.0 if x.sum() > 0.0 else y

    def to_one(x):
        return dist.all_reduce(x) + dist.send(x, 0) + dist.recv(x, 0)

    for function in (by_value, to_one):
        wf.jit(function)(wf.ones(2))
    assert seen == [None, None]
