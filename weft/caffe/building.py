"""Building a net: layer after layer, with the shapes of blobs known before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from ..core.errors import WeftError
from ..core.tensor import Tensor
from .catalogue import LAYERS, DummyData, Input, Layer, Limits, Sourced
from .errors import CaffeError
from .inputs import INPUTS, open_input
from .inputs_protocol import InputSource
from .message import Message

Shape = tuple[int, ...]


class Step(NamedTuple):
    """A layer in its net."""

    name: str
    module: str  # the name of the layer's module in the net's
    layer: Layer
    bottoms: tuple[str, ...]
    tops: tuple[str, ...]
    loss_weights: tuple[float, ...]
    propagate: tuple[bool, ...]  # for each bottom: whether gradients go through
    is_source: bool

    def run(self, bottoms: list[Any]) -> tuple[Tensor, ...]:
        """Return the tops for given bottoms."""
        given = [x if down else x.detach() for x, down in zip(bottoms, self.propagate, strict=True)]
        found = self.layer(*given)
        return found if isinstance(found, tuple) else (found,)


class Built(NamedTuple):
    """A net's layers, the shapes of its blobs, what goes in and what comes out."""

    steps: list[Step]
    shapes: dict[str, Shape]
    inputs: list[str]
    outputs: list[str]
    sources: list[tuple[tuple[str, ...], InputSource]]
    owners: dict[tuple[str, int], tuple[str, int]]  # of shared blobs: whose they are


def build_steps(
    net: Message,
    inputs: Mapping[str, InputSource],
    limits: Limits,
    taken: frozenset[str] = frozenset(),
) -> Built:
    """Make the layers of a net in their order; their modules have none of the names `taken`."""
    builder = _Builder(net, inputs, limits)
    builder.taken = taken
    for param in net.layer:
        builder.add(param)
    outputs = [name for name in builder.shapes if name in builder.unread]
    return Built(
        builder.steps, builder.shapes, builder.inputs, outputs, builder.sources, builder.owners
    )


