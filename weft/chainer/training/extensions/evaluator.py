"""Evaluator: the means of what a link reports over a dataset."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

from ...configuration import no_backprop_mode, using_config
from ...dataset import concat_examples
from ...link import Link
from ...reporter import DictSummary, Reporter, report, report_scope
from ..extension import PRIORITY_WRITER, Extension


class Evaluator(Extension):
    """Run a link over an iterator, once, and report the means under "validation/"."""

    trigger = (1, "epoch")
    priority = PRIORITY_WRITER
    default_name = "validation"

    def __init__(
        self,
        iterator: Any,
        target: Any,
        converter: Callable[..., Any] = concat_examples,
        device: Any = None,
        eval_hook: Callable[[Any], Any] | None = None,
        eval_func: Callable[..., Any] | None = None,
        **_: Any,
    ) -> None:
        self._iterators = iterator if isinstance(iterator, Mapping) else {"main": iterator}
        self._targets = {"main": target} if isinstance(target, Link) else target
        self.converter, self.device = converter, device
        self.eval_hook, self.eval_func = eval_hook, eval_func

    def get_iterator(self, name: str) -> Any:
        """Return an iterator."""
        return self._iterators[name]

    def get_target(self, name: str) -> Any:
        """Return a link."""
        return self._targets[name]

    def __call__(self, trainer: Any = None) -> dict[str, float]:
        """Evaluate, and report the means."""
        reporter = Reporter()
        prefix = f"{self.name}/" if self.name else ""
        for name, target in self._targets.items():
            reporter.add_observer(prefix + name, target)
            reporter.add_observers(prefix + name, target.namedlinks(skipself=True))
        with reporter, using_config("train", False), no_backprop_mode():
            result = self.evaluate()
        report(result)
        return result

    def _check_ends(self, iterator: Any) -> None:
        """Refuse an iterator that begins again and again: Chainer would evaluate for ever."""
        if getattr(iterator, "repeat", False) is True:
            raise ValueError(
                "the iterator of an Evaluator must end: it has repeat=True; make it with "
                f"{type(iterator).__name__}(dataset, batch_size, repeat=False, shuffle=False)"
            )

    def evaluate(self) -> dict[str, float]:
        """Return the means; other kinds of evaluation define their own."""
        if self.eval_hook:
            self.eval_hook(self)
        self._check_ends(self._iterators["main"])
        iterator = self._fresh(self._iterators["main"])
        function = self.eval_func or self._targets["main"]
        summary = DictSummary()
        for batch in iterator:
            observation: dict[str, Any] = {}
            with report_scope(observation):
                arrays = self.converter(batch, self.device)
                if isinstance(arrays, tuple):
                    function(*arrays)
                elif isinstance(arrays, dict):
                    function(**arrays)
                else:
                    function(arrays)
            summary.add(observation)
        return summary.compute_mean()

    def _fresh(self, iterator: Any) -> Any:
        if not hasattr(iterator, "reset"):
            return copy.copy(iterator)
        iterator.reset()
        return iterator

    def finalize(self) -> None:
        """End the iterators."""
        for iterator in self._iterators.values():
            iterator.finalize()
