"""Batches of every size by few programs, and what is found out before the first request."""

import numpy as np
import pytest

import weft as wf
from weft.serve.programs import GraphProgram, ModuleProgram, input_values
from weft.serve.runner import Runner


def runner_of(model, shape, max_batch=8, dtype="float32", compile="auto"):
    return Runner(ModuleProgram(model, input_values((shape, dtype)), compile), max_batch)


def draw(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def check_all_sizes(runner, model, shape, most=8):
    for size in range(1, most + 1):
        x = draw(size, *shape)
        (y,) = runner([x])
        assert len(y) == size
        np.testing.assert_allclose(y, model(wf.tensor(x)).numpy(), rtol=1e-4, atol=1e-5)


def test_dense_layers_run_every_size_as_it_is():
    model = wf.nn.Linear(4, 3)
    runner = runner_of(model, (4,))
    assert runner.sizes is None
    assert runner.outputs == [("output", "float32", [3])]
    runner.warm()
    check_all_sizes(runner, model, (4,))


def test_convolutions_run_a_few_sizes_and_fill_up():
    model = wf.nn.Conv2d(1, 2, 3)
    runner = runner_of(model, (1, 5, 5), max_batch=6)
    assert runner.sizes == (1, 2, 4, 6)
    runner.warm()
    check_all_sizes(runner, model, (1, 5, 5), most=6)


def test_convolutions_in_graphs_do_likewise():
    conv = wf.nn.Conv2d(1, 2, 3)
    with wf.Graph() as graph:
        x = wf.placeholder((None, 1, 5, 5), wf.float32, name="x")
        conv(x)
    runner = Runner(GraphProgram(graph), 4)
    assert runner.sizes == (1, 2, 4)
    check_all_sizes(runner, conv, (1, 5, 5), most=4)


def test_a_graph_of_one_size_is_filled_up_to_it():
    with wf.Graph() as graph:
        x = wf.placeholder((4, 3), wf.float32, name="x")
        wf.tanh(x)
    runner = Runner(GraphProgram(graph), 32)
    assert (runner.sizes, runner.max_batch) == ((4,), 4)
    x = draw(3, 3)
    np.testing.assert_allclose(runner([x])[0], np.tanh(x), rtol=1e-5)


@pytest.mark.parametrize(
    "model", [lambda x: x - x.mean(0), lambda x: wf.softmax(x, 0), lambda x: x + wf.randn(2)]
)
def test_items_that_depend_on_others_or_on_chance_run_alone(model):
    with pytest.warns(UserWarning, match="depends on the other items of a batch, or on random"):
        assert runner_of(model, (2,)).max_batch == 1


def test_an_output_without_an_axis_of_items():
    with pytest.raises(ValueError, match=r"output has shape \(\) for 1 items"):
        runner_of(lambda x: x.sum(), (2,))


def test_a_model_that_does_not_fit_its_inputs():
    with pytest.raises(
        ValueError, match=r"cannot run on zeros for its inputs, input float32\[n, 5"
    ):
        runner_of(wf.nn.Linear(4, 3), (5,))


def test_unknown_sizes_of_items_are_tried_by_requests():
    model = wf.nn.Embedding(5, 2)
    runner = runner_of(model, (None,), dtype="int64")
    runner.warm()
    assert (runner.outputs, runner.sizes) == ([], (1, 2, 4, 8))
    for length in (1, 4):
        x = np.zeros((2, length), np.int64)
        assert runner([x])[0].shape == (2, length, 2)


def test_tokens_are_not_drawn():
    assert runner_of(wf.nn.Embedding(1, 2), (3,), dtype="int64").max_batch == 8
