"""Rebuilding graphs: what is shared, renamed, redirected and kept."""

import weft as wf
from weft.core.op import find_op
from weft.passes.rewrite import Rebuild, pass_over, with_bodies


def unchanged(graph, outputs=None):
    return pass_over(graph, outputs, lambda rebuild, node: None, unchanged)


def build():
    with wf.Graph("g") as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        y = wf.exp(wf.neg(x))
        z = wf.sin(y)
        y.name, z.name = "y", "z"
    return graph


def test_nodes_that_do_not_change_are_shared():
    graph = build()
    made = unchanged(graph)
    assert made is not graph
    assert all(a is b for a, b in zip(graph.nodes, made.nodes, strict=True))
    assert (made.names, made.outputs, made.aliases) == (graph.names, graph.results(), {})


def test_old_values_are_found_in_the_new_graph():
    graph = build()
    neg, exp = (find_op(name) for name in ("neg", "exp"))

    def without_exp(rebuild, node):
        return [rebuild.value(node.inputs[0])] if node.op is exp else None

    made = pass_over(graph, None, without_exp, unchanged)
    assert [node.op.name for node in made.nodes] == ["placeholder", "neg", "sin"]
    y = graph.find("y")
    assert made.aliases[y].node.op is neg
    assert made.find("z").node.inputs[0] is made.aliases[y]


def test_new_nodes_do_not_take_old_names():
    graph = build()
    rebuild = Rebuild(graph, None)
    node = graph.find("y").node
    fresh = rebuild.fresh(node, node.op, node.inputs, node.attrs, [v.type for v in node.outputs])
    assert fresh.name not in {old.name for old in graph.nodes}
    assert (fresh.site, fresh.scope, fresh.device) == (node.site, node.scope, node.device)


def test_bodies_are_transformed():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32)
        wf.cond(x.sum() > 0, wf.exp, lambda v: v * 2.0, x)
    (node,) = [node for node in graph.nodes if node.op.name == "cond"]
    assert with_bodies(node, unchanged) is node
    seen = []

    def empty(body):
        seen.append(body)
        return Rebuild(body, body.inputs).finish()

    assert with_bodies(node, empty) is not node
    assert len(seen) == 2
