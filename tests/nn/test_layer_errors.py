"""What layers say when they are built or called wrongly."""

import pytest

import weft as wf
from weft import nn

BUILT = [
    (lambda: nn.Linear(-1, 2), ValueError, "Linear: in_features must be at least 0. Received: -1"),
    (lambda: nn.Linear(2.5, 2), TypeError, "Linear: in_features must be an integer"),
    (lambda: nn.Linear(2, True), TypeError, "out_features must be an integer. Received: True"),
    (lambda: nn.Linear(2, 2, bias="no"), TypeError, "bias must be True or False. Received: 'no'"),
    (lambda: nn.Linear(2, 2, dtype="int64"), TypeError, "floating-point"),
    (
        lambda: nn.Linear(2, 2, device="cuda"),
        ValueError,
        "device must be one of 'cpu', .*'reference'",
    ),
    (lambda: nn.Linear(10**9, 10**9), MemoryError, "more than this machine's memory"),
    (lambda: nn.Bilinear(0, 2, 2), ValueError, "in1_features must be at least 1"),
    (lambda: nn.Conv2d(3, 4, 0), ValueError, "Conv2d: kernel_size must be at least 1"),
    (lambda: nn.Conv2d(3, 4, (3, 3, 3)), ValueError, "kernel_size must be an int or 2 ints"),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError, "groups must divide in_channels"),
    (lambda: nn.Conv2d(4, 3, 3, groups=2), ValueError, "groups must divide out_channels"),
    (lambda: nn.Conv2d(3, 4, 3, padding=-1), ValueError, "padding must be at least 0"),
    (lambda: nn.Conv2d(3, 4, 3, padding="full"), ValueError, "'same' or 'valid'. Received: 'full'"),
    (lambda: nn.Conv2d(3, 4, 3, 2, "same"), ValueError, "padding='same' needs stride 1"),
    (lambda: nn.Conv2d(3, 4, 3, padding_mode="mirror"), ValueError, "padding_mode must be 'zeros'"),
    (lambda: nn.Conv2d(3, 4, 3, color=1), TypeError, "Conv2d has no option 'color'"),
    (lambda: nn.ConvTranspose2d(3, 4, 3, padding="same"), ValueError, "padding must be numbers"),
    (lambda: nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect"), ValueError, "must be 'zeros'"),
    (lambda: nn.MaxPool2d(0), ValueError, "MaxPool2d: kernel_size must be at least 1"),
    (lambda: nn.MaxPool2d((1, 2, 3)), ValueError, "an int or 2 ints"),
    (lambda: nn.AvgPool2d(2, divisor_override=0), ValueError, "divisor_override must not be 0"),
    (lambda: nn.AdaptiveAvgPool2d((1, 2, 3)), ValueError, "an int, None, or 2 of them"),
    (lambda: nn.AdaptiveMaxPool2d(-1), ValueError, "output_size must be at least 0"),
    (lambda: nn.FractionalMaxPool2d(2), ValueError, "either output_size or output_ratio"),
    (lambda: nn.FractionalMaxPool3d(2, output_ratio=1.5), ValueError, "between 0 and 1, or 3"),
    (lambda: nn.LPPool2d(0, 2), ValueError, "norm_type must be positive"),
    (lambda: nn.BatchNorm1d(0), ValueError, "num_features must be at least 1"),
    (lambda: nn.BatchNorm1d(3, eps=-1), ValueError, "eps must be at least 0"),
    (lambda: nn.BatchNorm1d(3, momentum="x"), TypeError, "momentum must be a number"),
    (lambda: nn.GroupNorm(3, 4), ValueError, "num_groups must divide num_channels"),
    (lambda: nn.LayerNorm((2, -1)), ValueError, "negative sizes"),
    (lambda: nn.Dropout(1.5), ValueError, r"Dropout: p must lie in \[0, 1\]. Received: 1.5"),
    (lambda: nn.Dropout(float("nan")), ValueError, "p must lie in"),
    (lambda: nn.GELU("fast"), ValueError, "'none' or 'tanh'. Received: 'fast'"),
    (lambda: nn.Hardtanh(1, 0), ValueError, "min_val must be less than max_val"),
    (lambda: nn.RReLU(0.5, 0.1), ValueError, "lower must not exceed upper"),
    (lambda: nn.Softmax("x"), TypeError, "Softmax: dim must be an integer"),
    (lambda: nn.Softshrink(-1), ValueError, "lambd must be at least 0"),
    (lambda: nn.Embedding(3, 2, padding_idx=3), ValueError, "within the 3 embeddings. Received: 3"),
    (
        lambda: nn.Embedding(3, 2, _weight=wf.zeros(2, 2)),
        ValueError,
        r"must have the shape \(3, 2\)",
    ),
    (lambda: nn.Embedding.from_pretrained(wf.zeros(3)), ValueError, r"the shape \(rows, dim\)"),
    (lambda: nn.EmbeddingBag(3, 2, mode="min"), ValueError, "'sum', 'mean' or 'max'"),
    (
        lambda: nn.EmbeddingBag(3, 2, mode="max", scale_grad_by_freq=True),
        ValueError,
        "does not go with mode='max'",
    ),
    (nn.Upsample, ValueError, "give either size or scale_factor"),
    (lambda: nn.Upsample(2, mode="cubic"), ValueError, "mode must be one of"),
    (lambda: nn.Unflatten(1, 6), ValueError, "must be a tuple of sizes. Received: 6"),
    (lambda: nn.ZeroPad2d((1, 2)), ValueError, "padding must be an int or 4 ints"),
    (lambda: nn.MSELoss(reduction="avg"), ValueError, "reduction must be 'mean', 'sum' or 'none'"),
    (lambda: nn.MultiMarginLoss(p=3), ValueError, "p must be 1 or 2"),
    (lambda: nn.CrossEntropyLoss(label_smoothing=2), ValueError, "label_smoothing must lie in"),
    (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5, 3]),
        ValueError,
        "ascending integers between 1 and n_classes - 1 = 9",
    ),
    (lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, []), ValueError, "ascending"),
]


