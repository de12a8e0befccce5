"""Results of products lie as those who follow read them."""

import weft as wf
from weft.graph.graph import Graph
from weft.graph.inline import function_graph
from weft.lower.layouts import laid_out, wanted_layouts


def layouts(build, *shapes):
    with wf.Graph() as graph:
        feeds = [wf.placeholder(shape, wf.float32) for shape in shapes]
        made = build(*feeds)
    whole: Graph = function_graph("g", graph.nodes, [x.value for x in feeds], [made.value])
    return wanted_layouts(whole)


def test_a_product_that_is_transposed_is_written_transposed():
    ((value, order),) = layouts(lambda x, y: wf.exp((x @ y).mT), (4, 5), (5, 6)).items()
    assert order == (1, 0)
    view = laid_out(value, order)
    assert (view.shape, view.strides) == ((4, 6), (1, 4))
    assert view.permuted(order).contiguous


def test_others_that_read_it_as_it_is_prevent_that():
    def both(x, y):
        made = x @ y
        return made.mT @ made

    assert layouts(both, (4, 5), (5, 6)) == {}
    assert layouts(lambda x, y: x @ y, (4, 5), (5, 6)) == {}


def test_the_innermost_axis_stays_one_of_the_matrix():
    heads = (2, 3, 4, 5), (2, 3, 5, 6)
    found = layouts(lambda x, y: wf.permute(x @ y, (0, 2, 1, 3)), *heads)
    assert list(found.values()) == [(0, 2, 1, 3)]
    assert layouts(lambda x, y: wf.permute(x @ y, (0, 2, 3, 1)), *heads) == {}
