"""Reading running frames."""

import ast
import asyncio
import contextlib
import sys
from pathlib import Path

import pytest

from weft.capture.watch import frames


def test_frames_of_this_python_are_read():
    assert frames.is_readable()


def test_depths_of_stacks_follow_from_code():
    """Compare with what a frame says itself, where it does."""
    counts = []

    def follow(frame, event, _):
        if event == "call":
            frames.ask_for_instructions(frame, follow, lines=False)
        elif event == "opcode" and frames._LAYOUT.held is not None:
            variables, depths = frames._shape(frame.f_code)
            counts.append(
                (frames._count(frame, frames._record(frame)), variables + depths[frame.f_lasti])
            )
        return follow

    with frames.traced(follow):
        ast.unparse(ast.parse(Path(__file__).read_text()))
        many_instructions()
    assert [pair for pair in counts if pair[0] != pair[1]] == []


@contextlib.contextmanager
def forgiving():
    try:
        yield 1
    except ValueError:
        return


def counting():
    received = yield 1
    try:
        yield from range(3)
    finally:
        del received


async def waiting():
    async with asyncio.Lock():
        await asyncio.sleep(0)
    return [i async for i in later()]


async def later():
    for i in range(3):
        yield i


def leaving(one):
    with forgiving(), forgiving():
        for i in range(5):
            if i == one:
                continue
            if i == 4:
                raise ValueError(f"{i!r:>10} {one}")
    match {"a": [1, 2], "b": one}:
        case {"a": [first, *rest]} if one < first + 1 < 3:
            rest += [first]


def many_instructions():
    leaving(1)
    pairs = {k: [*v] for k, v in zip("ab", ([1], [2]), strict=True)}
    try:
        try:
            1 / 0  # noqa: B018  (raises)
        finally:
            del pairs["a"]
    except* ZeroDivisionError:
        pairs = dict(*[[("a", 1)]], **pairs)
    asyncio.run(waiting())
    return list(counting()), not pairs or (pairs and 1)


def test_the_function_of_a_frame_is_found():
    def f():
        return frames.function_of(sys._getframe())

    assert f() is f


@pytest.mark.parametrize(
    "layout", [frames.Layout(0, 0), frames.Layout(8, 16), frames.Layout(24, 80)]
)
def test_another_layout_is_noticed(layout, monkeypatch):
    monkeypatch.setattr(frames, "_LAYOUT", layout)
    assert not frames.is_readable.__wrapped__()
