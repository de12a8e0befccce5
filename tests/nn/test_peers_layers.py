"""Compare every layer with PyTorch's own module: same weights, forward, gradients, repr, state.

Each case is a layer, the arguments of its constructor and its inputs; PyTorch's module gets the
same arguments. Inputs are shapes, or arrays where values matter.
"""

import inspect
import warnings
from itertools import count
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft as wf

pytestmark = pytest.mark.peers
torch = pytest.importorskip("torch")

RTOL = ATOL = 1e-9  # all comparisons are in float64
# PyTorch keeps the constants of these in float32, also for float64.
ROUGH = {"Hardsigmoid", "Hardswish", "CELU"}


class Case(NamedTuple):
    """One layer with its options and inputs."""

    layer: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012  (never changed)
    inputs: tuple[Any, ...] = ((2, 3),)
    modes: tuple[bool, ...] = (True,)
    compare_repr: bool = True

    @property
    def label(self) -> str:
        options = ",".join([*map(str, self.args), *(f"{k}={v}" for k, v in self.kwargs.items())])
        return f"{self.layer}({options})".replace(" ", "")[:70]


def case(layer: str, *args: Any, inputs: Any = ((2, 3),), **kwargs: Any) -> Case:
    modes = kwargs.pop("modes", (True,))
    compare_repr = kwargs.pop("compare_repr", True)
    return Case(layer, args, kwargs, inputs, modes, compare_repr)


IMAGE = ((2, 4, 7, 6),)
BOTH = (True, False)
rng = np.random.default_rng(0)
CLASSES = rng.integers(0, 5, 6)
SIGNS = np.where(rng.random((4, 3)) < 0.5, -1.0, 1.0)
PROBABILITIES = rng.uniform(0.05, 0.95, (4, 3))
TARGETS = rng.random((4, 3))
COUNTS = rng.integers(0, 6, (4, 3)).astype(float)


def linear_cases():
    yield case("Identity", 54, unused=True)
    for bias in BOTH:
        yield case("Linear", 3, 5, bias)
        yield case("Linear", 3, 5, bias=bias, inputs=((4, 2, 3),))
        yield case("Bilinear", 3, 4, 5, bias, inputs=((2, 3), (2, 4)))
    yield case("Linear", 3, 5, inputs=((3,),))
    yield case("Bilinear", 3, 4, 5, inputs=((2, 6, 3), (2, 6, 4)))
    yield case("Bilinear", 3, 4, 5, inputs=((3,), (4,)))
    yield case("Flatten", inputs=((2, 3, 4),))
    yield case("Flatten", 0, 1, inputs=((2, 3, 4),))
    yield case("Unflatten", 1, (2, -1), inputs=((3, 6),))
    yield case("LazyLinear", 5)
    yield case("LazyConv2d", 4, 3, inputs=((2, 2, 5, 5),))
    yield case("LazyConv1d", 4, 3, 1, 1, inputs=((2, 2, 5),))
    yield case("LazyConv3d", 4, (1, 2, 3), groups=2, inputs=((2, 4, 3, 4, 5),))
    yield case("LazyConvTranspose1d", 4, 3, inputs=((2, 3, 5),))
    yield case("LazyConvTranspose2d", 4, 3, stride=2, inputs=((2, 3, 5, 4),))
    yield case("LazyConvTranspose3d", 4, 2, inputs=((2, 3, 3, 4, 5),))
    yield case("LazyBatchNorm1d", inputs=((4, 3),))
    yield case("LazyBatchNorm2d", eps=0.1, inputs=((4, 3, 2, 2),))
    yield case("LazyBatchNorm3d", affine=False, inputs=((4, 3, 2, 2, 2),))
    # PyTorch documents other defaults for these than it has, so they are given.
    plain = {"affine": True, "track_running_stats": False}
    yield case("LazyInstanceNorm1d", **plain, inputs=((4, 3, 5),))
    yield case("LazyInstanceNorm2d", **plain, inputs=((4, 3, 5, 2),))
    yield case("LazyInstanceNorm3d", **plain, inputs=((4, 3, 5, 2, 2),))


