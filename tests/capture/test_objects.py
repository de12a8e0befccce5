"""How the objects of a program are looked after when a function is recorded."""

from __future__ import annotations

import pytest

import weft as wf
from weft.capture.objects import ModuleTests, is_layer, is_opaque

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
