"""Views share memory with what they are views of, as PyTorch's do."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest

from tests.opaque import no_copies, opaque  # noqa: F401  (opaque is a fixture)
from tests.programs.aliases import drawn_program, expected, run
from weft import torch


@pytest.mark.parametrize("start", range(0, 300, 50))
def test_random_programs_without_gradients(start):
    for seed in range(start, start + 50):
        program = drawn_program(seed)._replace(tracked=False)
        values, _, error = run(program, torch)
        assert error is None, seed
        for mine, theirs in zip(values, expected(program), strict=True):
            np.testing.assert_allclose(mine, theirs, err_msg=str(seed))


def test_a_write_reaches_from_view_to_base_and_back():
    x = torch.arange(6.0).view(2, 3)
    row, turned = x[1], x.t()
    row += 10
    assert x.tolist() == [[0, 1, 2], [13, 14, 15]]
    x[0, 2] = -1
    assert turned[2, 0].item() == -1
    turned.zero_()
    assert row.tolist() == [0, 0, 0]


def test_views_on_a_device_with_memory_of_its_own(opaque):  # noqa: F811  (the fixture)
    with no_copies():
        x = torch.arange(6.0).to("opaque:0").view(2, 3)
        row, turned = x[1], x.t()
        row += 10
        x[0, 2] = -1
        turned[0, 0] = 5
        whole, first = x.view(-1), x.split(1, 1)[0]
        first.mul_(2)
        w = torch.ones(2, 3, device="opaque:0", requires_grad=True)
        (w[1].view(3, 1) * whole[3:].view(3, 1)).sum().backward()
    assert x.tolist() == [[10, 1, -1], [26, 14, 15]]
    assert whole.tolist() == [10, 1, -1, 26, 14, 15]
    assert {str(y.device) for y in (row, turned, whole, first, w.grad)} == {"opaque:0"}
    assert w.grad.tolist() == [[0, 0, 0], [26, 14, 15]]
    for other in (copy.deepcopy(row), pickle.loads(pickle.dumps(row))):
        assert (str(other.device), other.tolist()) == ("opaque:0", [26, 14, 15])
    with pytest.raises(IndexError, match="index 9 is out of bounds for dimension 0 with size 2"):
        x[9]


def test_views_are_views_while_another_thread_records():
    recording, done = threading.Event(), threading.Event()

    def record(x):
        recording.set()
        done.wait(60)
        return x * 2

    thread = threading.Thread(target=lambda: torch.vmap(record)(torch.ones(2)))
    thread.start()
    assert recording.wait(60)
    try:
        test_a_write_reaches_from_view_to_base_and_back()
        assert repr(torch.ones(2).shape) == "torch.Size([2])"
        with pytest.raises(IndexError, match="index 5 is out of bounds"):
            torch.ones(2)[5]
    finally:
        done.set()
        thread.join()


def test_gradients_go_through_writes_into_views():
    w = torch.ones(3, requires_grad=True)
    y = w * 2
    y[0].mul_(5)
    y[1:] = w[:2] * 7
    y.sum().backward()
    assert w.grad.tolist() == [17, 7, 0]


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda w: w.add_(1), "a leaf Variable that requires grad is being used in an in-place"),
        (lambda w: w[0].add_(1), "a view of a leaf Variable that requires grad"),
        (lambda w: (w * 1).unbind()[0].add_(1), "multiple views"),
        (lambda w: torch.zeros(1).expand(3).add_(1), "more than one element of the written-to"),
        (lambda w: torch.zeros(3).add_(torch.ones(2, 3)), "doesn't match the broadcast shape"),
    ],
)
def test_what_cannot_be_written_raises_in_their_words(write, message):
    with pytest.raises(RuntimeError, match=message):
        write(torch.ones(3, requires_grad=True))


def test_a_value_that_backward_needs_must_not_be_written_over():
    w = torch.ones(2, requires_grad=True)
    y = w.exp()
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_detach_data_and_state_dict_share_memory():
    layer = torch.nn.Linear(2, 1)
    state = layer.state_dict()
    layer.weight.data.fill_(3.0)
    assert state["weight"].tolist() == [[3, 3]]
    state["bias"].zero_()
    assert layer.bias.tolist() == [0]
    y = layer(torch.ones(2))
    y.detach().zero_()
    assert y.item() == 0
    assert y.requires_grad


def test_reshape_copies_where_a_view_cannot_be():
    x = torch.arange(6.0).view(2, 3)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        x.t().view(6)
    copy = x.t().reshape(6)
    copy.zero_()
    assert x.sum().item() == 15
    assert x.t().contiguous().data_ptr() != x.data_ptr()
    assert x[1].storage_offset() == 3
    assert x.t().stride() == (1, 3)


def test_views_in_a_compiled_function():
    @torch.compile
    def step(x):
        y = x * 2
        row = y[0]
        row += 1
        y[1, 0] = 7
        return y, row

    x = torch.arange(4.0).reshape(2, 2)
    for _ in range(3):
        y, row = step(x)
        assert y.tolist() == [[1, 3], [7, 6]]
        assert row.tolist() == [1, 3]


def test_a_compiled_function_writes_into_a_view_that_it_is_given():
    @torch.compile
    def double(x):
        x.mul_(2)
        return x.sum()

    x = torch.ones(2, 2)
    for i in range(3):
        assert double(x[0]).item() == 2 ** (i + 2)
    assert x.tolist() == [[8, 8], [1, 1]]


def test_copies_of_views_are_tensors_of_their_own():
    layer = torch.nn.Linear(2, 3)
    best = copy.deepcopy(layer.state_dict())
    kept = pickle.loads(pickle.dumps(layer.state_dict()))
    expected = layer.weight.detach().clone()
    with torch.no_grad():
        layer.weight.zero_()
    assert torch.equal(best["weight"], expected)
    assert torch.equal(kept["weight"], expected)
    assert torch.equal(copy.copy(torch.ones(2, 3)[0]), torch.ones(3))
    with pytest.raises(RuntimeError, match="deepcopy protocol"):
        copy.deepcopy(layer.weight[0])


def test_which_functions_give_views_that_are_not_written_into():
    def results(function):
        return function(torch.ones(6, requires_grad=True) * 2)

    with pytest.raises(RuntimeError, match="Output 1 of Unbind is a view and is being modified"):
        results(torch.unbind)[1].add_(1)
    with pytest.raises(RuntimeError, match="Output 1 of SplitWithSizes is a view"):
        results(lambda y: y.split([2, 4]))[1].add_(1)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        torch.ones(4).chunk(2)[0].add_(torch.ones(2, requires_grad=True))
    for function in (lambda y: y.tensor_split(2), lambda y: y.tensor_split([2])):
        part = results(function)[1]
        part.add_(1)
        assert part.tolist() == [3] * part.numel()
        assert part.requires_grad


def test_a_write_into_a_detached_view_is_seen_by_what_was_kept():
    y = torch.ones(3, 3, requires_grad=True) * 1
    part = y.diagonal()
    alone = part.detach()
    part.relu_()
    alone.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