def conv_cases():
    for mode in ("zeros", "reflect", "replicate", "circular"):
        yield case("Conv2d", 4, 6, 3, padding=(1, 2), padding_mode=mode, inputs=IMAGE)
        yield case("Conv1d", 4, 6, 3, 2, 2, padding_mode=mode, inputs=((2, 4, 9),))
        yield case("Conv3d", 2, 4, 2, 1, 1, padding_mode=mode, inputs=((1, 2, 3, 4, 5),))
        yield case("Conv2d", 4, 6, (3, 4), padding="same", padding_mode=mode, inputs=IMAGE)
    yield case("Conv2d", 4, 6, 3, inputs=((4, 7, 6),))
    yield case("Conv2d", 4, 6, (3, 2), (2, 1), (1, 0), (1, 2), 2, False, inputs=IMAGE)
    yield case("Conv2d", 4, 8, 3, groups=4, inputs=IMAGE)
    yield case("Conv2d", 4, 6, 3, padding="valid", inputs=IMAGE)
    yield case("Conv2d", 4, 6, 3, padding="valid", padding_mode="reflect", inputs=IMAGE)
    yield case("Conv1d", 4, 6, 3, stride=2, dilation=2, inputs=((2, 4, 9),))
    yield case("Conv3d", 2, 4, (1, 2, 3), stride=(1, 2, 1), inputs=((1, 2, 3, 4, 5),))
    for bias in BOTH:
        yield case("ConvTranspose2d", 4, 6, 3, 2, 1, 1, 2, bias, inputs=IMAGE)
    yield case("ConvTranspose2d", 4, 6, (3, 2), (2, 3), (1, 0), (1, 2), 1, inputs=IMAGE)
    yield case("ConvTranspose2d", 4, 6, 3, dilation=2, inputs=IMAGE)
    yield case("ConvTranspose1d", 4, 6, 3, stride=2, output_padding=1, inputs=((2, 4, 5),))
    yield case("ConvTranspose3d", 2, 4, 2, 2, inputs=((1, 2, 3, 2, 3),))
    yield case("ConvTranspose2d", 4, 6, 3, 2, 1, inputs=(IMAGE[0], (14, 12)))


def pooling_cases():
    line, volume = ((2, 3, 9),), ((2, 3, 5, 6, 7),)
    for name, shape in (("1d", line), ("2d", IMAGE), ("3d", volume)):
        yield case(f"MaxPool{name}", 2, inputs=shape)
        yield case(f"MaxPool{name}", 3, 2, 1, ceil_mode=True, inputs=shape)
        yield case(f"MaxPool{name}", 2, 1, 0, 2, inputs=shape)
        yield case(f"MaxPool{name}", 2, return_indices=True, inputs=shape)
        yield case(f"MaxPool{name}", 2, inputs=(shape[0][1:],))
        yield case(f"AvgPool{name}", 2, inputs=shape)
        for include in BOTH:
            yield case(f"AvgPool{name}", 3, 2, 1, True, include, inputs=shape)
        yield case(f"AdaptiveAvgPool{name}", 3, inputs=shape)
        yield case(f"AdaptiveMaxPool{name}", 3, inputs=shape)
        yield case(f"AdaptiveMaxPool{name}", 2, return_indices=True, inputs=shape)
        positive = np.abs(rng.standard_normal(shape[0])) + 0.1
        yield case(f"LPPool{name}", 2, 3, inputs=(positive,))
        yield case(f"LPPool{name}", 3.0, 2, 1, ceil_mode=True, inputs=(positive,))
    yield case("MaxPool2d", (2, 3), (1, 2), (1, 0), (2, 1), inputs=IMAGE)
    yield case("AvgPool2d", (2, 3), (1, 2), (1, 0), divisor_override=5, inputs=IMAGE)
    yield case("AvgPool3d", 2, divisor_override=3, inputs=volume)
    yield case("AdaptiveAvgPool2d", (None, 4), inputs=IMAGE)
    yield case("AdaptiveAvgPool3d", (2, None, 1), inputs=volume)
    yield case("AdaptiveMaxPool2d", (5, None), inputs=IMAGE)


