"""Functions that write batches of one code into lists of launches, written as text.

There are a hundred batches in a step, each of a dozen commands of six words. Of a cell's code
everything is known but addresses and sizes: the text is one expression for all commands, where
loops over operands and results would take three times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..backends.cpu.runtime.launches import (
    copy_words,
    fill_words,
    gather_words,
    program_words,
)
from ..core.generated import define


class ForwardForm(NamedTuple):
    """What batches of a code have in common that run forward.

    operands   for each operand that differs between members the bytes of a row, and whether what
               lies behind rows may fill batches up; None for one that members share
    results    the bytes of a row of each result
    others     how many other arrays the program makes
    kept       which of what it makes is kept for the way back: of results first, then of others
    feeds, made   which of operands, and of what it makes, the program takes
    """

    operands: tuple[tuple[int, bool] | None, ...]
    results: tuple[int, ...]
    others: int
    kept: tuple[int, ...]
    feeds: tuple[int, ...]
    made: tuple[int, ...]


def written_forward(form: ForwardForm) -> Callable[..., tuple[list[int], list[int], int]]:
    """Return a function that writes down a batch.

    It takes the words of a list and a function that takes memory; where operands lie, the addresses
    of the numbers of their rows, the members, the width; the addresses of arenas of operands and
    results, of what members share, of results as the program makes them, and where the rows of the
    batch begin in arenas; where the others lie, from an address on; the program and its context.
    It returns the addresses of operands, of what is kept, and how many operands lie side by side.
    """
    apart = [i for i, operand in enumerate(form.operands) if operand is not None]
    shared = [i for i, operand in enumerate(form.operands) if operand is None]
    counts = range(len(form.results)), range(form.others)
    lines = [
        "beside = 0",
        *_unpacked(_names("p", apart), "places"),
        *_unpacked(_names("n", apart), "numbers"),
        *_unpacked(_names("a", apart), "arenas"),
        *_unpacked(_names("x", shared), "shared"),
        *_unpacked(_names("r", counts[0]), "results"),
        *_unpacked(_names("t", counts[0]), "targets"),
        *_unpacked(_names("b", counts[0]), "begins"),
        *_unpacked(_names("k", counts[1]), "offsets"),
        *[f"k{i} += room" for i in counts[1]],
        *[f"t{i} += b{i} * {nbytes}" for i, nbytes in enumerate(form.results)],
    ]
    for i, operand in enumerate(form.operands):
        if operand is not None:
            lines += _taken(i, *operand)
    lines += _launched(form)
    ours = ", ".join(_names("x", range(len(form.operands))))
    left = [f"t{i}" for i in counts[0]] + _names("k", counts[1])
    kept = ", ".join([left[i] for i in form.kept])
    lines.append(f"return [{ours}], [{kept}], beside")
    names = "words, take, places, numbers, size, width, arenas, shared, results, targets, begins"
    head = f"def write({names}, room, offsets, run, context):"
    return define("write", "\n    ".join([head, *lines]) + "\n", {}, "write down a batch")


def _taken(i: int, nbytes: int, fills: bool) -> list[str]:
    """Return lines that find an operand where it lies, or have it gathered."""
    x, rows = f"x{i}", f"p{i}.__class__ is slice"
    lines = [
        f"if {rows}{'' if fills else ' and size == width'}:",
        f"    {x} = a{i} + p{i}.start * {nbytes}",
        "    beside += 1",
        "else:",
        f"    {x} = take(width * {nbytes})",
    ]
    gathered = f"words += ({gather_words(x, f'a{i}', f'n{i}', 'size', nbytes)})"
    if fills:
        lines.append(f"    {gathered}")
    else:
        source = f"a{i} + p{i}.start * {nbytes}"
        lines += [
            f"    if {rows}:",
            f"        words += ({copy_words(x, source, f'size * {nbytes}')})",
            "        beside += 1",
            "    else:",
            f"        {gathered}",
        ]
    end = f"{x} + size * {nbytes}"
    filled = fill_words(end, f"{end} - {nbytes}", "width - size", nbytes)
    return [*lines, "    if width > size:", f"        words += ({filled})"]


def _launched(form: ForwardForm) -> list[str]:
    """Return lines that run the program, and copy members of results to where they belong."""
    made = [f"r{i}" for i in range(len(form.results))] + _names("k", range(form.others))
    arguments = [*[f"x{i}" for i in form.feeds], *[made[i] for i in form.made]]
    commands = [program_words("run", "context", arguments)]
    commands += [
        copy_words(f"t{i}", f"r{i}", f"size * {nbytes}") for i, nbytes in enumerate(form.results)
    ]
    return [f"words += ({', '.join(commands)})"]


def _names(letter: str, numbers: Sequence[int]) -> list[str]:
    return [f"{letter}{i}" for i in numbers]


def _unpacked(names: list[str], what: str) -> list[str]:
    return [f"{', '.join(names)}, = {what}"] if names else []
