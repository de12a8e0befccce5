"""Bad input is refused in PyTorch's words: what it raises stands in bad_calls.json."""

from __future__ import annotations

import json
import traceback

import pytest

import weft as wf
from weft import torch
from weft.faces import serving

from . import bad_calls

RAISED = json.loads(bad_calls.FIGURES.read_text(encoding="utf-8"))
# What differs, and why: calls that are refused here alone, and messages that begin as PyTorch's and
# say something else after that.
DIFFERENT = {
    "y = g.sum(); y.backward(); y.backward()": "the graph is freed, also where nothing was saved",
    "nn.ParameterList([1])": "holds parameters alone",
    "torch.add(a)": "add() ",
    "torch.meshgrid(a, v)": "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got:",
    "a.tolist(1)": "",
    'torch.ones(2, device="cuda")': "Torch not compiled with CUDA enabled",
    "torch.ones(2).cuda()": "Torch not compiled with CUDA enabled",
    "torch.nope": "module 'torch' has no attribute 'nope'",
    "torch.no_such_function(a)": "module 'torch' has no attribute 'no_such_function'",
    "import torch.nowhere": "No module named 'torch.nowhere'",
    "y = g * 2; z = y ** 2; y += 1; z.sum().backward()": "one of the variables needed for gradient",
    "y = g.exp(); y += 1; y.sum().backward()": "one of the variables needed for gradient",
}


def test_the_table_holds_all_calls():
    assert list(RAISED) == bad_calls.calls()
    assert set(DIFFERENT) <= set(RAISED)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", RAISED)
def test_errors_are_those_of_pytorch(call):
    with serving({"torch": "weft.torch"}):
        found = bad_calls.raised(torch, call)
    expected = RAISED[call] and tuple(RAISED[call])
    reason = DIFFERENT.get(call)
    if reason is None:
        assert found == expected
    elif expected is not None:
        assert found[0] == expected[0]
        assert found[1].startswith(reason)
        assert expected[1].startswith(reason)


def test_what_weft_says_stays_as_a_note():
    with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
        torch.ones(2, 3) @ torch.ones(4, 5)
    shown = "".join(traceback.format_exception(caught.value))
    assert "matmul: inner dimensions must match; got (2, 3) @ (4, 5)" in shown
    assert "test_words.py" in shown


def test_tensors_of_weft_are_refused_in_its_words():
    with pytest.raises(ValueError, match="inner dimensions must match"):
        wf.ones((2, 3)) @ wf.ones((4, 5))
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        torch.ones(2, 3) @ wf.ones((4, 5))
    with pytest.raises(RuntimeError, match="mat1 and mat2"):
        wf.nn.functional.linear(torch.ones(2, 3), wf.ones((4, 5)))


def test_errors_inside_of_compiled_functions():
    @torch.compile
    def step(x):
        return x @ torch.ones(4, 5)

    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        step(torch.ones(2, 3))


def test_a_function_of_several_steps_has_the_words_of_the_whole():
    with pytest.raises(RuntimeError, match="size mismatch, got input"):
        torch.mv(torch.ones(2, 3), torch.ones(4))
    with pytest.raises(IndexError, match="Target 5 is out of bounds"):
        torch.nn.CrossEntropyLoss()(torch.ones(2, 3), torch.tensor([0, 5]))


def test_functions_without_words_of_their_own_raise_what_pytorch_raises():
    with pytest.raises(RuntimeError, match="channel_shuffle"):
        torch.nn.functional.channel_shuffle(torch.ones(1, 3, 2, 2), 2)
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.inv(torch.zeros(2, 2))


def test_errors_of_other_code_pass_as_they_are():
    class Own(torch.nn.Module):
        def forward(self, x):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        torch.nn.Sequential(Own())(torch.ones(1))


def test_layers_name_what_they_were_not_given():
    nn, a = torch.nn, torch.ones(2, 3)
    with pytest.raises(TypeError, match=r"Bilinear.forward\(\) missing 2 required positional arg"):
        nn.Bilinear(3, 3, 1)()
    assert nn.Linear(3, 1)(input=a).shape == (2, 1)
    assert nn.Bilinear(3, 3, 1)(a, input2=a).shape == (2, 1)
    assert nn.Sequential(nn.ReLU())(input=a).shape == (2, 3)


def test_values_outside_of_a_distribution():
    with pytest.raises(ValueError, match=r"within the support \(Real\(\)\) of the distribution N"):
        torch.distributions.Normal(0.0, 1.0).log_prob(torch.tensor(torch.nan))
    assert repr(torch.distributions.Normal(0.0, 1.0)) == "Normal(loc: 0.0, scale: 1.0)"


@pytest.mark.parametrize("function", [torch.exp, torch.cumsum, torch.nn.functional.gelu])
def test_numbers_and_lists_are_no_tensors(function):
    for x in (3.0, [1.0, 2.0]):
        with pytest.raises(TypeError, match="must be Tensor, not"):
            function(x)


def test_drawing_more_than_there_is():
    with pytest.raises(RuntimeError, match="n_sample > prob_dist"):
        torch.multinomial(torch.ones(2), 3)
    with pytest.raises(RuntimeError, match="2 different categories"):  # PyTorch draws a zero
        torch.multinomial(torch.tensor([1.0, 0.0]), 2)
