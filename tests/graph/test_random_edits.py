"""Random edits of random graphs: each gives the very graph that is built that way."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.programs.edits import TABLE, Instruction, TextProgram, choose, random_program
from weft.core.errors import GraphError

PROGRAMS = 63
EDITS = 8  # of each program, one after another


class Edited:
    """A graph that is edited, beside the text of the program that it must be equal to."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.text = random_program(self.rng)
        self.graph, self.symbols = self.text.build()

    def choose(self, options):
        return choose(self.rng, options)

    def edit(self) -> str:
        """Make a random edit in both ways; return its name."""
        edits = [
            self.insert,
            self.replace,
            self.replace_by_number,
            self.replace_two,
            self.substitute_by_array,
            self.substitute_by_placeholder,
            self.rename,
            self.prune,
            self.call,
            self.join,
            self.merge,
        ]
        while True:
            edit = self.choose(edits)
            if edit():
                return edit.__name__

    # -- the edits ---------------------------------------------------------------------------------

    def _function(self, number):
        kind = self.text.steps[number].kind
        table = TABLE.get(((kind,), kind)) or [wf.tanh]
        return kind, self.choose(table)

    def insert(self):
        at = self.choose(list(self.text.steps))
        kind, function = self._function(at)
        self.text, made = self.text.adding(Instruction(kind, function, (at,)))
        self.text = self.text.taking(at, made)
        self.graph = self.graph.insert(self.symbols[at], function, name=f"inserted_{made}")
        self.symbols[made] = self.graph.symbol(f"inserted_{made}")
        return True

    def _pair(self):
        old = self.choose(list(self.text.steps))
        return old, self.choose(self.text.of_kind(self.text.steps[old].kind))

    def replace(self):
        old, new = self._pair()
        self.text = self.text.taking(old, new)
        self.graph = self.graph.replace(self.symbols[old], self.symbols[new])
        return True

    def replace_by_number(self):
        old = self.choose(list(self.text.steps))
        shape = self.text.shape(old)
        if "n" in shape:
            return False  # the text cannot say it: see test_edit.py
        number = round(float(self.rng.normal()), 2)
        step = Instruction(self.text.steps[old].kind, lambda: _filled(number, shape))
        self.text, made = self.text.adding(step)
        self.text = self.text.taking(old, made)
        name = f"number_{made}"
        self.graph = self.graph.replace(self.symbols[old], number, name=name)
        self.symbols[made] = self.graph.symbol(name)
        return True

    def replace_two(self):
        (a, b), (c, d) = self._pair(), self._pair()
        if len({a, b, c, d}) < 4:
            return False
        table = {self.symbols[a]: self.symbols[b], self.symbols[c]: self.symbols[d]}
        lead_b, lead_d = self.text.leading_to(b), self.text.leading_to(d)
        steps = {
            i: Instruction(
                step.kind,
                step.function,
                tuple(
                    b if x == a and i not in lead_b else d if x == c and i not in lead_d else x
                    for x in step.arguments
                ),
            )
            for i, step in self.text.steps.items()
        }
        text = TextProgram(steps, self.text.placeholders, self.text.size)
        if _is_cyclic(text):
            with pytest.raises(GraphError, match="would each need the other"):
                self.graph.replace(table)
            return False
        self.text, self.graph = text, self.graph.replace(table)
        return True

    def substitute_by_array(self):
        if not self.text.placeholders:
            return False
        old, name = self.choose(list(self.text.placeholders.items()))
        rows = 3 if self.text.size == "n" else self.text.size
        shape = tuple(rows if s == "n" else s for s in self.text.shape(old))
        array = self.rng.normal(size=shape).astype(np.float32)
        if self.text.steps[old].kind == "matrix":
            self.text = TextProgram(self.text.steps, self.text.placeholders, rows)
        step = Instruction(self.text.steps[old].kind, lambda: wf.tensor(array.copy()))
        self.text, made = self.text.adding(step)
        self.text = self.text.taking(old, made).without(old)
        self.graph = self.graph.substitute({name: array})
        self.symbols[made] = self.symbols.pop(old)
        return True

    def substitute_by_placeholder(self):
        names = self.text.placeholders
        pairs = [(a, b) for a in names for b in names if a != b and self._same_kind(a, b)]
        if not pairs:
            return False
        old, new = self.choose(pairs)
        self.graph = self.graph.substitute({names[old]: self.symbols[new]})
        self.text = self.text.taking(old, new).without(old)
        del self.symbols[old]
        return True

    def _same_kind(self, a, b):
        return self.text.steps[a].kind == self.text.steps[b].kind

    def rename(self):
        number = self.choose(list(self.text.steps))
        name = f"renamed_{int(self.rng.integers(10**9))}"
        self.graph = self.graph.rename(self.symbols[number], name)
        assert self.graph.symbol(name).value is self.graph.symbol(self.symbols[number]).value
        if number in self.text.placeholders:
            names = {**self.text.placeholders, number: name}
            self.text = TextProgram(self.text.steps, names, self.text.size)
        return True

    def prune(self):
        kept = {self.choose(list(self.text.steps)) for _ in range(4)}
        self.text = self.text.keeping(kept)
        self.graph = self.graph.prune([self.symbols[i] for i in kept])
        self.symbols = {i: s for i, s in self.symbols.items() if i in self.text.steps}
        return True

    def call(self):
        outputs = [self.symbols[i] for i in self.text.steps if i not in self.text.placeholders]
        numbers = [i for i in self.text.steps if i not in self.text.placeholders]
        if not outputs:
            return False
        inner, texts = self.graph, self.text
        with wf.Graph("caller") as graph:
            fed = {
                i: wf.placeholder(texts.shape(i), wf.float32, name=name)
                for i, name in texts.placeholders.items()
            }
            made = inner(
                outputs=outputs, **{texts.placeholders[i]: symbol for i, symbol in fed.items()}
            )
        self.graph, self.symbols = graph, {**fed, **dict(zip(numbers, made, strict=True))}
        return True

    def join(self):
        """Merge with a program that takes some of the same placeholders."""
        fed = {name: self.text.steps[i].kind for i, name in self.text.placeholders.items()}
        if "matrix" not in fed.values() or len(self.text.steps) > 30:
            return False
        other = random_program(self.rng, 3, fed)
        graph, symbols = other.build()
        self.graph = wf.Graph.merge(self.graph, graph, join=True)
        self.text, places = self.text.joining(other)
        new = {places[i]: symbol for i, symbol in symbols.items() if i not in other.placeholders}
        self.symbols |= new
        return True

    def merge(self):
        """Merge with a program that has nothing to do with this one; both compute what they did."""
        other = random_program(self.rng, 3)
        graph, symbols = other.build()
        self.graph = wf.Graph.merge(self.graph, graph)
        results = list(symbols.values())[len(other.placeholders) :]
        feeds = other.feeds(self.rng)
        fed = {self.graph.symbol(symbols[i]): feeds[n] for i, n in other.placeholders.items()}
        found = wf.Session(self.graph, compiled=False).run(results, fed)
        expected = wf.Session(graph, compiled=False).run(results, feeds)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
        return True

    # -- what must hold ----------------------------------------------------------------------------

    def check(self, what, *, compiled=False):
        built, symbols = self.text.build()
        numbers = list(self.text.steps)
        self.graph.verify()
        ours, theirs = ([s[i] for i in numbers] for s in (self.symbols, symbols))
        assert self.graph.hash(ours) == built.hash(theirs), what
        feeds = self.text.feeds(np.random.default_rng(0))
        found = wf.Session(self.graph, compiled=compiled).run(ours, feeds)
        expected = wf.Session(built, compiled=compiled).run(theirs, feeds)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b, err_msg=what)

    def check_gradients(self, what):
        built, symbols = self.text.build()
        numbers = list(self.text.steps)
        ours = _gradient(self.graph, self.symbols, numbers)
        theirs = _gradient(built, symbols, numbers)
        assert self.graph.hash(ours) == built.hash(theirs), what
        feeds = self.text.feeds(np.random.default_rng(0))
        found = wf.Session(self.graph, compiled=False).run(ours, feeds)
        expected = wf.Session(built, compiled=False).run(theirs, feeds)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5, err_msg=what)


def _gradient(graph, symbols, numbers):
    """Return the gradients of all results with respect to all, in a graph."""
    with graph:
        total = sum(wf.sum(symbols[i]) for i in numbers)
        found = wf.gradients(total, [symbols[i] for i in numbers])
    return [g for g in found if g is not None]


def _filled(number, shape):
    constant = wf.tensor(np.float32(number))
    return wf.broadcast_to(constant, shape) if shape else constant


def _is_cyclic(text):
    state: dict[int, int] = {}

    def visit(number):
        if state.get(number) == 1:
            return True
        if number in state:
            return False
        state[number] = 1
        found = any(map(visit, text.steps[number].arguments))
        state[number] = 2
        return found

    return any(visit(number) for number in text.steps)


@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_an_edited_graph_is_the_graph_built_that_way(seed):
    edited = Edited(seed)
    for i in range(EDITS):
        what = edited.edit()
        edited.check(f"seed {seed}, edit {i}: {what}", compiled=seed % 16 == 0 and i == EDITS - 1)
    edited.check_gradients(f"seed {seed}")
