"""Batches that are written into lists of launches by text: the words are those of one by one."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from weft.backends.cpu.runtime.launches import LaunchList, NativeCall
from weft.dynamic.written_launches import (
    BackwardForm,
    ForwardForm,
    GivenGradient,
    written_backward,
    written_forward,
)

CALL = NativeCall(None, 7, 8, (2, 0, 1), (1, 0, 3))
FORM = ForwardForm(((40, True), (8, False), None), (16, 24), 2, (1, 3), CALL.feeds, CALL.made)
ARENAS, SHARED, RESULTS, TARGETS, ROOM = [1000, 2000], [3000], [4000, 5000], [6000, 7000], 8000


def room():
    """Return a function that takes memory, the same places each time."""
    places = itertools.count(100_000, 10_000)
    return lambda nbytes: next(places)


def one_by_one(places, size, width):
    """Return the words of a batch, and what is known of it, by the methods of lists."""
    launches, take, operands = LaunchList(), room(), []
    for place, arena, numbers, nbytes, fills in zip(
        places, ARENAS, (11, 12), (40, 8), (True, False), strict=True
    ):
        beside = place.__class__ is slice
        if beside and (fills or size == width):
            operands.append(arena + place.start * nbytes)
            continue
        operands.append(target := take(width * nbytes))
        if beside:
            launches.copy(target, arena + place.start * nbytes, size * nbytes)
        else:
            launches.gather(target, arena, numbers, size, nbytes)
        if width > size:
            end = target + size * nbytes
            launches.fill(end, end - nbytes, width - size, nbytes)
    operands += SHARED
    made = [*RESULTS, ROOM + 64, ROOM + 128]
    arguments = [operands[i] for i in CALL.feeds] + [made[i] for i in CALL.made]
    launches.program(CALL, arguments)
    outs = [TARGETS[0] + 5 * 16, TARGETS[1] + 6 * 24]
    launches.copy(outs[0], RESULTS[0], size * 16)
    launches.copy(outs[1], RESULTS[1], size * 24)
    kept = [outs[1], ROOM + 128]
    return launches.words, operands, kept, sum(place.__class__ is slice for place in places)


@pytest.mark.parametrize("first", [slice(3, 8), np.array([3, 1, 4, 1, 5])])
@pytest.mark.parametrize("second", [slice(2, 7), np.array([9, 2, 6, 5, 3])])
@pytest.mark.parametrize("width", [5, 6])
def test_words_of_a_batch(first, second, width):
    words, places = [], [first, second]
    found = written_forward(FORM)(
        *(words, room(), places, [11, 12], 5, width),
        *(ARENAS, SHARED, RESULTS, TARGETS, [5, 6]),
        *(ROOM, [64, 128], CALL.run, CALL.context),
    )
    assert (words, *found) == one_by_one(places, 5, width)


BACK = BackwardForm(
    given=(2, 1),
    seeds=(16,),
    made=3,
    direct=((2, 0, 12),),
    copied=((0, 1, 40), (3, 2, 16)),
    gives=(GivenGradient(1, 1, "f", 8, 2), GivenGradient(0, 0, "d", 40, 5)),
    feeds=(3, 0, 2),
    takes=(0, 2, 1),
)
PAIRS = [*itertools.product([True, False], repeat=2)]
TOTALS, MADE, GRADS, DONE = [20_000, 30_000, 40_000], [50_000, 60_000, 70_000], [80_000, 90_000], 3


def back_one_by_one(places, last, blanks, size):
    """Return the words of an adjoint, by the methods of lists."""
    launches = LaunchList()
    seed = 9000 + 4 * 16
    given, made = [1000, 2000, 3000, seed], [*MADE[:2], TOTALS[0] + DONE * 12]
    launches.program(CALL, [seed, 1000, 3000, made[0], made[2], made[1]])
    launches.copy(TOTALS[1] + DONE * 40, given[0], size * 40)
    launches.copy(TOTALS[2] + DONE * 16, given[3], size * 16)
    for i, (at, k, letter, nbytes, elements) in enumerate(BACK.gives):
        place, target = places[at], GRADS[i]
        if place.__class__ is slice:
            target += place.start * nbytes
            if blanks[i] and last[at]:
                launches.copy(target, made[k], size * nbytes)
            else:
                launches.add(letter, target, made[k], size * elements)
        elif blanks[i] and last[at]:
            launches.scatter(target, made[k], 11 + at, size, nbytes)
        else:
            launches.scatter_add(letter, target, made[k], 11 + at, size, elements)
    return launches.words


@pytest.mark.parametrize("beside", PAIRS)
@pytest.mark.parametrize("last", PAIRS)
@pytest.mark.parametrize("blanks", PAIRS)
def test_words_of_an_adjoint(beside, last, blanks):
    words, rows = [], np.array([3, 1, 4, 1, 5])
    places = [slice(2, 7) if is_slice else rows for is_slice in beside]
    written_backward(BACK)(
        *(words, places, [11, 12], last, 5, [1000, 2000], [3000], [9000], [4]),
        *(MADE, TOTALS, DONE, GRADS, blanks, CALL.run, CALL.context),
    )
    assert words == back_one_by_one(places, last, blanks, 5)
