"""Random programs with Python loops, recorded trip by trip: what rolling makes scans of."""

from __future__ import annotations

import numpy as np

import weft as wf

from .drawn import Drawn

ROWS, COLUMNS = 2, 3
F = wf.nn.functional


class RecordedLoops(Drawn):
    """A random program of Python loops, one after another and nested, drawn from a seed.

    Every trip of a loop does the same, except that some differ in the first trip or in the last,
    take turns, or stop in the middle; loops use what earlier ones have left in lists.

    fetches   what the program returns; `loss` is a number that all floats of it lead to
    inputs    what the loss may be differentiated by
    """

    def __init__(self, seed, dtype=np.float64, most_trips=24, draws=True):
        super().__init__(seed, dtype)
        self.draws = draws
        self.table = self.rng.normal(size=(most_trips + 4, COLUMNS)).astype(dtype)
        with wf.Graph() as self.graph:
            self.trips = int(self.rng.integers(8, most_trips + 1))
            self.x = self._normal((self.trips + 4, ROWS, COLUMNS))
            self.wide = self._normal((ROWS, 2 * self.trips + 4, COLUMNS))
            self.square = self._normal((COLUMNS, COLUMNS)) * 0.3
            self.inputs = list(self.feeds)
            self.count = self._feed((), np.array(3))
            self.lists = [[self.x[t] for t in range(self.trips)], list(self.wide.unbind(1))]
            self.fetches = []
            state = [self._normal((ROWS, COLUMNS)) for _ in range(int(self.rng.integers(1, 4)))]
            for _ in range(int(self.rng.integers(1, 4))):
                state = self._loop(state)
            self.fetches += state
            floats = [y for y in self.fetches if y.dtype == self.dtype]
            self.loss = sum(wf.tanh(y).sum() for y in floats)
            self.fetches.insert(0, self.loss)

    # -- loops -------------------------------------------------------------------------------------

    def _loop(self, state):
        """Run a random loop; lists that it leaves are returned, joined, or used by later ones."""
        steps = [self._step(i, len(state)) for i in range(int(self.rng.integers(3, 8)))]
        parts = int(self.rng.integers(1, 3))
        kept = [[] for _ in range(parts)]
        total, count = self._zero(), self.count
        special = self._choose(("none", "none", "first", "last", "turns"))
        rest = self._choose(("none", "none", "stop"))
        for t in range(self.trips):
            known = list(state)
            for step in steps:
                known.append(step(t, known))
            if (special == "first" and t == 0) or (special == "last" and t == self.trips - 1):
                known[-1] = known[-1] * 0.5
            if special == "turns" and t % 2:
                known[-1] = wf.sin(known[-1])
            state = self._next(known, len(state))
            for i, some in enumerate(kept):
                some.append(known[-1 - i])
            total = total + known[-1].mean() * (t + 1)
            count = count + t
            if rest == "stop" and t == self.trips - 2:
                break
        self.count = count
        self.fetches += [total, count]
        for some in kept:
            self._leave(some)
        return state

    def _zero(self):
        return wf.tensor(np.zeros((), self.dtype))

    def _next(self, known, count):
        return [wf.tanh(x) if i else x * 0.5 for i, x in enumerate(known[-count:])]

    def _leave(self, values):
        """Let the list of a loop be used in some way."""
        use = self._choose(("stack", "columns", "concat", "flat", "one", "sum", "some", "reversed"))
        if use == "stack":
            self.fetches.append(wf.stack(values))
        elif use == "columns":
            self.fetches.append(wf.stack(values, 1))
        elif use == "concat":
            self.fetches.append(wf.concat([self.wide[:, 0], *values, values[0]], 1))
        elif use == "flat":
            self.fetches.append(wf.concat(values, None))
        elif use == "one":
            self.fetches.append(values[int(self.rng.integers(len(values)))])
        elif use == "sum":
            self.fetches.append(sum(values))
        elif use == "some":
            self.fetches.append(wf.stack(values[2:-1:2]))
        else:
            self.fetches.append(wf.concat(values[::-1], 0))
        if len(values) == self.trips:
            self.lists.append(values)

    # -- steps -------------------------------------------------------------------------------------

    def _step(self, position, states):
        """Return a function of the trip and of what is known in it."""
        chosen = self._choose((*_STEPS, *(_RANDOM_STEPS if self.draws else ())))
        return chosen(self, position + states)

    def _pick(self, known):
        """Return which of the values known in a trip to take; recent ones are likelier."""
        near = max(0, known - 3)
        return int(self.rng.integers(near if self.rng.integers(2) else 0, known))


