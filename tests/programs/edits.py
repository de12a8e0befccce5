"""Random programs that can be edited in two ways: as a graph, and as the text it is built from.

A program is a table of instructions, each a function of the results of others. Building it walks
over what is needed. An edit of the table is what an edit of the graph must amount to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import weft as wf

from .drawn import BINARY, REDUCTIONS, ROWS, UNARY

COLUMNS = 4
SHAPES = {"matrix": ("n", COLUMNS), "row": (COLUMNS,), "number": ()}


def _scanned(x):
    """Return the rows of a recurrence over those of a matrix."""
    return wf.scan(lambda h, row: (wf.tanh(h + row), h * 0.5 + row), wf.zeros(COLUMNS), x)[1]


def _chosen(x, y):
    return wf.cond(x.sum() > y.sum(), wf.tanh, lambda a: a * 0.5 + y, x)


def _repeated(x):
    start = (wf.tensor(0), x)
    return wf.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, wf.sin(c[1])), start)[1]


def _means(x):
    return REDUCTIONS["mean"](x, axis=0)


# Functions by the kinds of their operands, and the kind of the result.
TABLE: dict[tuple[tuple[str, ...], str], list[Callable[..., Any]]] = {
    (("matrix",), "matrix"): [
        *(UNARY[name] for name in ("tanh", "bell", "sqrt", "gelu", "line", "quotient")),
        *(ROWS[name] for name in ("softmax", "layer_norm", "center")),
        _scanned,
        _repeated,
    ],
    (("matrix", "matrix"), "matrix"): [
        *(BINARY[name] for name in ("sum", "difference", "product", "maximum", "hypot")),
        _chosen,
    ],
    (("matrix", "row"), "matrix"): [BINARY["sum"], BINARY["quotient"]],
    (("matrix", "number"), "matrix"): [BINARY["difference"]],
    (("matrix",), "row"): [_means, lambda x: REDUCTIONS["logsumexp"](x, axis=0)],
    (("row",), "row"): [UNARY["sigmoid"], UNARY["atan"], lambda x: x.flip(0) * 0.5],
    (("row", "row"), "row"): [BINARY["sum"], BINARY["minimum"], BINARY["logaddexp"]],
    (("row",), "number"): [REDUCTIONS["norm"]],
    (("number", "number"), "number"): [BINARY["product"]],
}


@dataclass(frozen=True)
class Instruction:
    """One step: a function of the results of others; of none, a constant or a state."""

    kind: str
    function: Callable[..., Any]
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True)
class TextProgram:
    """A program as a table of instructions.

    placeholders   the names of those that are fed, by number
    size           the number of rows of matrices, "n" as long as it is not known
    """

    steps: dict[int, Instruction]
    placeholders: dict[int, str]
    size: Any = "n"

    def build(self) -> tuple[wf.Graph, dict[int, Any]]:
        """Return the graph that the table describes, and the symbols of the results."""
        with wf.Graph("built") as graph:
            made: dict[int, Any] = {}
            for number, name in self.placeholders.items():
                made[number] = wf.placeholder(self.shape(number), wf.float32, name=name)
            for number in self.steps:
                self._make(number, made)
        return graph, made

    def shape(self, number: int) -> tuple[Any, ...]:
        """Return the shape of a result."""
        return tuple(self.size if s == "n" else s for s in SHAPES[self.steps[number].kind])

    def _make(self, number: int, made: dict[int, Any]) -> Any:
        if number not in made:
            step = self.steps[number]
            made[number] = step.function(*[self._make(i, made) for i in step.arguments])
        return made[number]

    def leading_to(self, number: int) -> set[int]:
        """Return the instructions that one needs, itself included."""
        found, pending = set(), [number]
        while pending:
            number = pending.pop()
            if number not in found:
                found.add(number)
                pending += self.steps[number].arguments
        return found

    def taking(self, old: int, new: int) -> TextProgram:
        """Return the program in which what took one result takes another, unless it leads to it."""
        leading = self.leading_to(new)
        steps = {
            i: step if i in leading else replace(step, arguments=_with(step.arguments, old, new))
            for i, step in self.steps.items()
        }
        return replace(self, steps=steps)

    def adding(self, step: Instruction) -> tuple[TextProgram, int]:
        """Return the program with one more instruction, and its number."""
        number = max(self.steps) + 1
        return replace(self, steps={**self.steps, number: step}), number

    def without(self, number: int) -> TextProgram:
        """Return the program without a placeholder."""
        steps = {i: step for i, step in self.steps.items() if i != number}
        placeholders = {i: name for i, name in self.placeholders.items() if i != number}
        return replace(self, steps=steps, placeholders=placeholders)

    def keeping(self, numbers: Iterable[int]) -> TextProgram:
        """Return the program of what some results need."""
        needed = set().union(*(self.leading_to(i) for i in numbers))
        steps = {i: step for i, step in self.steps.items() if i in needed}
        placeholders = {i: name for i, name in self.placeholders.items() if i in needed}
        return replace(self, steps=steps, placeholders=placeholders)

    def joining(self, other: TextProgram) -> tuple[TextProgram, dict[int, int]]:
        """Return both programs as one, with placeholders of one name, and numbers of the other."""
        ours = {name: i for i, name in self.placeholders.items()}
        start = max(self.steps) + 1
        places = {i: start + i for i in other.steps}
        places |= {i: ours[name] for i, name in other.placeholders.items()}
        steps = {
            places[i]: replace(step, arguments=tuple(places[x] for x in step.arguments))
            for i, step in other.steps.items()
            if i not in other.placeholders
        }
        return replace(self, steps={**self.steps, **steps}), places

    def of_kind(self, kind: str) -> list[int]:
        """Return the results of a kind."""
        return [i for i, step in self.steps.items() if step.kind == kind]

    def feeds(self, rng: np.random.Generator) -> dict[str, Any]:
        """Return values for the placeholders by name."""
        rows = 3 if self.size == "n" else self.size
        shapes = {i: tuple(rows if s == "n" else s for s in self.shape(i)) for i in self.steps}
        return {
            name: rng.normal(size=shapes[i]).astype(np.float32)
            for i, name in self.placeholders.items()
        }


def _with(arguments: tuple[int, ...], old: int, new: int) -> tuple[int, ...]:
    return tuple(new if i == old else i for i in arguments)


def _fed() -> Any:
    raise AssertionError("a placeholder is not computed")


PLACEHOLDERS = {"x0": "matrix", "x1": "matrix", "x2": "row", "x3": "number"}


def random_program(
    rng: np.random.Generator, steps: int = 8, placeholders: dict[str, str] | None = None
) -> TextProgram:
    """Return a program of placeholders, given by name and kind, a state and some steps."""
    names = PLACEHOLDERS if placeholders is None else placeholders
    table = {i: Instruction(kind, _fed) for i, kind in enumerate(names.values())}
    weight = wf.tensor(rng.normal(size=COLUMNS).astype(np.float32)).requires_grad_()
    table[len(names)] = Instruction("row", lambda: wf.tanh(weight))
    while len(table) < len(names) + 1 + steps:
        step = _random_step(rng, table)
        if step is not None:
            table[len(table)] = step
    return TextProgram(table, dict(enumerate(names)))


def _random_step(rng: np.random.Generator, table: dict[int, Instruction]) -> Instruction | None:
    operands, result = choose(rng, list(TABLE))
    options = [[i for i, step in table.items() if step.kind == kind] for kind in operands]
    if not all(options):
        return None
    arguments = tuple(choose(rng, some) for some in options)
    return Instruction(result, choose(rng, TABLE[operands, result]), arguments)


def choose(rng: np.random.Generator, options: Any) -> Any:
    """Return one of several things."""
    return options[int(rng.integers(len(options)))]