def norm_cases():
    shapes = {"1d": [(4, 3), (4, 3, 5)], "2d": [(4, 3, 5, 2)], "3d": [(2, 3, 2, 3, 2)]}
    for name, several in shapes.items():
        for shape in several:
            one = (shape,)
            yield case(f"BatchNorm{name}", 3, inputs=one, modes=(True, True, False))
            yield case(f"BatchNorm{name}", 3, 0.1, None, inputs=one, modes=(True, True, False))
            yield case(f"BatchNorm{name}", 3, affine=False, inputs=one, modes=BOTH)
            yield case(f"BatchNorm{name}", 3, 1e-3, 0.3, True, False, inputs=one, modes=BOTH)
        if len(shape) > 2:
            for options in ({}, {"affine": True}, {"track_running_stats": True, "momentum": 0.4}):
                yield case(f"InstanceNorm{name}", 3, inputs=one, modes=BOTH, **options)
            yield case(f"InstanceNorm{name}", 3, affine=True, inputs=(shape[1:],))
    yield case("LayerNorm", 3)
    yield case("LayerNorm", (4, 3), 0.1, inputs=((2, 4, 3),))
    yield case("LayerNorm", 3, bias=False)
    yield case("LayerNorm", [3], elementwise_affine=False)
    yield case("GroupNorm", 2, 4, inputs=IMAGE)
    yield case("GroupNorm", 4, 4, 0.1, False, inputs=((2, 4),))
    yield case("RMSNorm", 3)
    yield case("RMSNorm", (4, 3), 0.1, inputs=((2, 4, 3),))
    yield case("RMSNorm", 3, elementwise_affine=False)
    yield case("LocalResponseNorm", 2, inputs=IMAGE)
    yield case("LocalResponseNorm", 3, 0.1, 0.5, 2.0, inputs=((2, 5, 4),))


def activation_cases():
    simple = (
        "ReLU ReLU6 ELU CELU SELU GELU SiLU Mish Softplus Softsign Sigmoid LogSigmoid Tanh "
        "Tanhshrink Hardtanh Hardsigmoid Hardswish Hardshrink Softshrink LeakyReLU PReLU"
    )
    far = np.concatenate([rng.standard_normal(20) * 4, [30.0, -30.0]])
    for name in simple.split():
        yield case(name, inputs=(far,))
    for name in ("ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Hardsigmoid", "Hardswish"):
        yield case(name, inplace=True)
    yield case("ELU", 0.7, True)
    yield case("CELU", 0.7)
    yield case("GELU", approximate="tanh", inputs=(far,))
    yield case("Softplus", 2.0, 3.0, inputs=(far,))
    yield case("Softplus", beta=0.5)
    yield case("Hardtanh", -2.0, 0.5, inplace=True, inputs=(far,))
    yield case("Hardshrink", 1.0)
    yield case("Softshrink", 0.1)
    yield case("LeakyReLU", 0.3)
    yield case("PReLU", 4, 0.1, inputs=IMAGE)
    yield case("RReLU", 0.2, 0.4, modes=(False,))
    yield case("Threshold", 0.1, 20)
    yield case("GLU", inputs=((2, 6),))
    yield case("GLU", 1, inputs=((2, 4, 3),))
    for name in ("Softmax", "LogSoftmax", "Softmin"):
        yield case(name, 1, inputs=((2, 3, 4),))
        yield case(name, dim=-1)
        for shape in ((3,), (2, 3), (2, 3, 4), (2, 3, 4, 2)):
            yield case(name, inputs=(shape,))
    yield case("Softmax2d", inputs=IMAGE)
    yield case("Softmax2d", inputs=((3, 2, 2),))


