"""Sizes that are given for those a graph does not know."""

import pytest

import weft as wf
from weft.core.errors import ArgumentError, ArgumentTypeError, UnknownSizeError
from weft.passes.sizes import known_shape, known_sizes


def build():
    with wf.Graph() as graph:
        x = wf.placeholder(("batch", 3), wf.float32, name="x")
        y = wf.concat([x, x], 0)
    return graph, x, y


@pytest.mark.parametrize("key", ["name", "placeholder", "value", "text"])
def test_sizes_are_given_by_name_or_with_a_placeholder(key):
    graph, x, y = build()
    given = {
        "name": {"batch": 4},
        "placeholder": {x: (4, 3)},
        "value": {x.value: [4, 3]},
        "text": {"x": (4, 3)},
    }
    known = known_sizes(graph, given[key], "f")
    assert known_shape(x.value, known) == (4, 3)
    assert known_shape(y.value, known) == (8, 3)


def test_sizes_inside_of_control_flow_have_names_too():
    with wf.Graph() as graph:
        x = wf.placeholder(("n",), wf.float32)
        wf.cond(x.sum() > 0, lambda v: v * 2.0, wf.exp, x)
    (value,) = known_sizes(graph, {"n": 0}, "f").values()
    assert value == 0


def test_mistakes_are_explained():
    graph, x, y = build()
    assert known_sizes(graph, None, "f") == {}
    with pytest.raises(ArgumentTypeError, match="f: sizes must be a dictionary"):
        known_sizes(graph, 3, "f")
    with pytest.raises(ArgumentError, match="no unknown size is named 'time'; there are: batch"):
        known_sizes(graph, {"time": 3}, "f")
    with pytest.raises(ArgumentError, match="must not be negative"):
        known_sizes(graph, {"batch": -1}, "f")
    with pytest.raises(ArgumentError, match="needs a shape of that form"):
        known_sizes(graph, {x: (4, 2)}, "f")
    with pytest.raises(ArgumentTypeError, match="by a name or a placeholder"):
        known_sizes(graph, {1.5: (4, 3)}, "f")
    with pytest.raises(UnknownSizeError, match=r"give it as sizes=\{'batch': ...\}"):
        known_shape(y.value, {})
