"""Pictures of what eager tensors were computed from."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, ArgumentTypeError, GradientError
from weft.viz.history import bytes_text, history_picture


def computed():
    net = wf.nn.Sequential(wf.nn.Linear(3, 4), wf.nn.Tanh(), wf.nn.Linear(4, 1))
    return net, (net(wf.ones(2, 3)) ** 2).sum()


def test_a_picture_shows_operations_types_lines_and_bytes():
    net, loss = computed()
    picture = history_picture([loss], dict(net.named_parameters()))
    boxes = {box.title: box for box in picture.root.children}
    assert {"0.weight", "0.bias", "2.weight", "2.bias", "linear", "tanh", "result"} <= set(boxes)
    tanh = boxes["tanh"].details
    assert tanh[:2] == ("float32[2, 4]", "keeps 32 B")
    assert tanh[2].startswith("test_history.py:")
    assert boxes["0.weight"].details[0] == "float32[4, 3]"
    assert boxes["result"].details[1].endswith("kept in all")
    ends = {(a.title, b.title) for a, b in picture.edges}
    assert ("0.weight", "linear") in ends
    assert ("linear", "tanh") in ends


def test_formats(tmp_path):
    _, loss = computed()
    assert wf.draw(loss).startswith('digraph "history"')
    for name in ("h.svg", "h.png", "h.dot"):
        wf.draw(loss, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 500
    assert (tmp_path / "h.png").read_bytes()[:4] == b"\x89PNG"


def test_several_tensors_and_outputs():
    x = wf.tensor(np.eye(3), requires_grad=True)
    values, vectors = wf.linalg.eigh(x)
    text = wf.draw([values.sum(), vectors.sum()])
    assert "result 1" in text
    assert text.count('label="eigh') == 1


def test_symbols_show_what_they_need():
    with wf.Graph():
        x = wf.placeholder((3,), wf.float32, name="x")
        y = x * 2
        z = y + 1
    assert "add" in wf.draw(z)
    assert "add" not in wf.draw(y)


def test_mistakes_are_explained():
    _, loss = computed()
    with pytest.raises(GradientError, match="has no history"):
        wf.draw(wf.ones(2))
    with pytest.raises(ArgumentTypeError, match="a tensor with history"):
        wf.draw(3)
    with pytest.raises(ArgumentError, match="depth are for graphs"):
        wf.draw(loss, depth=2)
    with pytest.raises(ArgumentTypeError, match="names must be tensors"):
        wf.draw(loss, names={"a": 1})
    with pytest.raises(ArgumentError, match="a graph has its own"):
        wf.draw(wf.Graph(), names={})


def test_bytes_are_readable():
    assert [bytes_text(n) for n in (12, 1500, 2_000_000)] == ["12 B", "1.5 kB", "2.0 MB"]
