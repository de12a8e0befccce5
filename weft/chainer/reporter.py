"""Reports: values that links and evaluators tell, under names of who tells them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from .configuration import config
from .variable import Variable

_stack: list[Reporter] = []  # of all threads: what is local to one, no recording can follow


class Reporter:
    """Where reported values go: `observation`, by "observer/name"."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self.observation: dict[str, Any] = {}

    def add_observer(self, name: str, observer: Any) -> None:
        """Let what an object reports have a prefix."""
        self._names[id(observer)] = name

    def add_observers(self, prefix: str, observers: Any) -> None:
        """Let what objects report have prefixes: pairs of name and object."""
        for name, observer in observers:
            self._names[id(observer)] = prefix + name

    def __enter__(self) -> Reporter:
        _stack.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _stack.pop()

    @contextmanager
    def scope(self, observation: dict[str, Any]) -> Iterator[None]:
        """Collect reports in another dictionary inside a `with` block."""
        with self:
            before, self.observation = self.observation, observation
            try:
                yield
            finally:
                self.observation = before

    def report(self, values: Mapping[str, Any], observer: Any = None) -> None:
        """Take values; variables without what they were computed from."""
        prefix = ""
        if observer is not None:
            name = self._names.get(id(observer))
            if name is None:
                raise KeyError(
                    f"the observer is not registered to the reporter: {type(observer).__name__}"
                )
            prefix = f"{name}/"
        for key, value in values.items():
            self.observation[prefix + key] = _plain(value)


def _plain(value: Any) -> Any:
    """Return what is kept of a reported value."""
    if isinstance(value, Variable) and not config.keep_graph_on_report:
        made = Variable.__new__(Variable)
        made._hold(value._tensor.detach(), value.name)
        return made
    return value


def get_current_reporter() -> Reporter:
    """Return the innermost reporter whose block is open."""
    return _stack[-1]


def report(values: Mapping[str, Any], observer: Any = None) -> None:
    """Report values to the reporter of now, if there is one."""
    if _stack:
        _stack[-1].report(values, observer)


@contextmanager
def report_scope(observation: dict[str, Any]) -> Iterator[None]:
    """Collect reports in a dictionary inside a `with` block."""
    with get_current_reporter().scope(observation):
        yield


@contextmanager
def gathered(kept: dict[str, Any]) -> Iterator[None]:
    """Let the reporter of now collect in a given dictionary, and take it over at the end.

    A compiled step writes into the objects that it was recorded with: always the same dictionary.
    """
    if not _stack:
        yield
        return
    reporter = _stack[-1]
    before = reporter.observation
    kept.clear()
    reporter.observation = kept
    try:
        yield
    finally:
        reporter.observation = before
        before.update(kept)


class Summary:
    """Mean and deviation of numbers, added one by one."""

    def __init__(self) -> None:
        self._sum, self._squares, self._weight = 0.0, 0.0, 0.0

    def add(self, value: Any, weight: float = 1) -> None:
        """Take a number."""
        number = float(as_number(value))
        self._sum += weight * number
        self._squares += weight * number * number
        self._weight += weight

    def compute_mean(self) -> float:
        """Return the mean of what was added."""
        return self._sum / self._weight

    def make_statistics(self) -> tuple[float, float]:
        """Return mean and deviation of what was added."""
        mean = self.compute_mean()
        return mean, float(np.sqrt(max(self._squares / self._weight - mean * mean, 0.0)))

    def serialize(self, serializer: Any) -> None:
        """Write the sums to a serializer, or read them from one."""
        self._sum = float(serializer("_x", self._sum))
        self._squares = float(serializer("_x2", self._squares))
        self._weight = float(serializer("_n", self._weight))


class DictSummary:
    """A Summary for each name; what is no number is left out."""

    def __init__(self) -> None:
        self._summaries: dict[str, Summary] = {}

    def add(self, d: Mapping[str, Any]) -> None:
        """Take numbers by name, with weights as pairs."""
        for name, value in d.items():
            weight = 1.0
            if isinstance(value, tuple):
                value, weight = value[0], float(as_number(value[1]))  # noqa: PLW2901  (the pair is taken apart)
            if is_number(value):
                self._summaries.setdefault(name, Summary()).add(value, weight)

    def compute_mean(self) -> dict[str, float]:
        """Return the means by name."""
        return {name: summary.compute_mean() for name, summary in self._summaries.items()}

    def make_statistics(self) -> dict[str, float]:
        """Return means, and deviations under "name.std"."""
        found = {}
        for name, summary in self._summaries.items():
            found[name], found[f"{name}.std"] = summary.make_statistics()
        return found


def is_number(value: Any) -> bool:
    """Tell whether a reported value is one number."""
    if isinstance(value, Variable):
        return value.size == 1
    return (np.isscalar(value) and not isinstance(value, (str, bytes))) or (
        isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind in "biuf"
    )


def as_number(value: Any) -> float:
    """Return a reported value as a Python number."""
    if isinstance(value, Variable):
        return float(value._tensor.item())
    return float(np.asarray(value).reshape(()))