def shape_cases():
    for mode in ("nearest", "bilinear", "bicubic", "nearest-exact", "area"):
        yield case("Upsample", (5, 9), mode=mode, inputs=IMAGE)
    for mode in ("bilinear", "bicubic"):
        yield case("Upsample", (5, 9), None, mode, True, inputs=IMAGE)
    yield case("Upsample", scale_factor=2, inputs=IMAGE)
    yield case("Upsample", scale_factor=(1.7, 2.3), mode="bilinear", inputs=IMAGE)
    yield case(
        "Upsample",
        scale_factor=1.7,
        mode="bilinear",
        recompute_scale_factor=True,
        inputs=IMAGE,
    )
    yield case("Upsample", 7, mode="linear", inputs=((2, 3, 4),))
    yield case(
        "Upsample", (3, 4, 5), mode="trilinear", align_corners=True, inputs=((1, 2, 2, 3, 2),)
    )
    yield case("UpsamplingNearest2d", scale_factor=2, inputs=IMAGE)
    yield case("UpsamplingBilinear2d", (5, 3), inputs=IMAGE)
    yield case("PixelShuffle", 2, inputs=IMAGE)
    yield case("PixelUnshuffle", 2, inputs=((1, 3, 4, 6),))
    yield case("ChannelShuffle", 2, inputs=IMAGE)
    yield case("Unfold", (2, 3), 1, (1, 0), 2, inputs=IMAGE)
    yield case("Fold", (4, 5), (2, 2), stride=1, inputs=((2, 12, 12),))
    line, volume = ((2, 3, 5),), ((1, 2, 4, 5, 6),)
    for name, shape, widths in (
        ("1d", line, (1, 2)),
        ("2d", IMAGE, (1, 2, 3, 0)),
        ("3d", volume, (1, 2, 2, 0, 1, 1)),
    ):
        for kind in ("Reflection", "Replication", "Circular", "Zero"):
            yield case(f"{kind}Pad{name}", 1, inputs=shape)
            yield case(f"{kind}Pad{name}", widths, inputs=shape)
        yield case(f"ConstantPad{name}", widths, 3.5, inputs=shape)
    yield case("ZeroPad2d", (-1, 1, 0, -2), inputs=IMAGE)
    yield case("CosineSimilarity", inputs=((2, 3), (2, 3)))
    yield case("CosineSimilarity", 0, 0.1, inputs=((2, 3), (2, 3)))
    yield case("PairwiseDistance", inputs=((2, 3), (2, 3)))
    yield case("PairwiseDistance", 1.0, 0.1, True, inputs=((2, 3), (2, 3)))


def embedding_cases():
    index = np.array([[1, 3, 3], [0, 2, 1]])
    flat, offsets = np.array([1, 3, 3, 0, 2, 1]), np.array([0, 2, 2])
    yield case("Embedding", 5, 3, inputs=(index,))
    yield case("Embedding", 5, 3, padding_idx=1, inputs=(index,))
    yield case("Embedding", 5, 3, padding_idx=-2, inputs=(index,))
    yield case("Embedding", 5, 3, max_norm=0.7, inputs=(index,))
    yield case("Embedding", 5, 3, max_norm=0.7, norm_type=1.0, inputs=(index,))
    yield case("Embedding", 5, 3, scale_grad_by_freq=True, inputs=(index,))
    for mode in ("sum", "mean", "max"):
        yield case("EmbeddingBag", 5, 3, mode=mode, inputs=(index,))
        yield case("EmbeddingBag", 5, 3, mode=mode, inputs=(flat, offsets))
        yield case("EmbeddingBag", 5, 3, mode=mode, padding_idx=3, inputs=(flat, offsets))
    last = np.array([0, 2, 6])
    yield case("EmbeddingBag", 5, 3, include_last_offset=True, inputs=(flat, last))
    yield case("EmbeddingBag", 5, 3, max_norm=0.5, norm_type=1.0, inputs=(flat, offsets))
    weights = rng.random(6)
    yield case("EmbeddingBag", 5, 3, mode="sum", inputs=(flat, offsets, weights))


