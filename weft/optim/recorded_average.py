"""An average of weights as part of a recorded step: its values are states of the graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ..core.dtype import is_float
from ..core.op import F
from ..core.shape import TensorType
from ..core.tensor import Tensor
from ..graph.state import Alone, AttributeKeeper, ItemStep, State, StatePath, number_state
from ..graph.symbol import make_number, make_symbol
from .eager_step import working_dtype


class Averages(NamedTuple):
    """The keeper of averages: a key is the name of a tensor."""

    average: Any

    def read(self, keys: Sequence[str]) -> list[Any]:
        """Return averages now."""
        return [self.average.values[name] for name in keys]

    def write(self, keys: Sequence[str], values: Iterable[Any]) -> None:
        """Give averages new values."""
        self.average.values.update(zip(keys, values, strict=True))

    def path(self, key: str) -> StatePath:
        """Return where an average is."""
        return StatePath(self.average, ("values", ItemStep(key)))


def record_average(recorder: Any, average: Any) -> None:
    """Take the weights at this point of a recording into an average."""
    weight = number_state(
        average, float, Alone(average.next_weight), name="average/weight", writable=False
    )
    share = make_number(recorder.graph, recorder.read_state(weight))
    for name, tensor in average.tensors.items():
        _take_in(recorder, average, name, tensor, share)
    _count(recorder, average)


def _take_in(recorder: Any, average: Any, name: str, tensor: Tensor, share: Any) -> None:
    kept = average.values[name]
    kind = TensorType(kept.shape, kept.dtype)
    state = State(average, kind, Averages(average), name, name="average", label=name, held=True)
    new = recorder.detached(tensor)
    if is_float(new.dtype):
        new = F.cast(new, working_dtype(new.dtype))
        new = make_symbol(recorder.graph, recorder.read_state(state)) * (1.0 - share) + new * share
    recorder.write_state(state, recorder.value_of(F.cast(new, kind.dtype)))


def _count(recorder: Any, average: Any) -> None:
    keeper = AttributeKeeper(average)
    state = number_state(average, int, keeper, "count", name="average/count", label="count")
    count = make_number(recorder.graph, recorder.read_state(state))
    recorder.write_state(state, recorder.value_of(F.cast(count + 1, state.type.dtype)))
