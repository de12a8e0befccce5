"""Sequence layers beside PyTorch's own with the same weights: outputs and all gradients.

Float64 on both sides, so that the two may differ by rounding only.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import weft as wf
from weft.nn import packed as packing
from weft.nn.attention import MultiheadAttention
from weft.nn.conv import Conv2d
from weft.nn.conv_transpose import ConvTranspose2d
from weft.nn.linear import Linear
from weft.nn.recurrent import GRU, LSTM, RNN
from weft.nn.reparametrize import (
    remove_spectral_norm,
    remove_weight_norm,
    spectral_norm,
    weight_norm,
)
from weft.nn.rnn_cells import GRUCell, LSTMCell, RNNCell
from weft.nn.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)

pytestmark = [
    pytest.mark.peers,
    # PyTorch's remarks on its own implementations and deprecations are none of our concern.
    pytest.mark.filterwarnings("ignore::UserWarning:torch"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def pair(torch, ours, theirs, rng):
    """Return both modules with the same random weights, after comparing names and shapes."""
    theirs = theirs.double()
    assert [(n, tuple(p.shape)) for n, p in theirs.named_parameters()] == [
        (n, p.shape) for n, p in ours.named_parameters()
    ]
    assert set(theirs.state_dict()) == set(ours.state_dict())
    state = {n: rng.normal(size=tuple(t.shape)) * 0.5 for n, t in theirs.state_dict().items()}
    ours.load_state_dict(state)
    theirs.load_state_dict({n: torch.tensor(a) for n, a in state.items()})
    return ours, theirs


def leaves(value):
    """Return the floating-point tensors of a nested result, in order."""
    if value is None:
        return []
    if isinstance(value, (tuple, list)):
        return [leaf for part in value for leaf in leaves(part)]
    return [value] if "float" in str(value.dtype) else []


def as_array(tensor):
    return tensor.detach().numpy()


def close(ours, theirs):
    np.testing.assert_allclose(as_array(ours), as_array(theirs), rtol=1e-7, atol=1e-10)


def compare(torch, ours, theirs, arrays, call=None, constants=None):
    """Run both on the same inputs and compare outputs and the gradients of everything."""
    call = call or (lambda net, *tensors, **options: net(*tensors, **options))
    constants = constants or {}
    mine = [wf.tensor(a, requires_grad=True) for a in arrays]
    other = [torch.tensor(a, requires_grad=True) for a in arrays]
    got = leaves(call(ours, *mine, **{k: wf.tensor(v) for k, v in constants.items()}))
    expected = leaves(call(theirs, *other, **{k: torch.tensor(v) for k, v in constants.items()}))
    assert len(got) == len(expected)
    for a, b in zip(got, expected, strict=True):
        close(a, b)
    sum((a * a).sum() for a in got).backward()
    sum((b * b).sum() for b in expected).backward()
    for a, b in zip(mine, other, strict=True):
        close(a.grad, b.grad)
    theirs_by_name = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        if theirs_by_name[name].grad is None:
            assert parameter.grad is None or not parameter.grad.numpy().any()
        else:
            close(parameter.grad, theirs_by_name[name].grad)


# -- recurrent -----------------------------------------------------------------------------------

KINDS = [
    (RNN, "RNN", {}),
    (RNN, "RNN", {"nonlinearity": "relu"}),
    (GRU, "GRU", {}),
    (LSTM, "LSTM", {}),
    (LSTM, "LSTM", {"proj_size": 2}),
]
SHAPES = [
    {"num_layers": layers, "bidirectional": both, "bias": bias, "batch_first": first}
    for layers, both, bias, first in itertools.product(
        (1, 2), (False, True), (True, False), (False, True)
    )
]


def recurrent(torch, rng, kind, name, options):
    return pair(
        torch,
        kind(3, 4, dtype=wf.float64, **options),
        getattr(torch.nn, name)(3, 4, **options),
        rng,
    )


def states(rng, net, *batch):
    runs = net.num_layers * (2 if net.bidirectional else 1)
    sizes = [net.proj_size or 4, 4][: 2 if isinstance(net, LSTM) else 1]
    return [rng.normal(size=(runs, *batch, size)) for size in sizes]


def with_state(net, x, *hx):
    return net(x, hx if len(hx) == 2 else hx[0])


@pytest.mark.parametrize(("kind", "name", "options"), KINDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_recurrent_layers(torch, rng, kind, name, options, shape):
    ours, theirs = recurrent(torch, rng, kind, name, options | shape)
    x = rng.normal(size=(5, 5, 3))
    compare(torch, ours, theirs, [x])
    ours, theirs = recurrent(torch, rng, kind, name, options | shape)
    compare(torch, ours, theirs, [x, *states(rng, ours, 5)], with_state)
    ours, theirs = recurrent(torch, rng, kind, name, options | shape)
    compare(torch, ours, theirs, [x[0], *states(rng, ours)], with_state)


@pytest.mark.parametrize(("kind", "name", "options"), KINDS)
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize(("lengths", "is_sorted"), [([5, 3, 3, 1], True), ([2, 5, 1, 5], False)])
def test_packed_batches(torch, rng, kind, name, options, both, lengths, is_sorted):
    options = options | {"num_layers": 2, "bidirectional": both}
    ours, theirs = recurrent(torch, rng, kind, name, options)

    def run(net, x, *hx):
        rnn = torch.nn.utils.rnn if isinstance(net, torch.nn.Module) else packing
        packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=is_sorted)
        output, final = with_state(net, packed, *hx)
        return rnn.pad_packed_sequence(output, padding_value=0.5, total_length=6), final

    compare(torch, ours, theirs, [rng.normal(size=(5, 4, 3)), *states(rng, ours, 4)], run)


@pytest.mark.parametrize(
    ("cell", "name", "options"),
    [
        (RNNCell, "RNNCell", {}),
        (RNNCell, "RNNCell", {"nonlinearity": "relu"}),
        (GRUCell, "GRUCell", {}),
        (LSTMCell, "LSTMCell", {}),
    ],
)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_cells(torch, rng, cell, name, options, bias, batch):
    count = 2 if cell is LSTMCell else 1
    hx = [rng.normal(size=(*batch, 4)) for _ in range(count)]
    for state, call in (([], None), (hx, with_state)):
        ours, theirs = pair(
            torch,
            cell(3, 4, bias=bias, dtype=wf.float64, **options),
            getattr(torch.nn, name)(3, 4, bias=bias, **options),
            rng,
        )
        compare(torch, ours, theirs, [rng.normal(size=(*batch, 3)), *state], call)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_functions(torch, rng, batch_first, side):
    peer = torch.nn.utils.rnn
    arrays = [rng.normal(size=(n, 2)) for n in (2, 4, 1)]
    mine, other = [wf.tensor(a) for a in arrays], [torch.tensor(a) for a in arrays]
    options = {"batch_first": batch_first, "padding_value": -1.0, "padding_side": side}
    close(packing.pad_sequence(mine, **options), peer.pad_sequence(other, **options))
    ours = packing.pack_sequence(mine, enforce_sorted=False)
    theirs = peer.pack_sequence(other, enforce_sorted=False)
    for a, b in zip(ours, theirs, strict=True):
        assert np.array_equal(a.numpy(), b.numpy())
    pairs = zip(packing.unpack_sequence(ours), peer.unpack_sequence(theirs), strict=True)
    for a, b in pairs:
        close(a, b)


# -- attention -----------------------------------------------------------------------------------

ATTENTION = [
    {},
    {"batch_first": True},
    {"bias": False},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
    {"add_bias_kv": True, "add_zero_attn": True, "batch_first": True},
    {"kdim": 5},
    {"vdim": 3, "bias": False},
    {"kdim": 5, "vdim": 3, "add_bias_kv": True, "add_zero_attn": True},
]
FUTURE = np.triu(np.ones((3, 4), bool), 1)
PADDING = np.array([[False, False, False, True], [False, True, True, False]])
MASKS = [
    {},
    {"attn_mask": FUTURE},
    {"attn_mask": np.where(FUTURE, -np.inf, 0.0)},
    {"key_padding_mask": PADDING},
    {"key_padding_mask": PADDING, "attn_mask": FUTURE},
    {"attn_mask": np.linspace(-1, 1, 48).reshape(4, 3, 4)},
    {
        "attn_mask": np.linspace(-1, 1, 48).reshape(4, 3, 4),
        "key_padding_mask": np.where(PADDING, -np.inf, 0.0),
    },
]


@pytest.mark.parametrize("options", ATTENTION)
@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize(
    "wanted",
    [{}, {"average_attn_weights": False}, {"need_weights": False}],
)
def test_attention(torch, rng, options, masks, wanted):
    ours, theirs = pair(
        torch,
        MultiheadAttention(6, 2, dtype=wf.float64, **options),
        torch.nn.MultiheadAttention(6, 2, **options),
        rng,
    )
    sizes = [(3, 6), (4, options.get("kdim", 6)), (4, options.get("vdim", 6))]
    arrays = [rng.normal(size=(2, *size)) for size in sizes]
    if not options.get("batch_first"):
        arrays = [a.swapaxes(0, 1) for a in arrays]

    def call(net, *tensors, **given):
        return net(*tensors, **given, **wanted)

    compare(torch, ours, theirs, arrays, call, masks)


@pytest.mark.parametrize("batch", [(), (2,)])
def test_self_attention_and_causal_hint(torch, rng, batch):
    ours, theirs = pair(
        torch,
        MultiheadAttention(6, 2, dtype=wf.float64),
        torch.nn.MultiheadAttention(6, 2),
        rng,
    )

    def call(net, x, **masks):
        return net(x, x, x, is_causal=True, need_weights=False, **masks)

    future = {"attn_mask": np.triu(np.ones((4, 4), bool), 1)}
    compare(torch, ours, theirs, [rng.normal(size=(4, *batch, 6))], call, future)


# -- transformers --------------------------------------------------------------------------------

LAYERS = [
    {},
    {"activation": "gelu"},
    {"norm_first": True},
    {"batch_first": True},
    {"bias": False},
    {"layer_norm_eps": 0.1, "norm_first": True, "batch_first": True},
]
SQUARE = np.triu(np.ones((3, 3), bool), 1)
LAST = np.array([[False, False, True]] * 3)


def layers(torch, options):
    """Return encoder and decoder layers of both sides."""
    sizes = (6, 2, 5, 0.0)
    return (
        (
            TransformerEncoderLayer(*sizes, dtype=wf.float64, **options),
            torch.nn.TransformerEncoderLayer(*sizes, **options),
        ),
        (
            TransformerDecoderLayer(*sizes, dtype=wf.float64, **options),
            torch.nn.TransformerDecoderLayer(*sizes, **options),
        ),
    )


@pytest.mark.parametrize("options", LAYERS)
def test_transformer_layers(torch, rng, options):
    (encoder, peer_encoder), (decoder, peer_decoder) = layers(torch, options)
    x, memory = rng.normal(size=(3, 3, 6)), rng.normal(size=(3, 3, 6))
    pair(torch, encoder, peer_encoder, rng)
    masks = {"src_mask": SQUARE, "src_key_padding_mask": LAST}
    compare(torch, encoder, peer_encoder, [x], constants=masks)
    pair(torch, decoder, peer_decoder, rng)
    masks = {
        "tgt_mask": SQUARE,
        "memory_mask": SQUARE,
        "tgt_key_padding_mask": LAST,
        "memory_key_padding_mask": LAST,
    }
    compare(torch, decoder, peer_decoder, [x, memory], constants=masks)


@pytest.mark.parametrize("options", LAYERS)
def test_stacks(torch, rng, options):
    (encoder, peer_encoder), (decoder, peer_decoder) = layers(torch, options)
    x, memory = rng.normal(size=(3, 3, 6)), rng.normal(size=(3, 3, 6))
    ours, theirs = pair(
        torch,
        TransformerEncoder(encoder, 2),
        torch.nn.TransformerEncoder(peer_encoder, 2, enable_nested_tensor=False),
        rng,
    )
    compare(torch, ours, theirs, [x], constants={"mask": SQUARE})
    ours, theirs = pair(
        torch,
        TransformerDecoder(decoder, 2),
        torch.nn.TransformerDecoder(peer_decoder, 2),
        rng,
    )
    compare(torch, ours, theirs, [x, memory], constants={"tgt_mask": SQUARE})


@pytest.mark.parametrize("options", LAYERS)
def test_transformer(torch, rng, options):
    sizes = (6, 2, 1, 2, 5, 0.0)
    ours, theirs = pair(
        torch,
        Transformer(*sizes, dtype=wf.float64, **options),
        torch.nn.Transformer(*sizes, **options),
        rng,
    )
    x, y = rng.normal(size=(3, 3, 6)), rng.normal(size=(3, 3, 6))
    masks = {
        "tgt_mask": SQUARE,
        "src_key_padding_mask": LAST,
        "memory_key_padding_mask": LAST,
    }
    compare(torch, ours, theirs, [x, y], constants=masks)
    mask = Transformer.generate_square_subsequent_mask(4)
    close(mask, torch.nn.Transformer.generate_square_subsequent_mask(4))


# -- normalised weights --------------------------------------------------------------------------

BASES = [
    (lambda: Linear(3, 4, dtype=wf.float64), lambda t: t.nn.Linear(3, 4), (2, 3)),
    (lambda: Conv2d(3, 4, 2, dtype=wf.float64), lambda t: t.nn.Conv2d(3, 4, 2), (2, 3, 4, 4)),
    (
        lambda: ConvTranspose2d(3, 4, 2, dtype=wf.float64),
        lambda t: t.nn.ConvTranspose2d(3, 4, 2),
        (2, 3, 4, 4),
    ),
]


def same_state(torch, ours, theirs):
    state = {n: t.detach().numpy() for n, t in theirs.state_dict().items()}
    assert {n: a.shape for n, a in state.items()} == {
        n: t.shape for n, t in ours.state_dict().items()
    }
    ours.load_state_dict(state)


@pytest.mark.parametrize(("ours", "theirs", "shape"), BASES)
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(torch, rng, ours, theirs, shape, dim):
    ours = weight_norm(ours(), dim=dim)
    theirs = torch.nn.utils.weight_norm(theirs(torch).double(), dim=dim)
    same_state(torch, ours, theirs)
    compare(torch, ours, theirs, [rng.normal(size=shape)])
    close(remove_weight_norm(ours).weight, torch.nn.utils.remove_weight_norm(theirs).weight)


@pytest.mark.parametrize(("ours", "theirs", "shape"), BASES)
@pytest.mark.parametrize("options", [{}, {"n_power_iterations": 3}, {"dim": 1}, {"eps": 0.1}])
def test_spectral_norm(torch, rng, ours, theirs, shape, options):
    ours = spectral_norm(ours(), **options)
    theirs = torch.nn.utils.spectral_norm(theirs(torch).double(), **options)
    same_state(torch, ours, theirs)
    x = rng.normal(size=shape)
    for _ in range(3):
        compare(torch, ours, theirs, [x])
        for name, buffer in theirs.named_buffers():
            close(ours.state_dict()[name], buffer)
    close(ours.eval()(wf.tensor(x)), theirs.eval()(torch.tensor(x)))
    remove_spectral_norm(ours)
    torch.nn.utils.remove_spectral_norm(theirs)
    close(ours.weight, theirs.weight)