def loss_cases():
    pair, line = ((4, 3), (4, 3)), rng.standard_normal((6, 5))
    for name in ("L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss"):
        yield case(name, inputs=pair)
    yield case("SmoothL1Loss", beta=0.3, inputs=pair)
    yield case("HuberLoss", delta=0.3, inputs=pair)
    for log_input in BOTH:
        rates = rng.random((4, 3)) + 0.2
        for full in BOTH:
            yield case("PoissonNLLLoss", log_input, full, inputs=(rates, COUNTS))
    yield case("PoissonNLLLoss", log_input=False, eps=0.1, inputs=(rates, COUNTS))
    yield case("GaussianNLLLoss", inputs=(*pair, PROBABILITIES))
    yield case("GaussianNLLLoss", full=True, eps=0.3, inputs=(*pair, PROBABILITIES))
    for log_target in BOTH:
        yield case("KLDivLoss", log_target=log_target, inputs=((4, 3), TARGETS))
    yield case("KLDivLoss", reduction="batchmean", inputs=((4, 3), TARGETS))
    weight = np.array([0.2, 1.0, 2.0, 0.5, 3.0])
    probabilities = rng.dirichlet(np.ones(5), 6)
    for options in (
        {},
        {"weight": weight},
        {"ignore_index": int(CLASSES[0])},
        {"label_smoothing": 0.2},
        {"weight": weight, "ignore_index": int(CLASSES[1]), "label_smoothing": 0.1},
    ):
        yield case("CrossEntropyLoss", inputs=(line, CLASSES), **options)
    yield case("CrossEntropyLoss", label_smoothing=0.1, inputs=(line, probabilities))
    yield case("CrossEntropyLoss", inputs=((2, 5, 3), rng.integers(0, 5, (2, 3))))
    yield case("NLLLoss", inputs=(line, CLASSES))
    yield case("NLLLoss", weight=weight, ignore_index=2, inputs=(line, CLASSES))
    yield case("BCELoss", inputs=(PROBABILITIES, TARGETS))
    yield case("BCELoss", weight=weight[:3], inputs=(PROBABILITIES, TARGETS))
    yield case("BCEWithLogitsLoss", inputs=((4, 3), TARGETS))
    yield case(
        "BCEWithLogitsLoss", weight=weight[:3], pos_weight=weight[2:], inputs=((4, 3), TARGETS)
    )
    yield case("SoftMarginLoss", inputs=((4, 3), SIGNS))
    binary = (TARGETS > 0.5).astype(float)
    yield case("MultiLabelSoftMarginLoss", inputs=((4, 3), binary))
    yield case("MultiLabelSoftMarginLoss", weight=weight[:3], inputs=((4, 3), binary))
    listed = np.array([[2, 0, -1, 1], [1, -1, 0, 0]])
    yield case("MultiLabelMarginLoss", inputs=((2, 4), listed))
    for p in (1, 2):
        yield case("MultiMarginLoss", p, 0.7, weight=weight, inputs=(line, CLASSES))
    yield case("HingeEmbeddingLoss", inputs=((4, 3), SIGNS))
    yield case("HingeEmbeddingLoss", margin=2.0, inputs=((4, 3), SIGNS))
    for margin in (0.0, 0.5):
        yield case("MarginRankingLoss", margin, inputs=(*pair, SIGNS))
        yield case("CosineEmbeddingLoss", margin, inputs=(*pair, SIGNS[:, 0]))
    triple = (*pair, (4, 3))
    yield case("TripletMarginLoss", inputs=triple)
    yield case("TripletMarginLoss", 0.5, 1.0, 1e-3, True, inputs=triple)
    yield case("TripletMarginWithDistanceLoss", inputs=triple)
    yield case("TripletMarginWithDistanceLoss", margin=0.3, swap=True, inputs=triple)