@pytest.mark.parametrize(("build", "error", "match"), BUILT)
def test_constructors(build, error, match):
    with pytest.raises(error, match=match):
        build()


CALLED = [
    (lambda: nn.Linear(3, 2)(wf.zeros(4, 5)), ValueError, "linear: .*5.*3"),
    (lambda: nn.Conv2d(3, 4, 3)(wf.zeros(3, 3)), ValueError, "conv2d: the input must have 4"),
    (lambda: nn.Conv2d(3, 4, 3)(wf.zeros(1, 2, 5, 5)), ValueError, "conv2d: .*2 channels"),
    (lambda: nn.BatchNorm1d(3)(wf.zeros(2, 3, 4, 5)), ValueError, r"shape \(N, C\) or \(N, C, L\)"),
    (lambda: nn.BatchNorm2d(3)(wf.zeros(2, 3)), ValueError, r"the shape \(N, C, H, W\)"),
    (lambda: nn.BatchNorm1d(3)(wf.zeros(1, 3)), ValueError, "more than one value per channel"),
    (lambda: nn.BatchNorm1d(3)(wf.zeros(2, 4)), ValueError, r"must have shape \(4,\)"),
    (lambda: nn.InstanceNorm2d(3)(wf.zeros(2, 3)), ValueError, r"\(N, C, H, W\) or \(C, H, W\)"),
    (lambda: nn.LayerNorm(3)(wf.zeros(2, 4)), ValueError, "layer_norm: x must end in"),
    (lambda: nn.ReflectionPad2d(1)(wf.zeros(3)), ValueError, "must have 4 dimensions, or 3"),
    (lambda: nn.Softmax2d()(wf.zeros(2, 3)), ValueError, r"\(N, C, H, W\) or \(C, H, W\)"),
    (lambda: nn.Embedding(3, 2)(wf.tensor([3])), IndexError, "3"),
    (lambda: nn.Embedding(3, 2)(wf.tensor([1.0])), TypeError, "integers"),
    (
        lambda: nn.ConvTranspose2d(1, 1, 3, 2)(wf.zeros(1, 1, 4, 4), output_size=(20, 20)),
        ValueError,
        r"output_size must lie from \(9, 9\) to \(10, 10\)",
    ),
    (
        lambda: nn.ConvTranspose2d(1, 1, 3, 2)(wf.zeros(1, 1, 4, 4), output_size=(9,)),
        ValueError,
        "output_size must have 2 entries",
    ),
    (lambda: nn.CrossEntropyLoss()(wf.zeros(2, 3), wf.tensor([0, 3])), IndexError, "3"),
    (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5])(wf.zeros(2, 4), wf.tensor([0, 10])),
        IndexError,
        r"must lie in 0 ... 9. Received: 0 ... 10",
    ),
    (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5])(wf.zeros(2, 4), wf.tensor([0.0, 1.0])),
        TypeError,
        "class indices",
    ),
    (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 10, [5])(wf.zeros(2, 4), wf.tensor([0])),
        ValueError,
        r"\(N, in_features\) and target \(N,\)",
    ),
]


@pytest.mark.parametrize(("call", "error", "match"), CALLED)
def test_calls(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_all_is_complete_and_sorted_out():
    for name in nn.__all__:
        assert hasattr(nn, name)
        assert getattr(nn, name).__doc__, name
