"""What can be served, and what is said of the rest."""

import pytest

import weft as wf
from weft.serve.model import ServedModel, served_model


def test_graphs_and_their_files(tmp_path):
    with wf.Graph("net") as graph:
        x = wf.placeholder((None, 2), wf.float32, name="x")
        wf.tanh(x)
    graph.save(tmp_path / "net.weft")
    for given in (graph, tmp_path / "net.weft", str(tmp_path / "net.weft")):
        model = served_model(given, classes=["a"])
        assert [value.name for value in model.inputs] == ["x"]
        assert model.about == {"classes": ["a"]}
    assert served_model(model) is model
    assert isinstance(model, ServedModel)


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        (3, {}, "expected a module.*Received: int 3"),
        (wf.nn.Linear, {}, "expected a module"),
        (wf.nn.Linear(2, 3), {}, "say what an item of the model's input is"),
        (wf.nn.Linear(2, 3), {"inputs": ((2,), "float32"), "outputs": ["y"]}, "are for graphs"),
        (wf.nn.Identity(), {"inputs": ((2,), "float32"), "classes": 5}, "list of names.*: 5"),
        (wf.nn.Identity(), {"inputs": ((2,), "float32"), "classes": "ab"}, "list of names"),
        (wf.Graph(), {}, "computes nothing"),
        (wf.Graph(), {"inputs": ((2,), "float32")}, "a graph has placeholders"),
        ("nothing.weft", {}, "nothing.weft"),
    ],
)
def test_what_cannot_be_served(model, options, said):
    with pytest.raises((ValueError, TypeError, OSError), match=said):
        served_model(model, **options)
