"""How the objects of a program are looked after when a function is recorded."""

from __future__ import annotations

import pytest

import weft as wf
from weft.capture.objects import ModuleTests, is_layer, is_opaque
from weft.capture.watch.places import AttributePlace

LAYER_CHANGES = {
    "mode": lambda model: model.eval(),
    "attribute": lambda model: setattr(model[1], "p", 0.25),
    "parameter": lambda model: setattr(model[0], "bias", None),
    "layer": lambda model: setattr(model, "1", wf.nn.Identity()),
    "hook": lambda model: model[0].register_forward_hook(lambda *_: None),
    "forward": lambda model: setattr(model[0], "forward", lambda x: x),
}


@pytest.mark.parametrize("case", LAYER_CHANGES)
def test_layers_are_guarded(case):
    model, x = wf.nn.Sequential(wf.nn.Linear(2, 2), wf.nn.Dropout(0.5)), wf.ones(1, 2)
    tests = ModuleTests()
    tests.note(model)
    tests.begin()
    model(x)
    assert tests.hold()
    LAYER_CHANGES[case](model)
    assert not tests.hold()


def test_changes_that_change_nothing_hold():
    model = wf.nn.Sequential(wf.nn.Linear(2, 2), wf.nn.Dropout(0.5))
    tests = ModuleTests()
    tests.note(model)
    tests.begin()
    model.eval()
    model.train()
    assert tests.hold()


def test_modules_of_the_users_are_watched_themselves():
    class Own(wf.nn.Module):
        def forward(self, x):
            return x

    assert not is_layer(Own())
    assert is_layer(wf.nn.Linear(2, 2))
    assert is_opaque(wf.nn.Linear(2, 2))
    assert not is_opaque(Own())


def test_what_training_leaves_at_a_module_is_none_of_its_parts():
    x = wf.ones(6, 2)
    model = wf.nn.Sequential(wf.nn.Linear(2, 1))
    model.compile(wf.optim.SGD(model.parameters(), lr=0.1), "mse")
    tests = ModuleTests()
    tests.note(model)
    tests.begin()
    model.fit(x, x[:, :1], epochs=1, verbose=0)
    assert tests.hold()


class Centered(wf.nn.Module):
    """Subtracts a running mean, which is another tensor after each call."""

    def __init__(self):
        super().__init__()
        self.linear = wf.nn.Linear(2, 2)
        self.register_buffer("mean", wf.zeros(2))

    def forward(self, x):
        x = self.linear(x)
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.detach().mean(0)
        return x - self.mean


BUFFER_CHANGES = {
    "parameter": lambda net: setattr(net.linear, "weight", wf.nn.Parameter(wf.ones(2, 2))),
    "deleted": lambda net: delattr(net, "mean"),
    "another buffer": lambda net: net.register_buffer("more", wf.zeros(2)),
}


@pytest.mark.parametrize("case", BUFFER_CHANGES)
def test_what_is_fed_may_be_another_and_the_rest_may_not(case):
    net = Centered()
    tests = ModuleTests([AttributePlace(net, "mean", "net.mean")])
    tests.note(net)
    tests.begin()
    net.mean = wf.ones(2)
    assert tests.hold()
    assert list(tests.replaced()) == []
    BUFFER_CHANGES[case](net)
    assert not tests.hold()


def test_parts_that_are_replaced_are_told():
    net, tests = Centered(), ModuleTests()
    tests.note(net)
    net.mean = wf.ones(2)
    assert list(tests.replaced()) == [(net, "mean")]


@pytest.mark.parametrize("around", [lambda net: net, wf.nn.Sequential], ids=["alone", "in a layer"])
def test_functions_that_replace_buffers_are_recorded_once(around):
    net = around(Centered())
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @wf.jit
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(6):
        step(wf.ones(3, 2))
    assert step.stats()["recordings"] == 1


def test_buffers_that_others_replace_are_fed_once_that_is_seen():
    net = Centered().eval()
    evaluate = wf.jit(net)
    for value in range(5):
        net.mean = wf.full((2,), float(value))
        x = wf.ones(3, 2)
        assert evaluate(x).tolist() == net(x).tolist()
    assert evaluate.stats()["recordings"] == 2


def test_modules_depend_on_the_attributes_that_are_read_beside_their_mode():
    net = Centered().eval()
    evaluate = wf.jit(net)
    for note in range(3):
        net.note = f"epoch {note}"
        evaluate(wf.ones(3, 2))
    assert evaluate.stats()["recordings"] == 1
