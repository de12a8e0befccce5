"""Which values depend on which: where derivatives pass."""

import weft as wf
from weft.graph.paths import lead, reach


def names(values, known):
    return {name for name, symbol in known.items() if symbol.value in values}


def build():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32)
        y = wf.placeholder((3,), wf.float32)
        known = {"x": x, "y": y, "a": wf.exp(x), "sign": x > 0, "count": wf.argmax(x)}
        known["b"] = wf.where(known["sign"], known["a"], y)
        known["stopped"] = wf.stop_gradient(x) * 2.0
        known["c"] = known["stopped"] + y
    return graph, known


def test_values_that_depend_on_a_source():
    graph, known = build()
    assert names(reach(graph.nodes, [known["x"].value]), known) == {"x", "a", "b"}
    assert names(reach(graph.nodes, [known["y"].value]), known) == {"y", "b", "c"}


def test_values_on_which_a_target_depends():
    graph, known = build()
    assert names(lead(graph.nodes, [known["b"].value]), known) == {"x", "y", "a", "b"}
    assert names(lead(graph.nodes, [known["c"].value]), known) == {"y", "c", "stopped"}


def test_integers_and_truth_values_end_a_path():
    graph, known = build()
    ends = [known["sign"].value, known["count"].value]
    assert reach(graph.nodes, ends) == set()
    assert lead(graph.nodes, ends) == set()


def test_control_flow_is_looked_into():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32)
        y = wf.placeholder((3,), wf.float32)
        a, b = wf.cond(x.sum() > 0, lambda u, v: (u * 2.0, v), lambda u, v: (u, wf.exp(v)), x, y)
    assert a.value in reach(graph.nodes, [x.value])
    assert b.value not in reach(graph.nodes, [x.value])
    assert x.value not in lead(graph.nodes, [b.value])
