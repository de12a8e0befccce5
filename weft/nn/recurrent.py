"""RNN, GRU and LSTM over whole sequences: several layers, both directions, packed batches.

The input's share of all gates is one matrix product over all time steps; the loop over time holds
only what depends on the state. Parameter names are PyTorch's: weight_ih_l0, weight_hh_l0,
bias_ih_l0, bias_hh_l0, weight_hr_l0, each with the suffix _reverse for the second direction.
"""

from __future__ import annotations

import warnings
from typing import Any

from ..core.errors import ArgumentError, ArgumentTypeError, ShapeError, user_stacklevel
from ..core.shape import as_int
from ..core.tensor import Tensor
from .arguments import as_flag, as_probability, as_size
from .calls import F
from .module import Module
from .packed import PackedSequence, batch_sizes_of, restoring_order
from .parameter import new_parameter
from .rnn_cells import (
    KINDS,
    CellWeights,
    State,
    check_features,
    check_pair,
    draw_recurrent,
    rnn_mode,
    same_dims,
)
from .time_steps import Timeline, backward_in_time, first_state, forward_in_time, layer_over_time


class RNNBase(Module):
    """What RNN, GRU and LSTM share: weights, layers, directions and the forms of input."""

    def __init__(  # noqa: PLR0913  (PyTorch's options)
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = as_size(self, "input_size", input_size)
        self.hidden_size = as_size(self, "hidden_size", hidden_size)
        self.num_layers = as_size(self, "num_layers", num_layers)
        self.bias = as_flag(self, "bias", bias)
        self.batch_first = as_flag(self, "batch_first", batch_first)
        self.dropout = as_probability(self, "dropout", dropout)
        self.bidirectional = as_flag(self, "bidirectional", bidirectional)
        self.proj_size = _checked_projection(self, proj_size)
        _warn_of_idle_dropout(self)
        self._register_weights(dtype, device)
        self.reset_parameters()

    @property
    def num_directions(self) -> int:
        """Return 2 if the net also runs from the end to the beginning, else 1."""
        return 2 if self.bidirectional else 1

    @property
    def output_size(self) -> int:
        """Return the number of features of one direction's output."""
        return self.proj_size or self.hidden_size

    def _register_weights(self, dtype: Any, device: Any) -> None:
        rows = KINDS[self.mode].gates * self.hidden_size
        for run in range(self.num_layers * self.num_directions):
            first = run < self.num_directions
            columns = self.input_size if first else self.output_size * self.num_directions
            shapes: dict[str, tuple[int, ...]] = {
                "weight_ih": (rows, columns),
                "weight_hh": (rows, self.output_size),
            }
            if self.bias:
                shapes.update(bias_ih=(rows,), bias_hh=(rows,))
            if self.proj_size:
                shapes["weight_hr"] = (self.proj_size, self.hidden_size)
            for name, shape in shapes.items():
                made = new_parameter(shape, dtype, device)
                self.register_parameter(name + self._suffix(run), made)

    def _suffix(self, run: int) -> str:
        """Return how the weights of a run end; runs count the directions of each layer."""
        layer, backward = divmod(run, self.num_directions)
        return f"_l{layer}" + ("_reverse" if backward else "")

    def _weights(self, run: int) -> CellWeights:
        suffix = self._suffix(run)
        found: Any = (getattr(self, name + suffix, None) for name in CellWeights._fields)
        return CellWeights(*found)

    @property
    def all_weights(self) -> list[list[Tensor]]:
        """Return the weights of each layer and direction."""
        runs = range(self.num_layers * self.num_directions)
        return [[w for w in self._weights(run) if w is not None] for run in runs]

    def reset_parameters(self) -> None:
        """Draw all weights uniformly from +-1 / sqrt(hidden_size)."""
        draw_recurrent(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Do nothing; here for programs written for PyTorch, where it compacts memory."""

    # -- running ---------------------------------------------------------------------------------

    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> tuple[Any, Any]:
        """Return the outputs of the last layer at all times, and the last state of every layer.

        input   (time, batch, in), (batch, time, in) with batch_first, (time, in) without a batch,
                or a PackedSequence, for which the outputs are one too
        hx      the first state, (layers * directions, batch, size); zeros if not given. An LSTM
                takes and returns a pair of them, (h, c)
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        check_features(self, input, self.input_size, ndims=(2, 3), layout=self._layout())
        batched = input.ndim == 3
        axis = 1 if batched and self.batch_first else 0
        if input.shape[axis] == 0:
            raise ShapeError(
                f"{type(self).__name__}: input has no time steps. Received: {input.shape}"
            )
        batch = (input.shape[1 - axis],) if batched else ()
        state = self._checked_state(hx, batch)
        if not batched:
            input, state = F.unsqueeze(input, 1), _with_batch(state)
        output, final = self._run_layers(input, state, Timeline(axis))
        if not batched:
            output, final = F.squeeze(output, 1), tuple(F.squeeze(s, 1) for s in final)
        return output, self._public_state(final)

    def _forward_packed(self, input: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        check_features(self, input.data, self.input_size, ndims=(2,), layout="(total length, in)")
        sizes = batch_sizes_of(input)
        state = _reordered(self._checked_state(hx, (sizes[0],)), input.sorted_indices)
        data, final = self._run_layers(input.data, state, Timeline(0, sizes))
        final = _reordered(final, restoring_order(input))
        return input._replace(data=data), self._public_state(final)

    def _run_layers(self, x: Tensor, state: Any, timeline: Timeline) -> tuple[Tensor, State]:
        """Run all layers; the state holds all runs along its first axis, or is None."""
        count = self.num_layers * self.num_directions
        starts = [None] * count if state is None else list(zip(*map(F.unbind, state), strict=True))
        finals: list[State] = []
        for layer in range(self.num_layers):
            if layer:
                x = F.dropout(x, self.dropout, self.training)
            outputs = []
            for run in range(layer * self.num_directions, (layer + 1) * self.num_directions):
                output, final = self._run(run, x, starts[run], timeline)
                outputs.append(output)
                finals.append(final)
            x = F.concat(outputs, -1) if len(outputs) > 1 else outputs[0]
        return x, tuple(F.stack(parts, 0) for parts in zip(*finals, strict=True))

    def _run(
        self, run: int, x: Tensor, state: State | None, timeline: Timeline
    ) -> tuple[Tensor, State]:
        """Run one layer in one direction."""
        weights, backward = self._weights(run), bool(run % self.num_directions)
        if timeline.sizes is None:
            axis, first = timeline.axis, state or ()
            made = layer_over_time(self.mode, x, *weights, *first, axis=axis, backward=backward)
            return made[0], made[1:]
        kind = KINDS[self.mode]
        shares = timeline.split(kind.input_share(x, weights))
        walk = backward_in_time if backward else forward_in_time
        start = first_state(kind, shares[0], weights) if state is None else state
        steps, final = walk(kind.step, shares, start, weights)
        return timeline.join(steps), final

    # -- the state -------------------------------------------------------------------------------

    def _checked_state(self, hx: Any, batch: tuple[int, ...]) -> State | None:
        if hx is None:
            return None
        state: State = check_pair(self, hx) if KINDS[self.mode].states == 2 else (hx,)
        runs = self.num_layers * self.num_directions
        for given, size in zip(state, (self.output_size, self.hidden_size), strict=False):
            if not isinstance(given, Tensor):
                raise ArgumentTypeError(
                    f"{type(self).__name__}: hx must hold tensors. Received: {type(given).__name__}"
                )
            if not same_dims(given.shape, (runs, *batch, size)):
                raise ShapeError(
                    f"{type(self).__name__}: hx must have shape {(runs, *batch, size)}, (layers * "
                    f"directions, batch, size), whatever batch_first is. Received: {given.shape}"
                )
        return state

    def _public_state(self, state: State) -> Any:
        return state if KINDS[self.mode].states == 2 else state[0]

    # -- printing --------------------------------------------------------------------------------

    def _layout(self) -> str:
        batched = "(batch, time, in)" if self.batch_first else "(time, batch, in)"
        return f"{batched} or (time, in)"

    def extra_repr(self) -> str:
        """Return the sizes, and what differs from the defaults."""
        defaults = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0.0,
            "bidirectional": False,
        }
        options = [
            f"{name}={getattr(self, name)}"
            for name, default in defaults.items()
            if getattr(self, name) != default
        ]
        return ", ".join([str(self.input_size), str(self.hidden_size), *options])


class RNN(RNNBase):
    """An Elman net with tanh or relu: h' = tanh(W_ih x + b_ih + W_hh h + b_hh).

    num_layers     layers, each fed with the outputs of the one before
    dropout        probability of dropping outputs between layers, in training
    bidirectional  also run from the end; outputs of both directions are concatenated
    batch_first    input and output are (batch, time, features)

    >>> import weft as wf
    >>> output, h = RNN(10, 20, num_layers=2)(wf.zeros(5, 3, 10))
    >>> output.shape, h.shape
    ((5, 3, 20), (2, 3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        mode = rnn_mode("RNN", nonlinearity)
        options = (num_layers, bias, batch_first, dropout, bidirectional)
        super().__init__(mode, input_size, hidden_size, *options, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity


class GRU(RNNBase):
    """Gated recurrent units; the options are those of RNN.

    >>> import weft as wf
    >>> output, h = GRU(10, 20, bidirectional=True, batch_first=True)(wf.zeros(3, 5, 10))
    >>> output.shape, h.shape
    ((3, 5, 40), (2, 3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = (num_layers, bias, batch_first, dropout, bidirectional)
        super().__init__("GRU", input_size, hidden_size, *options, device=device, dtype=dtype)


class LSTM(RNNBase):
    """Long short-term memory; the options are those of RNN, and `proj_size`.

    proj_size   project each output to so many features (fewer than hidden_size; 0: do not)

    >>> import weft as wf
    >>> output, (h, c) = LSTM(10, 20, proj_size=4)(wf.zeros(5, 3, 10))
    >>> output.shape, h.shape, c.shape
    ((5, 3, 4), (1, 3, 4), (1, 3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = (num_layers, bias, batch_first, dropout, bidirectional, proj_size)
        super().__init__("LSTM", input_size, hidden_size, *options, device=device, dtype=dtype)


# -- helpers -------------------------------------------------------------------------------------


def _with_batch(state: State | None) -> State | None:
    return None if state is None else tuple(F.unsqueeze(s, 1) for s in state)


def _reordered(state: Any, order: Tensor | None) -> Any:
    """Return the state with the sequences of its batch in another order."""
    if state is None or order is None:
        return state
    return tuple(F.take(s, order, 1) for s in state)


def _checked_projection(module: RNNBase, proj_size: Any) -> int:
    size = as_int(proj_size, f"{type(module).__name__}: proj_size")
    if not 0 <= size < module.hidden_size:
        raise ArgumentError(
            f"{type(module).__name__}: proj_size must be smaller than hidden_size "
            f"({module.hidden_size}), or 0 for no projection. Received: {size}"
        )
    return size


def _warn_of_idle_dropout(module: RNNBase) -> None:
    if module.dropout and module.num_layers == 1:
        warnings.warn(
            f"{type(module).__name__}: dropout={module.dropout} has no effect with one layer: it "
            "acts between layers",
            stacklevel=user_stacklevel(),
        )
