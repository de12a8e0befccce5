"""Functions that write batches of one code into lists of launches, written as text.

There are a hundred batches in a step, each of a dozen commands of six words. Of a cell's code
everything is known but addresses and sizes: the text is one expression for all commands, where
loops over operands and results would take three times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ..backends.cpu.runtime.launches import (
    add_words,
    copy_words,
    fill_words,
    gather_words,
    program_words,
    scatter_add_words,
    scatter_words,
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


class GivenGradient(NamedTuple):
    """A gradient that an operand is given.

    operand   which one it is of those that differ between members
    made      which of what the adjoint makes is its gradient
    letter    of the dtype; then the bytes and the elements of a row
    """

    operand: int
    made: int
    letter: str
    row_bytes: int
    elements: int


class BackwardForm(NamedTuple):
    """What batches of a code have in common that run backward.

    given    how many operands there are, and how many arrays are kept
    seeds    the bytes of a row of each result that has gradients
    made     how many arrays the adjoint makes
    direct   which of these it puts among what gradients of shared operands are computed from: its
             number there, and the bytes of a row
    copied   which of operands and kept arrays are copied there, in the same way
    gives    the gradients of operands, in the order in which they are given
    feeds, takes   what of operands, kept arrays and gradients of results, and of what it makes, the
             program takes
    """

    given: tuple[int, int]
    seeds: tuple[int, ...]
    made: int
    direct: tuple[tuple[int, int, int], ...]
    copied: tuple[tuple[int, int, int], ...]
    gives: tuple[GivenGradient, ...]
    feeds: tuple[int, ...]
    takes: tuple[int, ...]


def written_backward(form: BackwardForm) -> Callable[..., None]:
    """Return a function that writes down the adjoint of a batch.

    It takes the words of a list; where operands lie, the addresses of the numbers of their rows,
    whether who reads them is the last; the members; the addresses of operands and of what was kept;
    those of the gradients of results, and where the rows of the batch begin in these; those of what
    the adjoint makes, and of what gradients of shared operands are computed from, of which some
    rows are done; for each gradient that is given the address of the rows that have it, and whether
    these are blank; the program and its context.
    """
    operands, kept = form.given
    counts = range(operands + kept), range(len(form.seeds)), range(form.made)
    totals = sorted({k for _, k, _ in (*form.direct, *form.copied)})
    lines = [
        *_unpacked(_names("x", counts[0][:operands]), "operands"),
        *_unpacked(_names("x", counts[0][operands:]), "kept"),
        *_unpacked(_names("s", counts[1]), "seeds"),
        *_unpacked(_names("b", counts[1]), "begins"),
        *_unpacked(_names("m", counts[2]), "made"),
        *_unpacked(_names("g", range(len(form.gives))), "grads"),
        *_unpacked(_names("e", range(len(form.gives))), "blanks"),
        *[f"s{i} += b{i} * {nbytes}" for i, nbytes in enumerate(form.seeds)],
        *[f"t{k} = totals[{k}]" for k in totals],
        *[f"m{j} = t{k} + done * {nbytes}" for j, k, nbytes in form.direct],
    ]
    given = [*_names("x", counts[0]), *_names("s", counts[1])]
    arguments = [*[given[i] for i in form.feeds], *[f"m{j}" for j in form.takes]]
    commands = [program_words("run", "context", arguments)]
    commands += [
        copy_words(f"t{k} + done * {nbytes}", given[i], f"size * {nbytes}")
        for i, k, nbytes in form.copied
    ]
    lines.append(f"words += ({', '.join(commands)})")
    for i, one in enumerate(form.gives):
        lines += _gives(i, one)
    names = "words, places, numbers, last, size, operands, kept, seeds, begins, made, totals, done"
    head = f"def write({names}, grads, blanks, run, context):"
    return define("write", "\n    ".join([head, *lines]) + "\n", {}, "write down an adjoint")


def _gives(i: int, one: GivenGradient) -> list[str]:
    """Return lines that give an operand its gradient: who reads a value last writes."""
    rows, source, nbytes = f"numbers[{one.operand}]", f"m{one.made}", one.row_bytes
    beside, many = f"g{i} + p.start * {nbytes}", f"size * {one.elements}"
    apart = f"g{i}", source, rows, "size"
    return [
        f"p = places[{one.operand}]",
        f"if e{i} and last[{one.operand}]:",
        "    if p.__class__ is slice:",
        f"        words += ({copy_words(beside, source, f'size * {nbytes}')})",
        "    else:",
        f"        words += ({scatter_words(*apart, nbytes)})",
        "elif p.__class__ is slice:",
        f"    words += ({add_words(one.letter, beside, source, many)})",
        "else:",
        f"    words += ({scatter_add_words(one.letter, *apart, one.elements)})",
    ]


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