def all_reductions():
    for each in loss_cases():
        yield each
        if "reduction" not in each.kwargs:
            for reduction in ("sum", "none"):
                yield each._replace(kwargs={**each.kwargs, "reduction": reduction})


CASES = [
    *linear_cases(),
    *conv_cases(),
    *pooling_cases(),
    *norm_cases(),
    *activation_cases(),
    *shape_cases(),
    *embedding_cases(),
    *all_reductions(),
]
numbers = count()


@pytest.mark.parametrize("each", CASES, ids=lambda c: f"{next(numbers)}-{c.label}")
def test_layer_equals_pytorchs(each):
    warnings.simplefilter("ignore")  # PyTorch warns of lazy modules, even kernels and the like
    ours, theirs = build(each)
    values = [inputs_of(i, x) for i, x in enumerate(each.inputs)]
    if ours._pending:
        assert repr(ours) == repr(theirs)
        theirs(*[as_torch(x, False) for x in values])
        theirs.load_state_dict(theirs.state_dict())
        ours(*[as_weft(x, False) for x in values])
        reset_statistics(theirs)
        reset_statistics(ours)
        assert type(ours).__name__ == type(theirs).__name__
    copy_state(theirs, ours)
    for training in each.modes:
        ours.train(training)
        theirs.train(training)
        compare_call(ours, theirs, values)
    compare_state(ours, theirs)
    if each.compare_repr:
        assert repr(ours) == repr(theirs)


def build(each):
    convert = {"weight", "pos_weight"}
    plain = {k: v for k, v in each.kwargs.items() if k not in convert}
    ours_given = {k: wf.tensor(v) for k, v in each.kwargs.items() if k in convert}
    theirs_given = {k: torch.tensor(v) for k, v in each.kwargs.items() if k in convert}
    ours = getattr(wf.nn, each.layer)(*each.args, **plain, **ours_given)
    theirs = getattr(torch.nn, each.layer)(*each.args, **plain, **theirs_given)
    return ours.double(), theirs.double()


def inputs_of(position, given):
    if isinstance(given, np.ndarray):
        return given
    if isinstance(given, tuple) and len(given) and given == (14, 12):
        return list(given)  # an output size, not a shape
    return np.random.default_rng(position).standard_normal(given)


def as_torch(x, track):
    if not isinstance(x, np.ndarray):
        return x
    tensor = torch.tensor(x)
    return tensor.requires_grad_() if track and x.dtype.kind == "f" else tensor


def as_weft(x, track):
    if not isinstance(x, np.ndarray):
        return x
    return wf.tensor(x, requires_grad=bool(track and x.dtype.kind == "f"))


def reset_statistics(module):
    if getattr(module, "running_mean", None) is not None:
        module.reset_running_stats()


def copy_state(theirs, ours):
    state = {name: value.detach().numpy() for name, value in theirs.state_dict().items()}
    assert list(state) == list(ours.state_dict())
    ours.load_state_dict(state)


def compare_call(ours, theirs, values):
    # A target that PyTorch cannot differentiate by is given to both without gradient.
    track = [differentiable(theirs, i) for i in range(len(values))]
    mine = [as_weft(x, t) for x, t in zip(values, track, strict=True)]
    peers = [as_torch(x, t) for x, t in zip(values, track, strict=True)]
    clones = [x.clone() if isinstance(x, torch.Tensor) else x for x in peers]  # for inplace=True
    found, wanted = ours(*mine), theirs(*clones)
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    for a, b in pairs:
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), RTOL, ATOL)
    found = found[0] if isinstance(found, tuple) else found
    wanted = wanted[0] if isinstance(wanted, tuple) else wanted
    compare_gradients((ours, mine, found), (theirs, peers, wanted))


def differentiable(theirs, position):
    names = list(inspect.signature(theirs.forward).parameters)
    return names[position] not in {"target", "targets", "var", "input_lengths", "target_lengths"}


