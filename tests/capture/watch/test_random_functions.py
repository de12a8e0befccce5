"""Random functions over Python objects: repeating what was seen is running them again."""

import random
from dataclasses import dataclass

import pytest

from tests.programs.python_functions import disturb, picture, source, state, world
from weft.capture.watch import Watch


class Number:
    """The argument, or a sum with it; while a call is recorded, known as an expression only."""

    def __init__(self, value, expression=None):
        self.value = value
        self.expression = expression

    def __add__(self, other):
        added = other.value if isinstance(other, Number) else other
        if not is_recorded(self) and not is_recorded(other):
            return Number(self.value + added)
        return Number(None, lambda x: evaluated(self, x) + evaluated(other, x))

    __radd__ = __add__

    def __repr__(self):
        return "a number"


def evaluated(term, x):
    if isinstance(term, Number):
        return term.expression(x) if is_recorded(term) else term.value
    return term


def is_recorded(value):
    return type(value) is Number and value.expression is not None


def is_number(value):
    return type(value) is Number


@dataclass
class Recording:
    holds: object
    effects: object
    result: object
    argument: object


class Repeating:
    """A function whose Python runs only where nothing recorded fits."""

    def __init__(self, function):
        self.function = function
        self.recordings = []
        self.counts = dict.fromkeys(("recorded", "repeated", "refused"), 0)

    def __call__(self, x):
        for known in self.recordings:
            if known.holds():
                self.counts["repeated"] += 1
                return self._repeat(known, x)
        return self._record(x)

    def _repeat(self, known, x):
        made, numbers = {}, {id(known.argument): x}

        def resolve(leaf):
            return numbers.setdefault(id(leaf), Number(leaf.expression(x.value)))

        known.effects.apply(resolve, made)
        return known.result(resolve, made)

    def _record(self, x):
        leaf = Number(None, lambda x: x)
        watch = Watch(self.function, (leaf,), opaque=is_number, recorded=is_recorded)
        try:
            with watch:
                result = self.function(leaf)
        except Exception:  # the function's own, or of something that no recorded number can do
            watch.undo()
            return self.function(x)
        assert "could not be followed" not in str(watch.refusal)
        try:
            recipe = watch.recipe(result)
        except Exception:
            recipe = None
        watch.undo()
        if watch.refusal is not None or recipe is None:
            self.counts["refused"] += 1
            return self.function(x)
        self.counts["recorded"] += 1
        known = Recording(watch.guards.compile(), watch.effects, recipe, leaf)
        assert known.holds(), watch.guards.failed()
        self.recordings.append(known)
        return self._repeat(known, x)


def run(seed):
    """Compare a function with its repetition on two copies of a world; return the counts."""
    text = source(seed)
    rng = random.Random(seed)
    real, other = world(text), world(text)
    repeating = Repeating(other.f)
    for step in range(8):
        if rng.random() < 0.4:
            choice = rng.randrange(1000)
            disturb(real, choice), disturb(other, choice)
        x = rng.choice((1, 2.5, 7))
        outcomes = []
        for function in (real.f, repeating):
            try:
                outcomes.append(function(Number(x)))
            except AssertionError:
                raise
            except Exception as error:
                outcomes.append(f"{type(error).__name__}: {error}")
        expected = picture(outcomes[0], *state(real))
        found = picture(outcomes[1], *state(other))
        assert found == expected, f"seed {seed}, call {step}\n{text[text.index('def f(x)') :]}"
        if isinstance(outcomes[0], str):
            break
    return repeating.counts


@pytest.mark.parametrize("part", range(8))
def test_repeating_is_running_again(part):
    counts = [run(seed) for seed in range(part * 40, part * 40 + 40)]
    assert sum(c["repeated"] for c in counts) > 20
