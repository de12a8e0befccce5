"""`tf.nn.rnn_cell`: cells of recurrent networks, one above another, and around one another."""

from __future__ import annotations

from typing import Any

from ..nest import flatten, pack_sequence_as
from ..variable_scope import variable_scope
from .activations import dropout
from .cells import BasicLSTMCell, BasicRNNCell, GRUCell, LSTMCell, LSTMStateTuple, RNNCell

__all__ = [
    "BasicLSTMCell",
    "BasicRNNCell",
    "DeviceWrapper",
    "DropoutWrapper",
    "GRUCell",
    "LSTMCell",
    "LSTMStateTuple",
    "MultiRNNCell",
    "RNNCell",
    "ResidualWrapper",
]


class MultiRNNCell(RNNCell):
    """Cells one above another."""

    scope_name = "multi_rnn_cell"

    def __init__(self, cells: Any, state_is_tuple: bool = True) -> None:
        super().__init__()
        if not cells:
            raise ValueError("Must specify at least one cell for MultiRNNCell.")
        if not isinstance(cells, (list, tuple)):
            raise TypeError(f"cells must be a list or tuple, but saw: {cells}.")
        if not state_is_tuple:
            raise ValueError("MultiRNNCell: state_is_tuple=False is not served")
        if len({id(cell) for cell in cells}) != len(cells):
            self._check_shared(cells)
        self._cells = list(cells)

    @staticmethod
    def _check_shared(cells: Any) -> None:
        """Let one cell stand for several, as in `[cell] * n`: they share weights."""
        for cell in cells:
            if getattr(cell, "output_size", None) is None:
                raise ValueError("cells must have an output_size")

    @property
    def state_size(self) -> Any:
        """Return the sizes of the states of all cells."""
        return tuple(cell.state_size for cell in self._cells)

    @property
    def output_size(self) -> Any:
        """Return the size of the last cell's output."""
        return self._cells[-1].output_size

    def call(self, inputs: Any, state: Any) -> Any:
        """Return the last output and all states."""
        if len(state) != len(self._cells):
            raise ValueError(
                f"Expected state to be a tuple of length {len(self._cells)}, but received: "
                f"{state!r:.80}"
            )
        new, x = [], inputs
        for i, (cell, part) in enumerate(zip(self._cells, state, strict=True)):
            with variable_scope(f"cell_{i}"):
                x, after = cell(x, part)
            new.append(after)
        return x, tuple(new)


class _Wrapper(RNNCell):
    def __init__(self, cell: RNNCell) -> None:
        if not isinstance(cell, RNNCell):
            raise TypeError(f"The parameter cell is not a RNNCell: {cell!r:.60}")
        super().__init__()
        self._cell = cell

    @property
    def state_size(self) -> Any:
        """Return the sizes of the state."""
        return self._cell.state_size

    @property
    def output_size(self) -> Any:
        """Return the size of the output."""
        return self._cell.output_size

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Return a state of zeros."""
        return self._cell.zero_state(batch_size, dtype)

    def __call__(
        self, inputs: Any, state: Any, scope: Any = None, *args: Any, **options: Any
    ) -> Any:
        """Return the output and the next state."""
        return self.call(inputs, state)


class DropoutWrapper(_Wrapper):
    """A cell with dropout of what goes in, out, and from step to step."""

    def __init__(
        self,
        cell: RNNCell,
        input_keep_prob: Any = 1.0,
        output_keep_prob: Any = 1.0,
        state_keep_prob: Any = 1.0,
        variational_recurrent: bool = False,
        input_size: Any = None,
        dtype: Any = None,
        seed: Any = None,
    ) -> None:
        super().__init__(cell)
        if variational_recurrent:
            raise ValueError("DropoutWrapper: variational_recurrent is not served")
        self._keep = (input_keep_prob, output_keep_prob, state_keep_prob)
        self._seed = seed

    def call(self, inputs: Any, state: Any) -> Any:
        """Return the output and the next state."""
        into, out, between = self._keep
        output, after = self._cell(self._dropped(inputs, into), state)
        if not (isinstance(between, (int, float)) and between == 1):
            after = pack_sequence_as(
                after, [self._dropped(part, between) for part in flatten(after)]
            )
        return self._dropped(output, out), after

    def _dropped(self, x: Any, keep: Any) -> Any:
        return (
            x if isinstance(keep, (int, float)) and keep == 1 else dropout(x, keep, seed=self._seed)
        )


class ResidualWrapper(_Wrapper):
    """A cell whose input is added to its output."""

    def call(self, inputs: Any, state: Any) -> Any:
        """Return the output and the next state."""
        output, after = self._cell(inputs, state)
        return output + inputs, after


class DeviceWrapper(_Wrapper):
    """A cell for a device; there is one."""

    def __init__(self, cell: RNNCell, device: Any) -> None:
        super().__init__(cell)

    def call(self, inputs: Any, state: Any) -> Any:
        """Return the output and the next state."""
        return self._cell(inputs, state)