def compare_gradients(ours, theirs):
    if not theirs[2].requires_grad:
        assert not ours[2].requires_grad
        return
    g = np.random.default_rng(9).standard_normal(tuple(theirs[2].shape))
    ours[0].zero_grad()
    theirs[0].zero_grad()
    ours[2].backward(wf.tensor(g))
    theirs[2].backward(torch.tensor(g))
    tensors = zip(ours[1], theirs[1], strict=True)
    named = zip(ours[0].parameters(), theirs[0].parameters(), strict=True)
    for a, b in [*tensors, *named]:
        if getattr(b, "grad", None) is not None:
            rtol = 1e-6 if type(theirs[0]).__name__ in ROUGH else RTOL
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol, ATOL)


def compare_state(ours, theirs):
    for name, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[name].numpy(), value.numpy(), RTOL, ATOL)


# -- what does not fit the table -----------------------------------------------------------------


@pytest.mark.parametrize("name", ["1d", "2d", "3d"])
def test_max_unpool_equals_pytorchs(name):
    shape = (2, 3, *(4, 6, 4)[: int(name[0])])
    x = np.random.default_rng(1).standard_normal(shape)
    results = []
    for nn, tensor in ((wf.nn, wf.tensor), (torch.nn, torch.tensor)):
        pooled, index = getattr(nn, f"MaxPool{name}")(2, return_indices=True)(tensor(x))
        unpool = getattr(nn, f"MaxUnpool{name}")(2)
        results.append((unpool(pooled, index).numpy(), repr(unpool)))
        larger = (*shape[:2], *(n + 1 for n in shape[2:]))
        results.append((unpool(pooled, index, output_size=larger[2:]).numpy(), ""))
    np.testing.assert_array_equal(results[0][0], results[2][0])
    np.testing.assert_array_equal(results[1][0], results[3][0])
    assert results[0][1] == results[2][1]


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("options", [{}, {"blank": 4}, {"blank": 4, "zero_infinity": True}])
def test_ctc_loss_equals_pytorchs(options, reduction):
    # PyTorch's gradient by log_probs takes a log_softmax before it for granted.
    scores = np.random.default_rng(3).standard_normal((7, 2, 5))
    labels = np.random.default_rng(4).integers(1, 5, (2, 3)) - (1 if options else 0)
    lengths = (np.array([7, 6]), np.array([3, 2]))
    mine, peer = as_weft(scores, True), as_torch(scores, True)
    ours = wf.nn.CTCLoss(**options, reduction=reduction)
    theirs = torch.nn.CTCLoss(**options, reduction=reduction)
    found = ours(wf.nn.LogSoftmax(2)(mine), *map(wf.tensor, (labels, *lengths)))
    wanted = theirs(torch.nn.LogSoftmax(2)(peer), *map(torch.tensor, (labels, *lengths)))
    np.testing.assert_allclose(found.numpy(), wanted.detach().numpy(), RTOL)
    compare_gradients((ours, [mine], found), (theirs, [peer], wanted))


def test_adaptive_log_softmax_equals_pytorchs():
    warnings.simplefilter("ignore")  # PyTorch warns of the empty cluster weight
    for options in ({}, {"div_value": 2.0, "head_bias": True}):
        ours = wf.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], **options).double()
        theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, [4, 10], **options).double()
        copy_state(theirs, ours)
        assert repr(ours) == repr(theirs)
        x = np.random.default_rng(2).standard_normal((7, 8))
        target = np.array([0, 3, 4, 9, 10, 19, 5])
        mine, peer = as_weft(x, True), as_torch(x, True)
        found, wanted = ours(mine, wf.tensor(target)), theirs(peer, torch.tensor(target))
        np.testing.assert_allclose(found.output.numpy(), wanted.output.detach().numpy(), RTOL)
        compare_gradients((ours, [mine], found.loss), (theirs, [peer], wanted.loss))
        np.testing.assert_allclose(
            ours.log_prob(mine).numpy(), theirs.log_prob(peer).detach().numpy(), RTOL
        )
        np.testing.assert_array_equal(ours.predict(mine).numpy(), theirs.predict(peer).numpy())


