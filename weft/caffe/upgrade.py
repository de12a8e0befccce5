"""Nets of older versions of Caffe, as nets are written today.

- `layers { layer { type: "conv" } }`: the first form
- `layers { type: CONVOLUTION }`: the second
- `input: "data" input_dim: 1 ...`: inputs beside the layers
- `data_param { mirror: true }`: options that moved to transform_param
"""

from __future__ import annotations

from .errors import CaffeError
from .message import (
    LayerParameter,
    Message,
    NetParameter,
    V1LayerParameter,
)
from .schema import TYPES

V1_TYPES = {
    "ABSVAL": "AbsVal",
    "ACCURACY": "Accuracy",
    "ARGMAX": "ArgMax",
    "BNLL": "BNLL",
    "CONCAT": "Concat",
    "CONTRASTIVE_LOSS": "ContrastiveLoss",
    "CONVOLUTION": "Convolution",
    "DATA": "Data",
    "DECONVOLUTION": "Deconvolution",
    "DROPOUT": "Dropout",
    "DUMMY_DATA": "DummyData",
    "ELTWISE": "Eltwise",
    "EUCLIDEAN_LOSS": "EuclideanLoss",
    "EXP": "Exp",
    "FLATTEN": "Flatten",
    "HDF5_DATA": "HDF5Data",
    "HDF5_OUTPUT": "HDF5Output",
    "HINGE_LOSS": "HingeLoss",
    "IM2COL": "Im2col",
    "IMAGE_DATA": "ImageData",
    "INFOGAIN_LOSS": "InfogainLoss",
    "INNER_PRODUCT": "InnerProduct",
    "LRN": "LRN",
    "MEMORY_DATA": "MemoryData",
    "MULTINOMIAL_LOGISTIC_LOSS": "MultinomialLogisticLoss",
    "MVN": "MVN",
    "NONE": "",
    "POOLING": "Pooling",
    "POWER": "Power",
    "RELU": "ReLU",
    "SIGMOID": "Sigmoid",
    "SIGMOID_CROSS_ENTROPY_LOSS": "SigmoidCrossEntropyLoss",
    "SILENCE": "Silence",
    "SLICE": "Slice",
    "SOFTMAX": "Softmax",
    "SOFTMAX_LOSS": "SoftmaxWithLoss",
    "SPLIT": "Split",
    "TANH": "TanH",
    "THRESHOLD": "Threshold",
    "WINDOW_DATA": "WindowData",
}
# The first form: its names of types, and the message of each that takes its options.
V0_TYPES = {
    "accuracy": ("ACCURACY", ""),
    "bnll": ("BNLL", ""),
    "concat": ("CONCAT", "concat_param"),
    "conv": ("CONVOLUTION", "convolution_param"),
    "data": ("DATA", "data_param"),
    "dropout": ("DROPOUT", "dropout_param"),
    "euclidean_loss": ("EUCLIDEAN_LOSS", ""),
    "flatten": ("FLATTEN", ""),
    "hdf5_data": ("HDF5_DATA", "hdf5_data_param"),
    "hdf5_output": ("HDF5_OUTPUT", "hdf5_output_param"),
    "im2col": ("IM2COL", "convolution_param"),
    "images": ("IMAGE_DATA", "image_data_param"),
    "infogain_loss": ("INFOGAIN_LOSS", "infogain_loss_param"),
    "innerproduct": ("INNER_PRODUCT", "inner_product_param"),
    "lrn": ("LRN", "lrn_param"),
    "multinomial_logistic_loss": ("MULTINOMIAL_LOGISTIC_LOSS", ""),
    "pool": ("POOLING", "pooling_param"),
    "relu": ("RELU", ""),
    "sigmoid": ("SIGMOID", ""),
    "softmax": ("SOFTMAX", ""),
    "softmax_loss": ("SOFTMAX_LOSS", ""),
    "split": ("SPLIT", ""),
    "tanh": ("TANH", ""),
    "window_data": ("WINDOW_DATA", "window_data_param"),
}
V0_NAMES = {
    "biasterm": "bias_term",
    "kernelsize": "kernel_size",
    "meanfile": "mean_file",
    "batchsize": "batch_size",
    "cropsize": "crop_size",
    "shuffle_images": "shuffle",
    "det_fg_threshold": "fg_threshold",
    "det_bg_threshold": "bg_threshold",
    "det_fg_fraction": "fg_fraction",
    "det_context_pad": "context_pad",
    "det_crop_mode": "crop_mode",
}
TRANSFORMED = ("scale", "mean_file", "crop_size", "mirror")
DATA_PARAMS = ("data_param", "image_data_param", "window_data_param")
SOLVER_TYPES = {
    "SGD": "SGD",
    "NESTEROV": "Nesterov",
    "ADAGRAD": "AdaGrad",
    "RMSPROP": "RMSProp",
    "ADADELTA": "AdaDelta",
    "ADAM": "Adam",
}


