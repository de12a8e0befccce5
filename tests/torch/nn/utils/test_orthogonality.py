"""Orthogonal weights: orthonormal at all times, trained, assigned, kept in states."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from weft import torch
from weft.torch import nn
from weft.torch.nn.utils.parametrizations import orthogonal

MAPS = ("matrix_exp", "cayley", "householder")
SHAPES = ((4, 4), (6, 3), (3, 6), (2, 4, 3))


def holding(*shape):
    module = nn.Module()
    module.weight = nn.Parameter(torch.randn(*shape, dtype=torch.float64))
    return module


def assert_orthogonal(weight):
    tall = weight if weight.shape[-2] >= weight.shape[-1] else weight.mT
    gram = (tall.mT @ tall).detach().numpy()
    np.testing.assert_allclose(
        gram, np.broadcast_to(np.eye(tall.shape[-1]), gram.shape), atol=1e-12
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("chosen", MAPS)
@pytest.mark.parametrize("with_base", [True, False])
def test_weights_stay_orthogonal_in_training(shape, chosen, with_base):
    module = orthogonal(holding(*shape), "weight", chosen, use_trivialization=with_base)
    assert_orthogonal(module.weight)
    wanted = torch.randn(*shape, dtype=torch.float64)
    optimizer = torch.optim.SGD(module.parameters(), 0.02)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (module.weight - wanted).square().sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert_orthogonal(module.weight)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("chosen", MAPS)
@pytest.mark.parametrize("with_base", [True, False])
def test_orthogonal_weights_can_be_assigned(shape, chosen, with_base):
    module = orthogonal(holding(*shape), "weight", chosen, use_trivialization=with_base)
    wanted = orthogonal(holding(*shape)).weight.detach().clone()
    if chosen == "householder" or with_base:
        module.weight = wanted
        np.testing.assert_allclose(module.weight.detach(), wanted, atol=1e-12)
        with pytest.raises(ValueError, match="Expected a matrix or batch of matrices of shape"):
            module.weight = wanted[..., :1]
        return
    with pytest.raises(NotImplementedError, match="It is not possible to assign"):
        module.weight = wanted


def test_the_exponential_and_cayley_maps_are_those_of_the_skew_symmetric_matrix():
    module = holding(2, 2)
    angle = 0.3
    for chosen, turn in (("matrix_exp", angle), ("cayley", 2 * np.arctan(angle / 2))):
        turned = orthogonal(copy.deepcopy(module), "weight", chosen, use_trivialization=False)
        with torch.no_grad():
            turned.parametrizations.weight.original.copy_(torch.tensor([[7.0, 9.0], [angle, 5.0]]))
        expected = [[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]
        np.testing.assert_allclose(turned.weight.detach(), expected, atol=1e-12)


def test_the_base_is_part_of_the_state():
    layer, other = orthogonal(nn.Linear(3, 3)), orthogonal(nn.Linear(3, 3))
    names = ["bias", "parametrizations.weight.original", "parametrizations.weight.0.base"]
    assert list(layer.state_dict()) == names
    other.load_state_dict(layer.state_dict())
    x = torch.randn(2, 3)
    np.testing.assert_allclose(other(x).detach(), layer(x).detach(), rtol=1e-6)
    np.testing.assert_allclose(copy.deepcopy(layer)(x).detach(), layer(x).detach(), rtol=1e-6)


def test_a_compiled_step_is_the_eager_one():
    found = []
    for run in (lambda f: f, torch.compile):
        torch.manual_seed(0)
        layer = orthogonal(nn.Linear(3, 5))
        optimizer = torch.optim.Adam(layer.parameters(), 0.1)

        @run
        def step(x, layer=layer, optimizer=optimizer):
            optimizer.zero_grad()
            loss = layer(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        found.append([step(torch.ones(2, 3)).item() for _ in range(4)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-5)


def test_what_cannot_be_orthogonal_is_refused():
    with pytest.raises(ValueError, match="Got a tensor of 1 dimensions"):
        orthogonal(nn.Linear(2, 2), "bias")
    with pytest.raises(ValueError, match="has no parameter or buffer with name 'nothing'"):
        orthogonal(nn.Linear(2, 2), "nothing")
    with pytest.raises(ValueError, match="Got: rotations"):
        orthogonal(nn.Linear(2, 2), orthogonal_map="rotations")