def _of_one(program, known):
    i = program._pick(known)
    fn = program._choose((wf.tanh, wf.sin, wf.sigmoid, lambda x: x * 0.5 + 0.1, wf.abs))
    return lambda t, values: fn(values[i])


def _of_two(program, known):
    i, j = program._pick(known), program._pick(known)
    fn = program._choose((wf.add, wf.sub, wf.maximum, lambda x, y: wf.tanh(x * y)))
    return lambda t, values: fn(values[i], values[j])


def _product(program, known):
    i = program._pick(known)
    return lambda t, values: wf.tanh(values[i] @ program.square)


def _row(program, known):
    i, last = program._pick(known), program.trips - 1
    rows = program._choose(
        (
            lambda t: program.x[t],
            lambda t: program.x[t + 1],
            lambda t: program.x[last - t],
            lambda t: program.x[-1 - t],
            lambda t: program.x[(t * 5) % (last + 1)],
            lambda t: program.wide[:, t],
            lambda t: program.wide[:, 2 * t + 1],
            lambda t: program.wide[:, t : t + 3].mean(1),
            lambda t: program.wide[:, 2 * t : 2 * t + 2].sum(1),
            lambda t: program.x[t, 1, None],
            lambda t: program.x[t, t % 2],
        )
    )
    return lambda t, values: values[i] * 0.5 + rows(t)


def _from_list(program, known):
    i, values = program._pick(known), program._choose(program.lists)
    step = program._choose((1, -1))
    return lambda t, known: known[i] + values[::step][t] * 0.5


def _literal(program, known):
    i = program._pick(known)
    kind = program._choose((float, int, "table", "same"))
    if kind == "table":
        return lambda t, values: values[i] + program.table[t]
    if kind == "same":
        return lambda t, values: values[i] * np.full((ROWS, COLUMNS), 0.5, program.dtype)
    return lambda t, values: values[i] * 0.1 + kind(t) * 0.01


def _branch(program, known):
    i = program._pick(known)
    return lambda t, values: wf.cond(
        values[i].sum() > 0, lambda v: wf.tanh(v) + program.x[0], lambda v: v * 0.5, values[i]
    )


def _inner(program, known):
    i = program._pick(known)
    trips = program._choose((3, 9))
    chosen = program._choose((lambda t, s: program.x[s], lambda t, s: program.x[t, :, s % 3, None]))

    def run(t, values):
        h = values[i]
        for s in range(trips):
            h = wf.tanh(h @ program.square + chosen(t, min(s, program.trips)))
        return h

    return run


def _write(program, known):
    i = program._pick(known)
    fixed = bool(program.rng.integers(2))

    def run(t, values):
        y = values[i] * 1.0
        y[0, 0 if fixed else t % COLUMNS] = 0.25
        return y

    return run


def _whole(program, known):
    """Use a row of what an earlier step of the same trip has indexed."""
    i = program._pick(known)
    return lambda t, values: (values[i] + program.x)[t] * 0.5


def _dropout(program, known):
    i = program._pick(known)
    return lambda t, values: F.dropout(values[i], 0.3)


def _noise(program, known):
    i = program._pick(known)
    return lambda t, values: values[i] + wf.randn(ROWS, COLUMNS).to(program.dtype) * 0.1


_STEPS = (
    *(_of_one, _of_two, _product, _row, _row, _from_list, _literal),
    *(_branch, _inner, _write, _whole),
)
_RANDOM_STEPS = (_dropout, _noise)
