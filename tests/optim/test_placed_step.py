"""Steps of optimizers on a device: the same weights, and nothing copied to the host."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.opaque import no_copies, opaque  # noqa: F401  (opaque is a fixture)
from weft.core.device_array import is_placed
from weft.core.errors import GradientError
from weft.optim import transform as tx

pytestmark = pytest.mark.usefixtures("opaque")
PLACE = "opaque:0"
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)

OPTIMIZERS = {
    "SGD": lambda p: wf.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda p: wf.optim.Adam(p, 0.01, amsgrad=True),
    "LAMB": lambda p: wf.optim.LAMB(p, 0.01),
    "own": lambda p: wf.optim.TransformOptimizer(
        p,
        lambda group: tx.chain(tx.clip_by_global_norm(1.0), tx.scale(-group["lr"])),
        lr=0.5,
    ),
    "LBFGS": lambda p: wf.optim.LBFGS(p, max_iter=3),
}


def train(place, make, count=3):
    wf.manual_seed(0)
    net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.Tanh(), wf.nn.Linear(4, 2)).to(place)
    optimizer, average = make(net.parameters()), wf.optim.EMA(net, 0.5)
    x = wf.tensor(X, device=place)

    def closure():
        optimizer.zero_grad()
        loss = (net(x) ** 2).mean()
        loss.backward()
        wf.optim.clip_grad_norm_(net.parameters(), 1.0)
        return loss

    losses = []
    for _ in range(count):
        losses.append(optimizer.step(closure).detach())
        average.update()
    return losses, net, optimizer, average


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_are_those_of_the_cpu(name):
    here = train("cpu", OPTIMIZERS[name])
    if name == "LBFGS":  # which steps by values, on the host
        there = train(PLACE, OPTIMIZERS[name])
    else:
        with no_copies():
            there = train(PLACE, OPTIMIZERS[name])
    for a, b in zip(here[0], there[0], strict=True):
        np.testing.assert_allclose(b.item(), a.item(), rtol=1e-5)
    for p, q in zip(here[1].parameters(), there[1].parameters(), strict=True):
        assert q.device == PLACE
        np.testing.assert_allclose(q.numpy(), p.numpy(), rtol=1e-4, atol=1e-6)
    with there[3].applied():
        moved = there[1][0].weight.numpy()
    with here[3].applied():
        np.testing.assert_allclose(moved, here[1][0].weight.numpy(), rtol=1e-4, atol=1e-6)


def test_states_are_saved_from_a_device_and_loaded_to_another(tmp_path):
    _, net, optimizer, average = train(PLACE, OPTIMIZERS["Adam"])
    wf.io.save_state(tmp_path / "state", {"net": net.state_dict(), "opt": optimizer.state_dict()})
    saved = wf.io.load_state(tmp_path / "state")
    assert saved["net"]["0.weight"].device == "cpu"
    for place in ("cpu", "opaque:1"):
        _, other, again, _ = train(place, OPTIMIZERS["Adam"], 1)
        other.load_state_dict(saved["net"])
        again.load_state_dict(saved["opt"])
        assert other[0].weight.device == place
        np.testing.assert_array_equal(other[0].weight.numpy(), net[0].weight.numpy())
        x = wf.tensor(X, device=place)
        again.minimize((other(x) ** 2).mean())
        slot = again.state[other[0].weight]
        assert slot["step"] == 4
        assert is_placed(slot["exp_avg"]) == (place != "cpu")
    state = average.state_dict()
    average.load_state_dict(state)
    average.update()
    assert average.values["0.weight"].device == PLACE


def test_a_module_that_moves_takes_gradients_and_slots_with_it():
    _, net, optimizer, _ = train(PLACE, OPTIMIZERS["SGD"])
    net.to("cpu")
    assert net[0].weight.grad.device == "cpu"
    optimizer.step()
    assert not is_placed(optimizer.state[net[0].weight]["momentum_buffer"])
    net.to("opaque:1", wf.float64)
    assert net[0].weight.grad.device == "opaque:1"
    assert net[0].weight.dtype == wf.float64


def test_sparse_adam_says_that_there_are_no_gradients_by_rows():
    table = wf.nn.Embedding(4, 2, sparse=True).to(PLACE)
    optimizer = wf.optim.SparseAdam(table.parameters())
    table(wf.tensor([1, 2], device=PLACE)).sum().backward()
    with pytest.raises(GradientError, match="on 'opaque:0' all are dense; leave the layer"):
        optimizer.step()
