"""What PyTorch says of modules: when they are made, called, and given names."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentTypeError, AxisError, ShapeError
from .refused import Refused, Rule, always, kind_of, sizes


def _argument(refused: Refused, place: int, *names: str) -> Any:
    """Return an argument of a constructor, given by name or by place."""
    for name in names:
        if refused[name] is not None:
            return refused[name]
    args = refused["args"] or ()
    return args[place + 1] if len(args) > place + 1 else None


def convolution(refused: Refused) -> Exception | None:
    """Say it of channels and groups."""
    channels = (_argument(refused, i, n) for i, n in enumerate(("in_channels", "out_channels")))
    groups = _argument(refused, 6, "groups")
    for name, count in zip(("in_channels", "out_channels"), channels, strict=True):
        if isinstance(groups, int) and groups > 0 and count % groups:
            return ValueError(f"{name} must be divisible by groups")
    return None


def dropout(refused: Refused) -> Exception | None:
    """Say it of a probability."""
    p = _argument(refused, 0, "p")
    return ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def group_norm(refused: Refused) -> Exception | None:
    """Say it of groups of channels."""
    groups, channels = (
        _argument(refused, i, n) for i, n in enumerate(("num_groups", "num_channels"))
    )
    return ValueError(f"num_channels ({channels}) must be divisible by num_groups ({groups})")


def recurrent(refused: Refused) -> Exception | None:
    """Say it of how a network is wired."""
    kind = refused["nonlinearity"]
    if kind is not None and kind not in ("tanh", "relu"):
        return ValueError(f"Unknown nonlinearity '{kind}'. Select from 'tanh' or 'relu'.")
    return None


def held(refused: Refused) -> Exception | None:
    """Say it of what is no module."""
    if not refused.is_a(ArgumentTypeError):
        return None
    wrong = next(x for x in _parts(refused["args"][1:]) if not hasattr(x, "_kinds"))
    return TypeError(f"{_full_name(wrong)} is not a Module subclass")


def _parts(given: Any) -> list[Any]:
    found = []
    for x in given:
        if isinstance(x, dict):
            found += list(x.values())
        else:
            found += list(x) if isinstance(x, (list, tuple)) else [x]
    return found


def _full_name(x: Any) -> str:
    """Return the name of an object's class, with its module where that is not Python's own."""
    kind = type(x)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


# -- calls ----------------------------------------------------------------------------------------


def linear(refused: Refused) -> Exception | None:
    """Say it of what is given to a linear layer: dtypes are compared before sizes."""
    x, weight = refused["input"], refused["self"].weight
    if refused.is_a(ShapeError) and x.dtype != weight.dtype:
        return RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {kind_of(x)} and {kind_of(weight)}"
        )
    return None


BATCHES = {
    "BatchNorm1d": "2D or 3D",
    "BatchNorm2d": "4D",
    "BatchNorm3d": "5D",
    "InstanceNorm1d": "2D or 3D",
    "InstanceNorm2d": "3D or 4D",
    "InstanceNorm3d": "4D or 5D",
}


def batch(refused: Refused) -> Exception | None:
    """Say it of the dimensions of a batch."""
    name, x = type(refused["self"]).__name__, refused["input"]
    wanted = BATCHES[name]
    if refused.is_a(ShapeError) and f"{x.ndim}D" not in wanted:
        return ValueError(f"expected {wanted} input (got {x.ndim}D input)")
    return None


def sequence(refused: Refused) -> Exception | None:
    """Say it of sequences and states."""
    layer, x = refused["self"], refused["input"]
    if not refused.is_a(ShapeError):
        return None
    if x.ndim not in (2, 3):
        return ValueError(
            f"{type(layer).__name__}: Expected input to be 2D or 3D, got {x.ndim}D instead"
        )
    if x.shape[-1] != layer.input_size:
        return RuntimeError(
            "input.size(-1) must be equal to input_size. "
            f"Expected {layer.input_size}, got {x.shape[-1]}"
        )
    states = refused["args"][1] if len(refused["args"]) > 1 else refused["hx"]
    rows = layer.num_layers * (2 if layer.bidirectional else 1)
    size = x.shape[0 if layer.batch_first else 1] if x.ndim == 3 else None
    wanted = (rows, layer.hidden_size) if size is None else (rows, size, layer.hidden_size)
    first = states[0] if isinstance(states, (tuple, list)) else states
    name = "hidden[0]" if isinstance(states, (tuple, list)) else "hidden"
    return RuntimeError(f"Expected {name} size {wanted}, got {sizes(first)}")


# -- names ----------------------------------------------------------------------------------------


def registered(what: str) -> Rule:
    """Return the rule of a method that gives a part of a module a name."""

    def rule(refused: Refused) -> Exception | None:
        owner, name, part = refused["args"][:3]
        if refused.is_a(ArgumentTypeError) and isinstance(name, str):
            return _not_a(what, name, part)
        if "." in name:
            return KeyError(f'{what} name can\'t contain "."')
        if not name:
            return KeyError(f'{what} name can\'t be empty string ""')
        if hasattr(owner, name):
            return KeyError(f"attribute '{name}' already exists")
        return None

    return rule


def _not_a(what: str, name: str, part: Any) -> Exception:
    if what == "module":
        return TypeError(f"{_full_name(part)} is not a Module subclass")
    shown = part.type() if hasattr(part, "_node") else _full_name(part)
    wanted = "torch.nn.Parameter" if what == "parameter" else "torch Tensor"
    return TypeError(
        f"cannot assign '{shown}' object to {what} '{name}' ({wanted} or None required)"
    )


def found(refused: Refused) -> Exception | None:
    """Say it of a part that a module does not have."""
    owner, path = refused["args"][:2]
    for name in path.split("."):
        if not hasattr(owner, name):
            return AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        owner = getattr(owner, name)
    return None


def converted(refused: Refused) -> Exception | None:
    """Say it of a dtype that modules are not converted to."""
    if not refused.is_a(ArgumentTypeError):
        return None
    dtype = next(x for x in (refused["dtype"], *refused["args"][1:]) if x is not None)
    return TypeError(
        f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
    )


def unflatten(refused: Refused) -> Exception | None:
    """Say it of sizes that a dimension is taken apart into."""
    layer, x = refused["self"], refused["input"]
    if refused.is_a(AxisError):
        return None
    axis = range(x.ndim)[layer.dim]
    return RuntimeError(
        f"unflatten: Provided sizes {list(layer.unflattened_size)} don't multiply up to the size "
        f"of dim {axis} ({x.shape[axis]}) in the input tensor"
    )


FANS = "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
SORTED = (
    "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can "
    "pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this "
    "requirement if you do not need ONNX exportability."
)


def packed(refused: Refused) -> Exception | None:
    """Say it of lengths."""
    return RuntimeError(SORTED) if "increasing" in refused.facts else None


def fan(refused: Refused) -> Exception | None:
    """Say it of a tensor that is no weight."""
    return ValueError(FANS) if refused.is_a(ShapeError) else None


def padded(refused: Refused) -> Exception | None:
    """Say it of sequences that differ in more than their length."""
    first, *others = refused["sequences"]
    wrong = next(x for x in others if tuple(x.shape[1:]) != tuple(first.shape[1:]))
    axis = next(i for i in range(1, first.ndim) if first.shape[i] != wrong.shape[i])
    return RuntimeError(
        f"The size of tensor a ({first.shape[axis]}) must match the size of tensor b "
        f"({wrong.shape[axis]}) at non-singleton dimension {axis}"
    )


_CONVOLUTIONS = [f"{kind}{n}d" for kind in ("Conv", "ConvTranspose") for n in (1, 2, 3)]
_DROPOUTS = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout")
_FANS = ("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_")
RULES: dict[str, Rule] = {
    "Linear.forward": linear,
    **{f"{name}.__init__": convolution for name in _CONVOLUTIONS},
    **{f"{name}.__init__": dropout for name in (*_DROPOUTS, "FeatureAlphaDropout")},
    "GroupNorm.__init__": group_norm,
    "RNN.__init__": recurrent,
    "Embedding.__init__": always(AssertionError, "Padding_idx must be within num_embeddings"),
    "MultiheadAttention.__init__": always(
        AssertionError, "embed_dim must be divisible by num_heads"
    ),
    **{f"{name}.__init__": held for name in ("Sequential", "ModuleList", "ModuleDict")},
    **{f"{name}.forward": batch for name in BATCHES},
    **{f"{name}.forward": sequence for name in ("RNN", "LSTM", "GRU")},
    "Unflatten.forward": unflatten,
    "Module.register_parameter": registered("parameter"),
    "Module.register_buffer": registered("buffer"),
    "Module.add_module": registered("module"),
    **dict.fromkeys(("Module.get_submodule", "Module.get_parameter", "Module.get_buffer"), found),
    "Module.to": converted,
    "Parameter.__init__": always(
        RuntimeError, "Only Tensors of floating point and complex dtype can require gradients"
    ),
    "pack_padded_sequence": packed,
    "pad_sequence": padded,
    **dict.fromkeys(_FANS, fan),
}