class _Builder:
    def __init__(self, net: Message, inputs: Mapping[str, InputSource], limits: Limits) -> None:
        self.given, self.limits = dict(inputs), limits
        self.phase: int = net.state.phase
        self.steps: list[Step] = []
        self.shapes: dict[str, Shape] = {}
        self.unread: dict[str, None] = {}
        self.inputs: list[str] = []
        self.sources: list[tuple[tuple[str, ...], InputSource]] = []
        self.owners: dict[tuple[str, int], tuple[str, int]] = {}
        self.named_blobs: dict[str, tuple[str, int]] = {}
        self.modules: dict[str, Layer] = {}
        self.taken: frozenset[str] = frozenset()

    def add(self, param: Message) -> None:
        """Make a layer, its tops and their shapes."""
        param = param.copy()
        if not param.has("phase"):
            param.phase = self.phase
        shapes = self._bottom_shapes(param)
        layer = self._made(param, shapes)
        self.limits = self.limits._replace(parameters=layer.limits.parameters)
        tops = self._tops(param, layer)
        top_shapes = self._top_shapes(param, layer, shapes, len(tops))
        module = self._module_name(param.name or param.type)
        self.modules[module] = layer
        is_source = isinstance(layer, (Input, Sourced, DummyData))
        self.steps.append(
            Step(
                name=param.name,
                module=module,
                layer=layer,
                bottoms=tuple(param.bottom),
                tops=tops,
                loss_weights=self._loss_weights(param, layer, len(tops)),
                propagate=self._propagate(param, layer),
                is_source=is_source,
            )
        )
        self._share(param, layer, module)
        for name in param.bottom:
            self.unread.pop(name, None)
        for name, shape in zip(tops, top_shapes, strict=True):
            self.shapes[name] = layer.checked_shape(shape, f"top {name!r}")
            self.unread[name] = None
        if is_source:
            self._note_source(layer, tops)

    # -- blobs -----------------------------------------------------------------------------------

    def _bottom_shapes(self, param: Message) -> list[Shape]:
        for index, name in enumerate(param.bottom):
            if name not in self.shapes:
                raise CaffeError(
                    f"Unknown bottom blob {name!r} (layer {param.name!r}, bottom index {index})"
                )
        return [self.shapes[name] for name in param.bottom]

    def _tops(self, param: Message, layer: Layer) -> tuple[str, ...]:
        """Return the names of the tops; a loss need not name its own."""
        names = list(param.top)
        if layer.is_loss and not names:
            names = [f"{param.name or param.type} (automatic)"]
        for name in names:
            in_place = name in param.bottom
            if name in self.shapes and not in_place:
                raise CaffeError(
                    f"Top blob {name!r} produced by multiple sources (layer {param.name!r})"
                )
            if in_place:
                layer.check(
                    layer.shares_in_place, f"cannot be done in place: top {name!r} is its bottom"
                )
        return tuple(names)

    def _top_shapes(
        self, param: Message, layer: Layer, shapes: list[Shape], count: int
    ) -> list[Shape]:
        try:
            found = layer.shapes_for(shapes)
        except CaffeError:
            raise
        except WeftError as error:
            layer.fail(str(error))
        layer.check(len(found) == count, f"has {len(found)} tops. Received: {count} names")
        return found

    def _loss_weights(self, param: Message, layer: Layer, count: int) -> tuple[float, ...]:
        given = list(param.loss_weight)
        if given:
            layer.check(
                len(given) == count,
                f"loss_weight must be unspecified or specified once per top: {given}",
            )
            return tuple(given)
        first = 1.0 if layer.is_loss else 0.0
        return tuple(first if i == 0 else 0.0 for i in range(count))

    def _propagate(self, param: Message, layer: Layer) -> tuple[bool, ...]:
        given, count = list(param.propagate_down), len(param.bottom)
        layer.check(
            len(given) in {0, count},
            f"propagate_down param must be specified either 0 or bottom_size times: {given}",
        )
        allowed = layer.differentiable
        if given and allowed is not None:
            for index, down in enumerate(given):
                layer.check(
                    not down or index in allowed or not layer.is_loss,
                    f"Layer cannot backpropagate to label inputs (bottom index {index})",
                )
        return tuple(
            (given[i] if given else True) and (allowed is None or i in allowed)
            for i in range(count)
        )

    def _note_source(self, layer: Layer, tops: tuple[str, ...]) -> None:
        self.inputs += tops
        if isinstance(layer, DummyData):
            self.sources.append((tops, layer))
        elif isinstance(layer, Sourced):
            self.sources.append((tops, layer.source))

    # -- layers ----------------------------------------------------------------------------------

    def _made(self, param: Message, shapes: list[Shape]) -> Layer:
        try:
            if param.name in self.given:
                return Sourced(param, self.phase, self.given[param.name], self.limits)
            if param.type in INPUTS:
                source = open_input(param, self.phase)
                return Sourced(param, self.phase, source, self.limits)
            return _kind_of(param)(param, shapes, self.phase, self.limits)
        except CaffeError:
            raise
        except WeftError as error:
            raise CaffeError(f"Layer {param.name!r} ({param.type}): {error}") from error

    def _module_name(self, name: str) -> str:
        """Return a name for the module of a layer that no attribute and no other layer has."""
        made = name.replace(".", "_")
        while made in self.taken or made in self.modules or made.startswith("_") or not made:
            made = f"layer_{made.lstrip('_')}_{len(self.modules)}"
        return made

    def _share(self, param: Message, layer: Layer, module: str) -> None:
        """Let blobs with a name that another blob had first be that blob."""
        for index, (name, shape, spec) in enumerate(layer.blob_specs):
            if not spec.name:
                continue
            owner = self.named_blobs.setdefault(spec.name, (module, index))
            if owner == (module, index):
                continue
            theirs = self.modules[owner[0]].blob_specs[owner[1]]
            self._check_shared(layer, spec, shape, theirs.shape, owner[0])
            self._check_multipliers(layer, spec, theirs.spec)
            setattr(layer, name, self.modules[owner[0]].__dict__[theirs.name])
            self.owners[module, index] = self.owners.get(owner, owner)

    def _check_shared(
        self, layer: Layer, spec: Message, shape: Shape, theirs: Shape, owner: str
    ) -> None:
        what = f"Cannot share param {spec.name!r} owned by layer {owner!r}"
        if spec.which("share_mode") == "PERMISSIVE":
            layer.check(
                _count(shape) == _count(theirs), f"{what}: count mismatch: {shape}, {theirs}"
            )
        else:
            layer.check(
                shape == theirs,
                f"{what}: shape mismatch. Owner layer param shape is {theirs}; sharing layer "
                f"expects shape {shape}",
            )

    def _check_multipliers(self, layer: Layer, mine: Message, theirs: Message) -> None:
        for name in ("lr_mult", "decay_mult"):
            if mine.has(name) and theirs.has(name):
                layer.check(
                    getattr(mine, name) == getattr(theirs, name),
                    f"Shared param {mine.name!r} has mismatched {name}.",
                )
            elif mine.has(name):
                setattr(theirs, name, getattr(mine, name))


def _count(shape: Shape) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def _kind_of(param: Message) -> type[Layer]:
    kind = LAYERS.get(param.type)
    if kind is not None:
        return kind
    known = [*LAYERS, *INPUTS]
    near = get_close_matches(param.type, known, n=3, cutoff=0.5)
    advice = f"; did you mean {' or '.join(near)}?" if near else ""
    raise CaffeError(
        f"Unknown layer type: {param.type} (layer {param.name!r}; known types: "
        f"{', '.join(sorted(known))}){advice}"
    )
