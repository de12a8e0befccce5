"""Network: a declared net as a module, whose forward is one graph for jit, sessions and trainers.

Enter: a NetParameter and a state (phase, level, stages). Leaves: a module with a step for each
layer, parameters with their multipliers, and the sources of data that its layers name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..core.dtype import float32
from ..core.modes import no_grad
from ..core.op import F
from ..core.tensor import Tensor, wrap
from ..nn import Module
from ..nn.version import count_all_of
from ..ops.creation import tensor
from .building import Built, build_steps
from .catalogue import Limits
from .errors import CaffeError
from .inputs_protocol import Array, InputSource
from .message import TRAIN, Message
from .splits import with_splits
from .states import filtered
from .upgrade import upgraded

count_all_of(__package__)


class LearnedBlob(NamedTuple):
    """A blob of a layer that a solver trains, with its multipliers."""

    name: str  # layer/index, as in "conv1/0"
    value: Tensor
    lr_mult: float
    decay_mult: float


class Network(Module):
    """A net that a prototxt declares, in one phase.

    Called with its inputs (tops of Input and data layers, in order) it returns its output: a
    tensor, or a dictionary if there are several. `loss` returns what a solver minimises.

    >>> from weft.caffe.message import NetParameter
    >>> from weft.caffe.text import read_message
    >>> text = 'input: "x" input_shape { dim: 2 } layer { type: "ReLU" bottom: "x" top: "y" }'
    >>> net = Network(read_message(text, NetParameter), "TEST")
    >>> net(tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """

    def __init__(
        self,
        net: Message,
        phase: int | str = TRAIN,
        level: int = 0,
        stages: Sequence[str] = (),
        *,
        inputs: Mapping[str, InputSource] | None = None,
        limits: Limits | None = None,
        name: str = "net",
    ) -> None:
        super().__init__()
        proto = _in_state(upgraded(net, name), phase, level, stages)
        self.proto = with_splits(filtered(proto))
        self.net_name = self.proto.name
        self.phase: int = self.proto.state.phase
        taken = frozenset({*dir(self), *Built._fields, "input_names", "output_names"})
        built = build_steps(self.proto, inputs or {}, limits or Limits(), taken)
        self.steps, self.shapes = built.steps, built.shapes
        self.input_names, self.output_names = built.inputs, built.outputs
        self.sources = built.sources
        self.owners = built.owners
        for step in self.steps:
            self.register_module(step.module, step.layer)
        self.train(self.phase == TRAIN)

    # -- running ---------------------------------------------------------------------------------

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Return the outputs for given inputs; without any, for the next batch of the sources."""
        blobs = self.blobs(*inputs, **named)
        found = {name: blobs[name] for name in self.output_names}
        return next(iter(found.values())) if len(found) == 1 else found

    def blobs(self, *inputs: Any, **named: Any) -> dict[str, Tensor]:
        """Return the last value of every blob, by name."""
        return self._run(self.checked_inputs(inputs, named))

    def loss(self, *inputs: Any, **named: Any) -> Tensor:
        """Return the sum of all tops that count, by their weights."""
        return self.results(*inputs, **named)[0]

    def results(
        self, *inputs: Any, every: bool = False, **named: Any
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss and the outputs, or every blob."""
        values = self._run(self.checked_inputs(inputs, named))
        outputs = values if every else {name: values[name] for name in self.output_names}
        return self._total(values), outputs

    def _run(self, inputs: Sequence[Any]) -> dict[str, Tensor]:
        values: dict[str, Any] = dict(zip(self.input_names, inputs, strict=True))
        for step in self.steps:
            if not step.is_source:
                tops = step.run([values[name] for name in step.bottoms])
                values.update(zip(step.tops, tops, strict=True))
        return values

    def _total(self, values: Mapping[str, Any]) -> Tensor:
        """Return the sum of the tops that count; each is the last of its name, or a split's."""
        losses = [
            _summed(values[name]) * weight
            for step in self.steps
            for name, weight in zip(step.tops, step.loss_weights, strict=True)
            if weight
        ]
        return sum(losses[1:], losses[0]) if losses else tensor(0.0)

    def checked_inputs(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        """Return the inputs as tensors, in order; what is not given comes from the sources."""
        if len(inputs) > len(self.input_names) or not {*named} <= {*self.input_names}:
            unknown = {*named} - {*self.input_names}
            raise CaffeError(
                f"net {self.net_name!r} takes {', '.join(self.input_names) or 'no inputs'}. "
                f"Received: {len(inputs)} inputs" + (f" and {sorted(unknown)}" if unknown else "")
            )
        given = dict(zip(self.input_names, inputs, strict=False)) | dict(named)
        if len(given) < len(self.input_names):
            given = self.next_inputs() | given
        missing = [name for name in self.input_names if name not in given]
        if missing:
            raise CaffeError(f"net {self.net_name!r} is not given {', '.join(missing)}")
        return [_as_tensor(given[name]) for name in self.input_names]

    def next_inputs(self) -> dict[str, Array]:
        """Return the next batch of every source, by the names of blobs."""
        found: dict[str, Array] = {}
        for names, source in self.sources:
            found.update(zip(names, source.next(), strict=False))
        return found

    # -- parameters ------------------------------------------------------------------------------

    def learned_blobs(self) -> list[LearnedBlob]:
        """Return the blobs of all layers, in Caffe's order; a shared one once, at its owner."""
        found = []
        for step in self.steps:
            for index, (name, _, spec) in enumerate(step.layer.blob_specs):
                if (step.module, index) in self.owners:
                    continue
                value = step.layer.__dict__[name]
                multipliers = spec.lr_mult, spec.decay_mult
                found.append(LearnedBlob(f"{step.name}/{index}", value, *multipliers))
        return found

    def layer_blobs(self, name: str) -> list[Tensor]:
        """Return the blobs of a layer."""
        step = next((step for step in self.steps if step.name == name), None)
        if step is None:
            raise CaffeError(f"net {self.net_name!r} has no layer {name!r}")
        return [step.layer.__dict__[spec.name] for spec in step.layer.blob_specs]

    def set_blob(self, layer: str, index: int, values: Array) -> None:
        """Give a blob of a layer other values."""
        with no_grad():
            self.layer_blobs(layer)[index].copy_(wrap(values))


def _in_state(net: Message, phase: int | str, level: int, stages: Sequence[str]) -> Message:
    """Return a net whose state is set; its own level and stages stand unless others are given."""
    made: Message = net.copy()
    made.state.phase = phase
    if level:
        made.state.level = level
    made.state.stage.extend(stages)
    return made


def _summed(value: Any) -> Any:
    """Return the sum of a top; of one number, itself."""
    return F.sum(value) if value.shape else value


def _as_tensor(value: Any) -> Any:
    """Return tensors as they are, anything else as the float32 that blobs hold."""
    return value if isinstance(value, Tensor) else tensor(value, dtype=float32)