def upgraded(net: Message, name: str = "net") -> Message:
    """Return a net in today's form; one that is so already, as it is.

    >>> net = NetParameter(layers=[{"name": "r", "type": "RELU", "bottom": ["x"], "top": ["y"]}])
    >>> upgraded(net).layer[0].type
    'ReLU'
    """
    if net.has("layers") and net.has("layer"):
        raise CaffeError(
            f"{name}: has both `layer` and `layers`; a net is written in one form or the other"
        )
    made = NetParameter()
    for field, value in net.set_fields():
        if field.name not in {"layers", "layer", "input", "input_shape", "input_dim"}:
            made.merge(NetParameter(**{field.name: value}))
    layers = [_from_v1(layer, name) for layer in net.layers] + [one.copy() for one in net.layer]
    made.layer.extend(_inputs(net, name))
    made.layer.extend(layers)
    for layer in made.layer:
        _move_transforms(layer)
        _freeze_statistics(layer)
    return made


def upgraded_solver(solver: Message) -> Message:
    """Return a solver whose type is a string."""
    made: Message = solver.copy()
    if made.has("solver_type"):
        if made.has("type"):
            raise CaffeError("a solver gives solver_type or type, not both")
        made.type = SOLVER_TYPES[made.which("solver_type")]
        made.clear("solver_type")
    return made


def is_old(net: Message) -> bool:
    """Tell whether a net is written in an older form."""
    return any(net.has(name) for name in ("layers", "input", "input_shape", "input_dim"))


# -- inputs ----------------------------------------------------------------------------------------


def _inputs(net: Message, name: str) -> list[Message]:
    """Return the Input layer of a net that lists inputs beside its layers."""
    tops = list(net.input)
    if not tops:
        return []
    layer = LayerParameter(name="input", type="Input", top=tops)
    if net.has("input_shape"):
        layer.input_param.shape.extend(net.input_shape)
    else:
        dims = list(net.input_dim)
        if len(dims) != 4 * len(tops):
            raise CaffeError(
                f"{name}: {len(tops)} inputs need an input_shape each, or four numbers input_dim "
                f"each. Received: {len(dims)} numbers"
            )
        for start in range(0, len(dims), 4):
            layer.input_param.shape.add(dim=dims[start : start + 4])
    return [layer]


# -- layers ----------------------------------------------------------------------------------------


def _from_v1(old: Message, name: str) -> Message:
    if old.has("layer"):
        old = _from_v0(old, name)
    made = LayerParameter()
    same = TYPES["LayerParameter"].fields
    for field, value in old.set_fields():
        if field.name in same and field.name not in {"type", "param"}:
            made.merge(LayerParameter(**{field.name: value}))
    if old.has("type"):
        made.type = V1_TYPES[old.which("type")]
    _set_specs(made, old)
    return made


def _set_specs(made: Message, old: Message) -> None:
    """Join names, sharing, lr and decay of blobs, which were lists beside each other."""
    lists = {
        "name": list(old.param),
        "share_mode": list(old.blob_share_mode),
        "lr_mult": list(old.blobs_lr),
        "decay_mult": list(old.weight_decay),
    }
    for index in range(max(map(len, lists.values()))):
        spec = made.param.add()
        for field, values in lists.items():
            if index < len(values):
                setattr(spec, field, values[index])


def _from_v0(old: Message, name: str) -> Message:
    """Return the second form of a layer in the first: options go to the message of its type."""
    inner = old.layer
    made: Message = V1LayerParameter(bottom=list(old.bottom), top=list(old.top))
    if inner.has("name"):
        made.name = inner.name
    if inner.type not in V0_TYPES:
        raise CaffeError(f"{name}: Unknown layer type {inner.type!r} (layer {inner.name!r})")
    kind, target = V0_TYPES[inner.type]
    made.type = kind
    shared = ("blobs", "blobs_lr", "weight_decay")
    for field, value in inner.set_fields():
        if field.name in shared:
            made.merge(V1LayerParameter(**{field.name: value}))
        elif field.name not in {"name", "type"}:
            _place(made, target, field.name, value, f"{name}: layer {inner.name!r}")
    return made


def _place(made: Message, target: str, field: str, value: object, where: str) -> None:
    new = V0_NAMES.get(field, field)
    if field == "hdf5_output_param":
        made.hdf5_output_param.merge(value)
        return
    options = getattr(made, target) if target else None
    if options is None or new not in options.TYPE.fields:
        raise CaffeError(
            f"{where}: Unknown parameter {field!r} for layer type {made.which('type')}"
        )
    if options.field(new).repeated:
        getattr(options, new).append(value)
    elif options.field(new).is_message:
        getattr(options, new).CopyFrom(value)
    else:
        setattr(options, new, value)


def _move_transforms(layer: Message) -> None:
    for name in DATA_PARAMS:
        if not layer.has(name):
            continue
        options = getattr(layer, name)
        for field in TRANSFORMED:
            if options.has(field):
                setattr(layer.transform_param, field, getattr(options, field))
                options.clear(field)


def _freeze_statistics(layer: Message) -> None:
    """Set the multipliers of BatchNorm's blobs to 0: old files gave them, or gave none."""
    if layer.type == "BatchNorm":
        layer.clear("param")
        for _ in range(3):
            layer.param.add(lr_mult=0, decay_mult=0)
