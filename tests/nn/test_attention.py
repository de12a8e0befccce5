"""Multi-head attention against its formula, written out in NumPy head by head."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.autodiff.check import check_grads
from weft.nn.attention import MultiheadAttention
from weft.nn.state import functional_call

BATCH, QUERIES, KEYS, SIZE, HEADS = 2, 3, 4, 6, 2


def array(tensor):
    return tensor.detach().numpy()


def projections(net):
    """Return the weights and biases of queries, keys and values."""
    if net.in_proj_weight is not None:
        weights = np.split(array(net.in_proj_weight), 3)
    else:
        weights = [array(getattr(net, f"{n}_proj_weight")) for n in "qkv"]
    biases = [0.0] * 3 if net.in_proj_bias is None else np.split(array(net.in_proj_bias), 3)
    return list(zip(weights, biases, strict=True))


def reference(net, q, k, v, scores_mask):
    """Return output and weights per head of one sequence; the mask (heads, L, S) is added."""
    q, k, v = (x @ w.T + b for x, (w, b) in zip((q, k, v), projections(net), strict=True))
    if net.bias_k is not None:
        k, v = np.vstack([k, array(net.bias_k)[0]]), np.vstack([v, array(net.bias_v)[0]])
    if net.add_zero_attn:
        k, v = (np.vstack([x, np.zeros((1, x.shape[1]))]) for x in (k, v))
    extra = len(k) - scores_mask.shape[-1]
    outputs, weights = [], []
    for h in range(net.num_heads):
        part = slice(h * net.head_dim, (h + 1) * net.head_dim)
        scores = q[:, part] @ k[:, part].T / np.sqrt(net.head_dim)
        scores += np.pad(scores_mask[h], ((0, 0), (0, extra)))
        e = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights.append(e / e.sum(axis=1, keepdims=True))
        outputs.append(weights[-1] @ v[:, part])
    bias = 0.0 if net.out_proj.bias is None else array(net.out_proj.bias)
    return np.hstack(outputs) @ array(net.out_proj.weight).T + bias, np.array(weights)


def inputs(rng, net):
    shapes = [(QUERIES, SIZE), (KEYS, net.kdim), (KEYS, net.vdim)]
    return [rng.normal(size=(BATCH, *shape)) for shape in shapes]


def laid_out(net, x):
    return wf.tensor(x if net.batch_first else x.swapaxes(0, 1))


def run(net, arrays, **options):
    output, weights = net(*(laid_out(net, x) for x in arrays), **options)
    output = array(output)
    return output if net.batch_first else output.swapaxes(0, 1), weights


def check(net, arrays, added=None, **options):
    """Compare with the reference, with and without weights; `added` is (batch, heads, L, S)."""
    if added is None:
        added = np.zeros((BATCH, HEADS, QUERIES, KEYS))
    output, averaged = run(net, arrays, **options)
    fast, nothing = run(net, arrays, need_weights=False, **options)
    _, each = run(net, arrays, average_attn_weights=False, **options)
    assert nothing is None
    for b in range(BATCH):
        expected, weights = reference(net, *(x[b] for x in arrays), added[b])
        np.testing.assert_allclose(output[b], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(fast[b], expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(array(each)[b], weights, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(array(averaged)[b], weights.mean(axis=0), rtol=1e-9, atol=1e-12)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


OPTIONS = [
    {},
    {"batch_first": True},
    {"bias": False},
    {"add_bias_kv": True},
    {"add_zero_attn": True, "batch_first": True},
    {"add_bias_kv": True, "add_zero_attn": True},
    {"kdim": 5},
    {"kdim": 5, "vdim": 3, "add_bias_kv": True, "bias": False},
]


def build(rng, **options):
    net = MultiheadAttention(SIZE, HEADS, dtype=wf.float64, **options)
    for parameter in net.parameters():  # biases start at zero, which would hide them
        with wf.no_grad():
            parameter.copy_(rng.normal(size=parameter.shape))
    return net


@pytest.mark.parametrize("options", OPTIONS)
def test_attention_follows_its_formula(rng, options):
    net = build(rng, **options)
    check(net, inputs(rng, net))


@pytest.mark.parametrize("options", OPTIONS)
def test_masks(rng, options):
    net = build(rng, **options)
    arrays = inputs(rng, net)
    padded = np.array([[False, False, True, True], [False, True, False, False]])
    later = np.triu(np.ones((QUERIES, KEYS), bool), 1)
    per_head = rng.normal(size=(BATCH * HEADS, QUERIES, KEYS))
    padding = np.where(padded, -np.inf, 0.0)[:, None, None, :]
    shape = (BATCH, HEADS, QUERIES, KEYS)
    causal = np.broadcast_to(np.where(later, -np.inf, 0.0), shape)
    check(net, arrays, np.broadcast_to(padding, shape), key_padding_mask=wf.tensor(padded))
    check(net, arrays, causal, attn_mask=wf.tensor(later))
    check(net, arrays, causal, attn_mask=wf.tensor(later), is_causal=True)
    check(net, arrays, causal, is_causal=True)
    check(net, arrays, causal, attn_mask=wf.tensor(np.where(later, -np.inf, 0.0)))
    check(net, arrays, per_head.reshape(shape), attn_mask=wf.tensor(per_head))
    both = {"key_padding_mask": wf.tensor(padded), "attn_mask": wf.tensor(later)}
    check(net, arrays, causal + padding, **both)
    check(net, arrays, causal + padding, key_padding_mask=wf.tensor(padded), is_causal=True)
    mixed = {"key_padding_mask": wf.tensor(padded), "attn_mask": wf.tensor(per_head)}
    check(net, arrays, per_head.reshape(shape) + padding, **mixed)


def test_self_attention_and_shared_keys_give_the_same_as_separate_inputs(rng):
    net = build(rng)
    x, y = wf.tensor(rng.normal(size=(4, 2, SIZE))), wf.tensor(rng.normal(size=(5, 2, SIZE)))
    for given, apart in [((x, x, x), (x, x + 0.0, x + 0.0)), ((x, y, y), (x, y, y + 0.0))]:
        np.testing.assert_allclose(array(net(*given)[0]), array(net(*apart)[0]), rtol=1e-10)


@pytest.mark.parametrize("batch_first", [False, True])
def test_input_without_batch(rng, batch_first):
    net = build(rng, batch_first=batch_first)
    q, k, v = (x[0] for x in inputs(rng, net))
    padded = np.array([False, True, False, False])
    added = np.broadcast_to(np.where(padded, -np.inf, 0.0), (HEADS, QUERIES, KEYS))
    expected, weights = reference(net, q, k, v, added)
    tensors = [wf.tensor(x) for x in (q, k, v)]
    output, averaged = net(*tensors, key_padding_mask=wf.tensor(padded))
    np.testing.assert_allclose(array(output), expected, rtol=1e-9)
    np.testing.assert_allclose(array(averaged), weights.mean(axis=0), rtol=1e-9)
    _, each = net(*tensors, key_padding_mask=wf.tensor(padded), average_attn_weights=False)
    np.testing.assert_allclose(array(each), weights, rtol=1e-9)


@pytest.mark.parametrize("options", [{}, {"kdim": 2, "add_bias_kv": True}])
@pytest.mark.parametrize("need_weights", [False, True])
def test_derivatives(rng, options, need_weights):
    net = MultiheadAttention(4, 2, dtype=wf.float64, **options)
    weights = {n: rng.normal(size=p.shape) for n, p in net.named_parameters()}
    arrays = [rng.normal(size=(3, 1, size)) for size in (4, net.kdim, 4)]
    mask = wf.tensor(np.array([[False, True, True], [False, False, True], [True, True, False]]))

    def outputs(arrays, weights):
        results = functional_call(net, weights, *arrays, attn_mask=mask, need_weights=need_weights)
        return [y for y in results if y is not None]

    check_grads(outputs, (arrays, weights), order=2)


@pytest.mark.parametrize("need_weights", [False, True])
def test_a_query_without_keys_gets_the_bias_and_no_nan(rng, need_weights):
    net = build(rng)
    x = wf.tensor(rng.normal(size=(3, 1, SIZE)), requires_grad=True)
    mask = wf.tensor(np.array([[True] * 3, [False] * 3, [False] * 3]))
    output, weights = net(x, x, x, attn_mask=mask, need_weights=need_weights)
    np.testing.assert_allclose(array(output)[0, 0], array(net.out_proj.bias))
    output.sum().backward()
    assert np.isfinite(x.grad.numpy()).all()
    if need_weights:
        assert not array(weights)[0, 0].any()


def test_dropout_drops_weights_in_training_only(rng):
    net = MultiheadAttention(SIZE, HEADS, dropout=0.5)
    x = wf.tensor(rng.normal(size=(20, 1, SIZE)).astype(np.float32))
    _, weights = net(x, x, x, average_attn_weights=False)
    assert 0.3 < (array(weights) == 0).mean() < 0.7
    first, second = (array(net(x, x, x, need_weights=False)[0]) for _ in range(2))
    assert not np.array_equal(first, second)
    net.eval()
    assert (array(net(x, x, x)[1]) > 0).all()


def test_parameter_names_and_first_values():
    net = MultiheadAttention(SIZE, HEADS, add_bias_kv=True)
    shapes = {name: p.shape for name, p in net.named_parameters()}
    assert shapes == {
        "in_proj_weight": (18, 6),
        "in_proj_bias": (18,),
        "bias_k": (1, 1, 6),
        "bias_v": (1, 1, 6),
        "out_proj.weight": (6, 6),
        "out_proj.bias": (6,),
    }
    assert not array(net.in_proj_bias).any()
    assert not array(net.out_proj.bias).any()
    bound = np.sqrt(6 / (18 + 6))
    assert bound / 2 < np.abs(array(net.in_proj_weight)).max() <= bound
    separate = MultiheadAttention(SIZE, HEADS, kdim=5, bias=False)
    assert [n for n, _ in separate.named_parameters()] == [
        "q_proj_weight",
        "k_proj_weight",
        "v_proj_weight",
        "out_proj.weight",
    ]


def test_no_keys_and_no_batch_elements():
    net = MultiheadAttention(SIZE, HEADS)
    output, weights = net(wf.ones(3, 2, SIZE), wf.ones(0, 2, SIZE), wf.ones(0, 2, SIZE))
    assert not array(output).any()
    assert weights.shape == (2, 3, 0)
    open_net = MultiheadAttention(SIZE, HEADS, add_zero_attn=True)
    _, weights = open_net(wf.ones(3, 2, SIZE), wf.ones(0, 2, SIZE), wf.ones(0, 2, SIZE))
    assert np.array_equal(array(weights), np.ones((2, 3, 1)))
    empty = wf.ones(3, 0, SIZE)
    assert net(empty, empty, empty, need_weights=False)[0].shape == (3, 0, SIZE)


def zeros(*shape):
    return wf.zeros(*shape)


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: MultiheadAttention(6, 4), ValueError, "divisible by num_heads.*6 and 4"),
        (lambda: MultiheadAttention(6, 0), ValueError, "num_heads must be at least 1"),
        (lambda: MultiheadAttention(6, 2, dropout=-1), ValueError, "dropout"),
        (lambda: attend(zeros(3, 6), zeros(3, 1, 6)), ValueError, "key must have shape"),
        (lambda: attend(zeros(3, 1, 5), zeros(3, 1, 6)), ValueError, r"query.*\(3, 1, 5\)"),
        (lambda: attend(zeros(3, 1, 6), zeros(3, 2, 6)), ValueError, "one batch size"),
        (lambda: attend(np.zeros((3, 6)), zeros(3, 6)), TypeError, "query must be a tensor"),
        (
            lambda: attend(zeros(3, 1, 6), zeros(3, 1, 6), zeros(4, 1, 6)),
            ValueError,
            "key and value must have one length",
        ),
        (
            lambda: attend(zeros(3, 1, 6), zeros(4, 1, 6), attn_mask=zeros(4, 3)),
            ValueError,
            r"attn_mask must have shape \(3, 4\) or \(2, 3, 4\). Received: \(4, 3\)",
        ),
        (
            lambda: attend(zeros(3, 1, 6), zeros(4, 1, 6), key_padding_mask=zeros(4)),
            ValueError,
            r"key_padding_mask must have shape \(1, 4\)",
        ),
        (
            lambda: attend(zeros(1, 1, 6), zeros(1, 1, 6), attn_mask=wf.tensor([[1]])),
            TypeError,
            "truth values .True = must not look. or floats.*int64",
        ),
        (lambda: attend(zeros(1, 6), zeros(1, 6), attn_mask=[[1.0]]), TypeError, "be a tensor"),
    ],
)
def test_bad_input_is_explained(build, error, match):
    with pytest.raises(error, match=match):
        build()


def attend(query, key, value=None, **options):
    return MultiheadAttention(6, 2)(query, key, key if value is None else value, **options)
