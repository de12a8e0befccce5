"""Cells of recurrent networks."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

from ...core.op import F
from .. import initializers
from ..array_ops import concat, split
from ..filling import zeros
from ..graph import get_default_graph
from ..math_ops import matmul, sigmoid, tanh
from ..nest import flatten, pack_sequence_as
from ..recording import Tensor, convert_to_tensor, record
from ..variable_scope import get_variable, variable_scope
from .activations import bias_add

LSTMStateTuple = namedtuple("LSTMStateTuple", ("c", "h"))


class RNNCell:
    """A cell: `output, state = cell(inputs, state)`.

    Its variables are made at the first call, in the variable scope that is open there; all calls
    share them.
    """

    scope_name = "rnn_cell"

    def __init__(
        self, name: str | None = None, reuse: Any = None, trainable: bool = True, **options: Any
    ) -> None:
        self._name = name or self.scope_name
        self._reuse = reuse
        self._scope: Any = None
        self._graph: Any = None

    @property
    def state_size(self) -> Any:
        """Return the sizes of the state."""
        raise NotImplementedError

    @property
    def output_size(self) -> Any:
        """Return the size of the output."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """Return the name."""
        return self._name

    def call(self, inputs: Any, state: Any) -> Any:
        """Return the output and the next state."""
        raise NotImplementedError

    def __call__(
        self, inputs: Any, state: Any, scope: Any = None, *args: Any, **options: Any
    ) -> Any:
        """Return the output and the next state."""
        if self._scope is not None and self._graph is get_default_graph():
            with variable_scope(self._scope, reuse=True, auxiliary_name_scope=False):
                return self.call(inputs, state)
        opened = scope if scope is not None else self._name
        with variable_scope(opened, reuse=self._reuse) as own:
            made = self.call(inputs, state)
            self._scope, self._graph = own, get_default_graph()
        return made

    def zero_state(self, batch_size: Any, dtype: Any) -> Any:
        """Return a state of zeros."""
        if isinstance(self.state_size, (tuple, list)) and any(
            isinstance(c, RNNCell) for c in getattr(self, "_cells", ())
        ):
            return tuple(cell.zero_state(batch_size, dtype) for cell in self._cells)  # type: ignore[attr-defined]
        made = [zeros([batch_size, size], dtype, name="zeros") for size in flatten(self.state_size)]
        return pack_sequence_as(self.state_size, made)

    @property
    def variables(self) -> list[Any]:
        """Return the variables of the cell."""
        return [] if self._scope is None else self._scope.global_variables()

    weights = variables

    @property
    def trainable_variables(self) -> list[Any]:
        """Return the variables of the cell that are trained."""
        return [] if self._scope is None else self._scope.trainable_variables()

    trainable_weights = trainable_variables


def _linear(
    args: Any,
    size: int,
    kernel: str,
    bias: str,
    bias_initializer: Any = None,
    kernel_initializer: Any = None,
) -> Tensor:
    x = concat([convert_to_tensor(a) for a in args], 1)
    depth = x.shape.sizes[-1] if x.shape.sizes else None
    if depth is None:
        raise ValueError(f"Expected inputs.shape[-1] to be known, saw shape: {x.shape}")
    weights = get_variable(kernel, [depth, size], x.dtype, initializer=kernel_initializer)
    biases = get_variable(
        bias, [size], x.dtype, initializer=bias_initializer or initializers.Zeros()
    )
    return bias_add(matmul(x, weights), biases)


class BasicRNNCell(RNNCell):
    """h = tanh(W [x, h] + b)."""

    scope_name = "basic_rnn_cell"

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(name, reuse)
        self._num_units, self._activation = num_units, activation or tanh

    @property
    def state_size(self) -> int:
        """Return the number of units."""
        return self._num_units

    output_size = state_size

    def call(self, inputs: Any, state: Any) -> Any:
        """Return the output and the next state, which are one."""
        h = self._activation(_linear([inputs, state], self._num_units, "kernel", "bias"))
        return h, h


class GRUCell(RNNCell):
    """A gated recurrent unit: h = u h + (1 - u) tanh(W [x, r h] + b)."""

    scope_name = "gru_cell"

    def __init__(
        self,
        num_units: int,
        activation: Any = None,
        reuse: Any = None,
        kernel_initializer: Any = None,
        bias_initializer: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(name, reuse)
        self._num_units, self._activation = num_units, activation or tanh
        self._kernel, self._bias = kernel_initializer, bias_initializer

    @property
    def state_size(self) -> int:
        """Return the number of units."""
        return self._num_units

    output_size = state_size

    def call(self, inputs: Any, state: Any) -> Any:
        """Return the output and the next state, which are one."""
        gates = _linear(
            [inputs, state],
            2 * self._num_units,
            "gates/kernel",
            "gates/bias",
            self._bias or initializers.Ones(),
            self._kernel,
        )
        r, u = split(sigmoid(gates), 2, 1)
        candidate = _linear(
            [inputs, r * state],
            self._num_units,
            "candidate/kernel",
            "candidate/bias",
            self._bias,
            self._kernel,
        )
        h = u * state + (1 - u) * self._activation(candidate)
        return h, h


class LSTMCell(RNNCell):
    """Long short-term memory; gates are in the order i, j, f, o."""

    scope_name = "lstm_cell"

    def __init__(
        self,
        num_units: int,
        use_peepholes: bool = False,
        cell_clip: Any = None,
        initializer: Any = None,
        num_proj: Any = None,
        proj_clip: Any = None,
        num_unit_shards: Any = None,
        num_proj_shards: Any = None,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(name, reuse)
        self._num_units, self._peepholes, self._clip = num_units, use_peepholes, cell_clip
        self._initializer, self._proj, self._proj_clip = initializer, num_proj, proj_clip
        self._forget_bias, self._tuple = forget_bias, state_is_tuple
        self._activation = activation or tanh

    @property
    def state_size(self) -> Any:
        """Return the sizes of c and h."""
        sizes = (self._num_units, self.output_size)
        return LSTMStateTuple(*sizes) if self._tuple else sum(sizes)

    @property
    def output_size(self) -> int:
        """Return the size of h."""
        return self._proj or self._num_units

    def call(self, inputs: Any, state: Any) -> Any:
        """Return h and the next state."""
        c, h = state if self._tuple else split(state, [self._num_units, self.output_size], 1)
        i, j, f, o = split(
            _linear([inputs, h], 4 * self._num_units, "kernel", "bias", None, self._initializer),
            4,
            1,
        )
        peep = None
        if self._peepholes:
            wf, wi, peep = (
                get_variable(f"w_{g}_diag", [self._num_units], initializer=self._initializer)
                for g in "fio"
            )
            f, i = f + wf * c, i + wi * c
        new_c = sigmoid(f + self._forget_bias) * c + sigmoid(i) * self._activation(j)
        if self._clip is not None:
            new_c = _clipped(new_c, self._clip)
        new_h = sigmoid(o if peep is None else o + peep * new_c) * self._activation(new_c)
        if self._proj is not None:
            new_h = matmul(
                new_h,
                get_variable(
                    "projection/kernel",
                    [self._num_units, self._proj],
                    initializer=self._initializer,
                ),
            )
            new_h = new_h if self._proj_clip is None else _clipped(new_h, self._proj_clip)
        return new_h, LSTMStateTuple(new_c, new_h) if self._tuple else concat([new_c, new_h], 1)


def _clipped(x: Tensor, limit: float) -> Tensor:
    made: Tensor = record("Clip", lambda x: F.clip(x, -limit, limit), [x])
    return made


class BasicLSTMCell(LSTMCell):
    """Long short-term memory without peepholes and projections."""

    scope_name = "basic_lstm_cell"

    def __init__(
        self,
        num_units: int,
        forget_bias: float = 1.0,
        state_is_tuple: bool = True,
        activation: Any = None,
        reuse: Any = None,
        name: str | None = None,
        dtype: Any = None,
        **options: Any,
    ) -> None:
        super().__init__(
            num_units,
            forget_bias=forget_bias,
            state_is_tuple=state_is_tuple,
            activation=activation,
            reuse=reuse,
            name=name,
        )
