"""Hold a layer against a reference in plain NumPy: values, and gradients by finite differences."""

import numpy as np

import weft as wf
from weft.caffe.catalogue import LAYERS
from weft.caffe.message import LayerParameter
from weft.caffe.text import read_message

RNG = np.random.default_rng(19)


def normal(*shape):
    return RNG.normal(size=shape)


def apart(*shape, gap=0.05):
    """Return numbers no two of which are near each other, nor near 0: no kink within a step."""
    count = int(np.prod(shape))
    values = (np.arange(count) - count / 2 + 0.37) * gap
    return RNG.permutation(values).reshape(shape)


def layer(text, *bottoms, phase=0):
    """Return the layer of a prototxt for bottoms like these; blobs are filled with noise."""
    param = read_message(text, LayerParameter)
    if not param.top:
        param.top.append("top")
    made = LAYERS[param.type](param, [np.shape(b) for b in bottoms], phase)
    for spec in made.blob_specs:
        value = wf.tensor(normal(*spec.shape) * 0.5)
        learned = spec.name in dict(made.named_parameters())
        setattr(made, spec.name, wf.nn.Parameter(value) if learned else value)
    return made


def blobs(made):
    return [made.blob(i).detach().numpy().copy() for i in range(len(made.blob_specs))]


def tops(result):
    return result if isinstance(result, tuple) else (result,)


def check(text, *bottoms, reference, phase=0, differentiable=None, made=None, gradients=True):
    """Compare a layer with a function of bottoms and blobs, in values and all gradients."""
    made = made or layer(text, *bottoms, phase=phase)
    bottoms = [np.asarray(b, np.float64) for b in bottoms]
    weights = blobs(made)
    inputs = [wf.tensor(b, requires_grad=True) for b in bottoms]
    found = tops(made(*inputs))
    expected = tops(reference(*bottoms, *weights))
    shapes = made.shapes_for([b.shape for b in bottoms])
    assert len(found) == len(expected)
    for y, e, shape in zip(found, expected, shapes, strict=True):
        assert y.shape == np.shape(e) == shape
        np.testing.assert_allclose(y.detach().numpy(), e, rtol=1e-9, atol=1e-9)
    if gradients:
        _check_gradients(made, inputs, bottoms, weights, found, reference, differentiable)
    return made


def _check_gradients(made, inputs, bottoms, weights, found, reference, differentiable):
    cotangents = [normal(*y.shape) for y in found]
    total = sum((y * wf.tensor(v)).sum() for y, v in zip(found, cotangents, strict=True))
    if not total.requires_grad:
        assert differentiable == ()
        return
    parameters = [made.blob(i) for i in range(len(weights))]
    if not all(p.requires_grad for p in parameters):  # statistics
        parameters = []
    grads = wf.gradients(total, [*inputs, *parameters])
    arrays = [*bottoms, *weights]
    chosen = range(len(bottoms)) if differentiable is None else differentiable
    for index, (array, grad) in enumerate(zip(arrays, grads, strict=False)):
        if index < len(bottoms) and index not in chosen:
            continue
        numeric = _numeric(array, arrays, cotangents, reference)
        got = np.zeros_like(array) if grad is None else grad.numpy()
        np.testing.assert_allclose(got, numeric, rtol=1e-5, atol=1e-6, err_msg=f"operand {index}")


def _numeric(array, arrays, cotangents, reference, eps=1e-6):
    def value():
        return sum(np.sum(v * y) for y, v in zip(tops(reference(*arrays)), cotangents, strict=True))

    made = np.zeros_like(array)
    for place in np.ndindex(array.shape):
        kept = array[place]
        array[place] = kept + eps
        above = value()
        array[place] = kept - eps
        made[place] = (above - value()) / (2 * eps)
        array[place] = kept
    return made
