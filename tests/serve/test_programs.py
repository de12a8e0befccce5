"""Modules and graphs as functions of columns: names, inputs, outputs, and what is refused."""

import numpy as np
import pytest

import weft as wf
from weft.serve.programs import GraphProgram, ModuleProgram, batch_size, input_values


def columns(*shapes):
    return [np.random.default_rng(0).standard_normal(s).astype(np.float32) for s in shapes]


def test_module_is_put_in_evaluation_mode_and_gives_arrays():
    model = wf.nn.Sequential(wf.nn.Linear(4, 3), wf.nn.Dropout(0.5))
    program = ModuleProgram(model, input_values(((4,), "float32")))
    (x,) = columns((2, 4))
    (y,) = program([x])
    assert not model.training
    np.testing.assert_allclose(y, model(wf.tensor(x)).numpy(), rtol=1e-6)
    assert program.outputs == ["output"]


@pytest.mark.parametrize(
    ("result", "names"),
    [
        (lambda x: (x, x + 1), ["output0", "output1"]),
        (lambda x: {"logits": x, "more": {"z": x}}, ["logits", "more.z"]),
        (lambda x: [x], ["output0"]),
    ],
)
def test_nests_of_outputs_have_names(result, names):
    program = ModuleProgram(result, input_values(((3,), "float32")))
    assert len(program(columns((2, 3)))) == len(names)
    assert program.outputs == names


def test_an_output_that_is_no_tensor():
    program = ModuleProgram(lambda x: (x, "text"), input_values(((3,), "float32")), False)
    with pytest.raises(TypeError, match=r"must return tensors.*'text' at output\[1\]"):
        program(columns((2, 3)))


def test_inputs_by_name_by_example_and_with_unknown_sizes():
    named = input_values({"a": ((3,), "int64"), "b": np.zeros((2, 2), np.float32)})
    assert [(v.name, v.dtype.name, v.shape[1:]) for v in named] == [
        ("a", "int64", (3,)),
        ("b", "float32", (2, 2)),
    ]
    assert [v.name for v in input_values([((1,), "bool"), ((), "int8")])] == ["input0", "input1"]
    (free,) = input_values(((None,), "int64"))
    assert len(free.shape) == 2


@pytest.mark.parametrize("spec", ["float32", (4,), 3, ((4,), "flaot32")])
def test_inputs_that_say_too_little(spec):
    with pytest.raises((TypeError, ValueError), match=r"shape of an item|dtype"):
        input_values(spec)


def test_one_program_for_all_sizes_or_the_reason_why_not():
    dense = ModuleProgram(wf.nn.Linear(4, 3), input_values(((4,), "float32")))
    conv = ModuleProgram(wf.nn.Conv2d(1, 2, 3), input_values(((1, 5, 5), "float32")))
    for size in (1, 2, 3):
        dense(columns((size, 4)))
        conv(columns((size, 1, 5, 5)))
    assert dense.fixed_because() is None
    assert conv.fixed_because() is not None


def a_graph(first=None):
    with wf.Graph("net") as graph:
        x = wf.placeholder((first, 3), wf.float32, name="x")
        t = wf.placeholder((first,), wf.float32, name="t")
        h = wf.relu(x @ wf.ones((3, 2)))
        y = h.sum(1)
        wf.mean((y - t) * (y - t))
    return graph, h


def test_graph_takes_only_the_placeholders_that_outputs_need():
    graph, h = a_graph()
    assert [v.name for v in GraphProgram(graph).inputs] == ["x", "t"]
    program = GraphProgram(graph, [h])
    assert [v.name for v in program.inputs] == ["x"]
    (y,) = program([np.ones((2, 3), np.float32)])
    assert y.tolist() == [[3.0, 3.0]] * 2
    assert program.outputs == ["relu"]


def test_graph_outputs_that_are_not_there_or_write():
    graph, h = a_graph()
    with pytest.raises(ValueError, match="no value named 'rely'; did you mean 'relu'"):
        GraphProgram(graph, ["rely"])
    total = wf.zeros(())
    with graph:
        update = total.assign(h.sum())
    with pytest.raises(ValueError, match="an output is an update"):
        GraphProgram(graph, [update])
    with wf.Graph() as constant:
        wf.placeholder((None,), wf.float32)
        wf.ones(3) * 2.0
    with pytest.raises(ValueError, match=r"of no placeholder|computes nothing"):
        GraphProgram(constant)


def test_sizes_of_batches_that_inputs_allow():
    assert batch_size(GraphProgram(a_graph()[0]).inputs) is None
    assert batch_size(GraphProgram(a_graph(8)[0]).inputs) == 8
    with wf.Graph() as graph:
        x = wf.placeholder((4, 2), wf.float32, name="x")
        scale = wf.placeholder((), wf.float32, name="scale")
        x * scale
    with pytest.raises(ValueError, match=r"scale is float32\[\], which has no axis for items"):
        batch_size(GraphProgram(graph).inputs)


def test_what_compile_may_be():
    with pytest.raises(ValueError, match=r"compile must be 'auto', True or False.*'maybe'"):
        ModuleProgram(lambda x: x, input_values(((2,), "float32")), "maybe")