@pytest.mark.parametrize(
    ("layer", "args"),
    [
        ("Linear", (50, 400)),
        ("Bilinear", (20, 30, 40)),
        ("Conv2d", (20, 40, 3)),
        ("Conv1d", (20, 60, 5)),
        ("ConvTranspose2d", (20, 40, 3)),
        ("Embedding", (300, 40)),
        ("EmbeddingBag", (300, 40)),
        ("PReLU", (4,)),
    ],
)
def test_first_values_have_pytorchs_distribution(layer, args):
    wf.manual_seed(0)
    torch.manual_seed(0)
    ours, theirs = getattr(wf.nn, layer)(*args), getattr(torch.nn, layer)(*args)
    for name, expected in theirs.state_dict().items():
        a, b = ours.state_dict()[name].numpy().ravel(), expected.numpy().ravel()
        spread = max(float(b.std()), 1e-6)
        noise = 6 / np.sqrt(a.size)
        assert abs(a.mean() - b.mean()) <= spread * noise
        assert abs(a.std() / spread - 1) <= noise or spread < 1e-5
        if b.size > 100 and "Embedding" not in layer:  # uniform: the ends agree too
            np.testing.assert_allclose([a.min(), a.max()], [b.min(), b.max()], rtol=0.2)


def test_containers_print_as_pytorchs():
    def build(nn):
        return nn.Sequential(
            nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)]),
            nn.ModuleDict({"a": nn.Sequential(), "b": nn.Dropout(0.1)}),
        )

    assert repr(build(wf.nn)) == repr(build(torch.nn))


@pytest.mark.parametrize(
    ("name", "shape", "options"),
    [
        ("xavier_uniform_", (300, 200), {"gain": 2.0}),
        ("xavier_normal_", (300, 50, 2, 2), {}),
        ("kaiming_uniform_", (300, 200), {"a": 0.3, "mode": "fan_out"}),
        ("kaiming_normal_", (300, 200), {"nonlinearity": "relu"}),
        ("trunc_normal_", (300, 200), {"mean": 0.5, "std": 2.0, "a": -1.0, "b": 3.0}),
        ("normal_", (300, 200), {"mean": 0.5, "std": 2.0}),
        ("uniform_", (300, 200), {"a": -0.5, "b": 2.0}),
        ("sparse_", (300, 200), {"sparsity": 0.3, "std": 2.0}),
        ("orthogonal_", (300, 200), {"gain": 3.0}),
        ("constant_", (3, 4), {"val": 2.5}),
        ("eye_", (3, 5), {}),
        ("dirac_", (6, 2, 3, 3), {"groups": 2}),
    ],
)
def test_initialisers_agree_with_pytorchs(name, shape, options):
    wf.manual_seed(0)
    torch.manual_seed(0)
    ours = getattr(wf.nn.init, name)(wf.zeros(shape), **options).numpy()
    theirs = getattr(torch.nn.init, name)(torch.zeros(shape), **options).numpy()
    if name in {"constant_", "eye_", "dirac_"}:
        np.testing.assert_array_equal(ours, theirs)
    assert abs(ours.mean() - theirs.mean()) < 0.03 * max(1, theirs.std())
    assert abs(ours.std() - theirs.std()) <= 0.03 * theirs.std()
    assert (ours == 0).mean() == pytest.approx((theirs == 0).mean(), abs=0.01)


@pytest.mark.parametrize(
    "arguments", [("linear",), ("conv2d",), ("tanh",), ("relu",), ("leaky_relu", 0.2), ("selu",)]
)
def test_gains_are_pytorchs(arguments):
    ours = wf.nn.init.calculate_gain(*arguments)
    assert ours == pytest.approx(torch.nn.init.calculate_gain(*arguments))
