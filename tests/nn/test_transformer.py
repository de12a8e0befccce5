"""Transformer layers and stacks, written out with the functions that they are made of."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import weft as wf
from weft.autodiff.check import check_grads
from weft.nn.norm import LayerNorm
from weft.nn.positional import PositionalEncoding, sinusoidal_positions
from weft.nn.state import functional_call
from weft.nn.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)

SIZES = {"d_model": 8, "nhead": 2, "dim_feedforward": 5}


def array(tensor):
    return tensor.detach().numpy()


def normal(rng, *shape):
    return wf.tensor(rng.normal(size=shape))


def randomize(rng, net):
    with wf.no_grad():
        for parameter in net.parameters():
            parameter.copy_(rng.normal(size=parameter.shape) * 0.5)
    return net


def layer_norm(x, norm):
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + norm.eps)
    return y * array(norm.weight) + (0.0 if norm.bias is None else array(norm.bias))


def linear(x, layer):
    return x @ array(layer.weight).T + (0.0 if layer.bias is None else array(layer.bias))


def attend(attention, x, memory, **masks):
    x, memory = wf.tensor(x), wf.tensor(memory)
    return array(attention(x, memory, memory, **masks)[0])


def reference_layer(layer, x, blocks, activate):
    """Return x after residual blocks, with the norm where the layer's options put it."""
    blocks = [*blocks, lambda y: linear(activate(linear(y, layer.linear1)), layer.linear2)]
    for i, block in enumerate(blocks, 1):
        norm = getattr(layer, f"norm{i}")
        x = x + block(layer_norm(x, norm)) if layer.norm_first else layer_norm(x + block(x), norm)
    return x


def relu(x):
    return x.clip(0)


def gelu(x):
    return array(wf.gelu(wf.tensor(x)))


@pytest.fixture
def rng():
    return np.random.default_rng(0)


OPTIONS = [
    ({}, relu),
    ({"activation": "gelu", "norm_first": True}, gelu),
    ({"activation": wf.tanh, "bias": False}, np.tanh),
    ({"batch_first": True, "layer_norm_eps": 0.1}, relu),
]


@pytest.mark.parametrize(("options", "activate"), OPTIONS)
def test_encoder_layer(rng, options, activate):
    layer = TransformerEncoderLayer(**SIZES, dropout=0.0, dtype=wf.float64, **options)
    randomize(rng, layer)
    x = rng.normal(size=(4, 4, 8))
    padding = wf.tensor(np.array([[False, False, False, True]] * 4))
    later = wf.tensor(np.triu(np.ones((4, 4), bool), 1))
    masks = {"attn_mask": later, "key_padding_mask": padding}
    got = layer(wf.tensor(x), src_mask=later, src_key_padding_mask=padding)
    blocks = [lambda y: attend(layer.self_attn, y, y, **masks)]
    np.testing.assert_allclose(array(got), reference_layer(layer, x, blocks, activate), rtol=1e-9)
    causal = layer(wf.tensor(x), src_key_padding_mask=padding, is_causal=True)
    np.testing.assert_allclose(array(causal), array(got), rtol=1e-9)


@pytest.mark.parametrize(("options", "activate"), OPTIONS)
def test_decoder_layer(rng, options, activate):
    layer = TransformerDecoderLayer(**SIZES, dropout=0.0, dtype=wf.float64, **options)
    randomize(rng, layer)
    x, memory = rng.normal(size=(3, 3, 8)), rng.normal(size=(3, 3, 8))
    later = wf.tensor(np.triu(np.ones((3, 3), bool), 1))
    seen = wf.tensor(rng.normal(size=(3, 3)))
    padding = wf.tensor(np.array([[False, True, False]] * 3))
    last = wf.tensor(np.array([[False, False, True]] * 3))
    got = layer(
        wf.tensor(x),
        wf.tensor(memory),
        tgt_mask=later,
        memory_mask=seen,
        tgt_key_padding_mask=last,
        memory_key_padding_mask=padding,
    )
    blocks = [
        lambda y: attend(layer.self_attn, y, y, attn_mask=later, key_padding_mask=last),
        lambda y: attend(layer.multihead_attn, y, memory, attn_mask=seen, key_padding_mask=padding),
    ]
    np.testing.assert_allclose(array(got), reference_layer(layer, x, blocks, activate), rtol=1e-9)


def test_stacks_run_their_layers_and_the_last_norm(rng):
    layer = TransformerEncoderLayer(**SIZES, dropout=0.0, dtype=wf.float64)
    encoder = randomize(rng, TransformerEncoder(layer, 3, LayerNorm(8, dtype=wf.float64)))
    x = normal(rng, 4, 2, 8)
    mask = Transformer.generate_square_subsequent_mask(4, dtype=wf.float64)
    expected = x
    for one in encoder.layers:
        expected = one(expected, mask)
    got = encoder(x, mask, is_causal=True)
    np.testing.assert_allclose(array(got), array(encoder.norm(expected)), rtol=1e-12)
    assert len({id(one) for one in encoder.layers} | {id(layer)}) == 4

    step = TransformerDecoderLayer(**SIZES, dropout=0.0, dtype=wf.float64)
    decoder = randomize(rng, TransformerDecoder(step, 2))
    y, memory = normal(rng, 3, 2, 8), got.detach()
    first, second = decoder.layers
    expected = second(first(y, memory, tgt_is_causal=True), memory, tgt_is_causal=True)
    np.testing.assert_allclose(array(decoder(y, memory, tgt_is_causal=True)), array(expected))
    assert decoder.norm is None


def test_copies_of_a_layer_begin_equal_and_train_apart():
    encoder = TransformerEncoder(TransformerEncoderLayer(**SIZES), 2)
    first, second = encoder.layers
    assert np.array_equal(array(first.linear1.weight), array(second.linear1.weight))
    assert first.linear1.weight is not second.linear1.weight
    assert len(list(encoder.parameters())) == 2 * len(list(first.parameters()))


@pytest.mark.parametrize("batch_first", [False, True])
def test_transformer_is_encoder_then_decoder(rng, batch_first):
    model = Transformer(
        8, 2, 1, 2, 5, dropout=0.0, batch_first=batch_first, norm_first=True, dtype=wf.float64
    )
    src, tgt = normal(rng, 3, 3, 8), normal(rng, 3, 3, 8)
    mask = wf.tensor(np.triu(np.ones((3, 3), bool), 1))
    padding = wf.tensor(np.array([[False, False, True]] * 3))
    got = model(
        src,
        tgt,
        tgt_mask=mask,
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    memory = model.encoder(src, src_key_padding_mask=padding)
    expected = model.decoder(tgt, memory, mask, memory_key_padding_mask=padding)
    np.testing.assert_allclose(array(got), array(expected), rtol=1e-12)
    assert model(src[0], tgt[0]).shape == (3, 8)


def test_own_stacks_take_the_places_of_the_defaults(rng):
    encoder = TransformerEncoder(TransformerEncoderLayer(**SIZES), 1)
    model = Transformer(8, 2, 1, 1, 5, custom_encoder=encoder)
    assert model.encoder is encoder
    assert isinstance(model.decoder.norm, LayerNorm)


def test_matrices_start_by_glorot():
    model = Transformer(8, 2, 1, 1, 5)
    weight = model.encoder.layers[0].linear1.weight
    assert np.abs(array(weight)).max() <= np.sqrt(6 / 13)
    assert np.abs(array(weight)).max() > 1 / np.sqrt(8)  # beyond Linear's own bound


def test_derivatives(rng):
    layer = TransformerDecoderLayer(4, 2, 3, dropout=0.0, activation="gelu", dtype=wf.float64)
    weights = {name: rng.normal(size=p.shape) for name, p in layer.named_parameters()}
    x, memory = rng.normal(size=(2, 1, 4)), rng.normal(size=(3, 1, 4))

    def run(x, memory, weights):
        return functional_call(layer, weights, x, memory, tgt_is_causal=True)

    check_grads(run, (x, memory, weights), order=1)


def test_names_and_their_order():
    names = [name for name, _ in TransformerDecoderLayer(**SIZES).named_parameters()]
    assert names[:4] == [
        "self_attn.in_proj_weight",
        "self_attn.in_proj_bias",
        "self_attn.out_proj.weight",
        "self_attn.out_proj.bias",
    ]
    assert names[8:12] == ["linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias"]
    assert names[12:] == [f"norm{i}.{kind}" for i in (1, 2, 3) for kind in ("weight", "bias")]
    bare = [name for name, _ in TransformerEncoderLayer(**SIZES, bias=False).named_parameters()]
    assert not [name for name in bare if "bias" in name]


def test_dropout_only_in_training(rng):
    layer = TransformerEncoderLayer(**SIZES, dropout=0.5)
    x = wf.tensor(rng.normal(size=(3, 2, 8)).astype(np.float32))
    assert not np.array_equal(array(layer(x)), array(layer(x)))
    layer.eval()
    assert np.array_equal(array(layer(x)), array(layer(x)))


def test_copies_and_pickles(rng):
    model = Transformer(8, 2, 1, 1, 5, activation="gelu").eval()
    x = wf.tensor(rng.normal(size=(3, 2, 8)).astype(np.float32))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.array_equal(array(other(x, x)), array(model(x, x)))


def test_square_subsequent_mask():
    mask = Transformer.generate_square_subsequent_mask(3)
    assert mask.tolist() == [[0, -np.inf, -np.inf], [0, 0, -np.inf], [0, 0, 0]]
    assert mask.dtype == wf.float32
    assert Transformer.generate_square_subsequent_mask(0).shape == (0, 0)


# -- positions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 6, 7])
def test_positions_follow_the_paper(size):
    table = sinusoidal_positions(5, size, dtype=wf.float64).numpy()
    for t in range(5):
        for j in range(size):
            angle = t / 10000 ** ((j - j % 2) / size)
            np.testing.assert_allclose(table[t, j], (np.sin, np.cos)[j % 2](angle), atol=1e-12)


@pytest.mark.parametrize("batch_first", [False, True])
def test_positions_are_added_along_time(rng, batch_first):
    encoding = PositionalEncoding(6, dropout=0.0, max_len=4, batch_first=batch_first)
    table = sinusoidal_positions(3, 6).numpy()
    shape = (2, 3, 6) if batch_first else (3, 2, 6)
    got = encoding(wf.zeros(*shape)).numpy()
    assert np.array_equal(got[0] if batch_first else got[:, 0], table)
    assert np.array_equal(encoding(wf.zeros(3, 6)).numpy(), table)
    assert not encoding.state_dict()
    with pytest.raises(ValueError, match=r"max_len=4.*length 5"):
        encoding(wf.zeros(5, 6))
    with pytest.raises(ValueError, match=r"6 features.*\(3, 5\)"):
        encoding(wf.zeros(3, 5))


def test_position_dropout(rng):
    encoding = PositionalEncoding(64, dropout=0.5)
    assert 0.2 < (encoding(wf.ones(20, 64)).numpy() == 0).mean() < 0.8
    assert (encoding.eval()(wf.full((20, 64), 2.0)).numpy() != 0).all()


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: TransformerEncoderLayer(8, 3), ValueError, "divisible by num_heads"),
        (lambda: TransformerEncoderLayer(8, 2, activation="elu"), ValueError, "'relu' or 'gelu'"),
        (lambda: TransformerEncoderLayer(8, 2, activation=3), TypeError, "or a function.*3"),
        (lambda: TransformerEncoder(TransformerEncoderLayer, 2), TypeError, "must be a Module"),
        (
            lambda: TransformerEncoder(TransformerEncoderLayer(**SIZES), -1),
            ValueError,
            "num_layers must be at least 0",
        ),
        (
            lambda: Transformer(8, 2, 1, 1, 5)(wf.zeros(3, 2, 8), wf.zeros(3, 1, 8)),
            ValueError,
            r"one batch size.*\(3, 2, 8\) and \(3, 1, 8\)",
        ),
        (
            lambda: Transformer(8, 2, 1, 1, 5)(wf.zeros(3, 2, 8), wf.zeros(3, 2, 7)),
            ValueError,
            "d_model=8",
        ),
    ],
)
def test_bad_input_is_explained(build, error, match):
    with pytest.raises(error, match=match):
        build()
