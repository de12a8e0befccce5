"""torch.jit, torch.multiprocessing and the probes: what stands in for what is not here."""

from __future__ import annotations

from importlib import import_module

import pytest

from weft import torch
from weft.faces import serving
from weft.torch import jit, mps, version, xpu
from weft.torch.multiprocessing import spawn
from weft.torch.optim.swa_utils import AveragedModel, get_ema_avg_fn, get_ema_multi_avg_fn


def test_scripts_and_traces_run_compiled():
    @jit.script
    def double(x):
        return x * 2

    assert double(torch.ones(2)).tolist() == [2.0, 2.0]
    model = torch.nn.Linear(2, 1)
    traced = jit.trace(model, torch.ones(1, 2))
    assert traced(torch.ones(3, 2)).tolist() == model(torch.ones(3, 2)).tolist()
    assert jit.script(dict) is dict


def test_marks_leave_functions_as_they_are():
    def fn():
        return 1

    assert jit.ignore(fn) is fn
    assert jit.ignore(drop=True)(fn) is fn
    assert jit.export(fn) is jit.unused(fn) is fn
    assert not jit.is_scripting()
    assert jit.annotate(list[int], [1]) == [1]
    with pytest.raises(AttributeError, match=r"wf\.export"):
        _ = jit.save


def test_probes_say_no():
    assert not mps.is_available()
    assert not xpu.is_available()
    assert version.cuda is None


def test_processes_that_fail_are_named():
    spawn(abs, (), nprocs=1, start_method="fork")
    with pytest.raises(RuntimeError, match="process 0"):
        spawn(divmod, (0,), nprocs=1, start_method="fork")


def test_processes_of_served_scripts_are_served():
    with serving({"torch": "weft.torch"}):
        spawn(lambda place: import_module("torch"), nprocs=1)


@pytest.mark.parametrize("options", [{}, {"avg_fn": get_ema_avg_fn(0.5)}])
def test_averages_of_weights(options):
    model = torch.nn.Linear(1, 1, bias=False)
    average = AveragedModel(model, **options)
    for value in (1.0, 3.0):
        with torch.no_grad():
            model.weight.fill_(value)
        average.update_parameters(model)
    assert average.module.weight.item() == 2.0
    assert average.n_averaged.item() == 2
    assert "n_averaged" in average.state_dict()


def test_averages_of_lists_and_buffers():
    model = torch.nn.BatchNorm1d(2)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.75), use_buffers=False)
    for value in (1.0, 5.0):
        with torch.no_grad():
            model.weight.fill_(value)
            model.running_mean.fill_(value)
        average.update_parameters(model)
    assert average.module.weight.tolist() == [2.0, 2.0]
    assert average.module.running_mean.tolist() == [5.0, 5.0]
    with pytest.raises(AssertionError, match="Only one"):
        AveragedModel(model, avg_fn=max, multi_avg_fn=max)


def test_functions_that_choose_by_classes_can_be_allowed():
    known = {}

    @torch.compiler.allow_in_graph
    def scaled(x):
        return x * known.setdefault(type(x), 2)

    step = torch.compile(lambda x: scaled(x) + 1)
    assert step(torch.ones(2)).tolist() == [3, 3]
    assert step(torch.zeros(2)).tolist() == [1, 1]
    assert "1 recording(s), 0 call(s) ran eagerly" in str(step.explain())
    assert torch._dynamo.allow_in_graph is torch.compiler.allow_in_graph


def test_packages_that_choose_by_classes_can_be_allowed(tmp_path, monkeypatch):
    text = "known = {}\ndef scaled(x):\n    return x * known.setdefault(type(x), 2)\n"
    (tmp_path / "choosing_by_class.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    chosen = import_module("choosing_by_class")
    assert torch.compiler.allow_in_graph(chosen) is chosen
    step = torch.compile(lambda x: chosen.scaled(x) + 1)
    assert step(torch.ones(2)).tolist() == [3, 3]
    assert step(torch.zeros(2)).tolist() == [1, 1]
    assert "1 recording(s), 0 call(s) ran eagerly" in str(step.explain())


def test_probes_of_the_compiler():
    seen = []

    @torch.compile
    def step(x):
        seen.append(torch.compiler.is_compiling())
        return x + 1

    step(torch.ones(2))
    assert seen == [True]
    assert not torch.compiler.is_compiling()
    assert torch.compiler.disable(seen.append) == seen.append
    assert torch._dynamo.disable()(len) is len
    torch.compiler.reset()


def test_einops_is_part_of_programs():
    einops = pytest.importorskip("einops")

    @torch.compile
    def pooled(x):
        grid = einops.rearrange(x, "b (h w) c -> b h w c", h=2)
        return einops.reduce(grid, "b h w c -> b c", "mean")

    with serving({"torch": "weft.torch"}):
        assert import_module("torch") is torch  # which einops asks for
        for shape in ((2, 4, 3), (3, 4, 3), (3, 6, 3), (3, 4, 3)):
            x = torch.rand(shape)
            torch.testing.assert_close(pooled(x), x.mean(1))
        assert "3 recording(s), 0 call(s) ran eagerly" in str(pooled.explain())
        with pytest.raises(einops.EinopsError, match="b h w c"):
            pooled(torch.rand(3, 5, 3))
        assert einops.rearrange(torch.ones(3, 4, 3), "b n c -> (b n) c").shape == (12, 3)


def test_a_parameter_may_be_an_argument():
    @torch.compile
    def step(w, x):
        loss = ((w * x) ** 2).sum()
        w.grad = None
        loss.backward()
        with torch.no_grad():
            w -= 0.1 * w.grad
        return loss

    w = torch.nn.Parameter(torch.ones(3))
    losses = [step(w, torch.arange(3.0)).item() for _ in range(3)]
    assert losses == pytest.approx([5.0, 0.8, 0.416], rel=1e-5)


def test_a_view_of_an_argument_follows_the_tensor_that_it_shows():
    x = torch.ones(2)
    seen = x[:1]

    @torch.compile
    def step(x):
        x.mul_(0.5)
        return seen.sum() * 2

    assert [step(x).item(), step(x).item()] == [1.0, 0.5]
    other = torch.ones(2)
    assert [step(other).item(), other.tolist()] == [0.5, [0.5, 0.5]]


def test_writes_after_a_recording_do_not_reach_into_it():
    x = torch.ones(2)
    step = torch.compile(lambda x: x.detach() * 2)
    assert step(x).tolist() == [2.0, 2.0]
    x.add_(1.0)
    assert step(x).tolist() == [4.0, 4.0]


def test_tensors_filled_with_numbers_that_change():
    make = torch.compile(lambda a, n: (torch.full((1,), n), torch.as_tensor(a), torch.tensor(n)))
    for a, n in ((0.5, 1), (0.25, 2), (0.125, 3)):
        found = make(a, n)
        assert [x.dtype for x in found] == [torch.int64, torch.float32, torch.int64]
        assert [x.item() for x in found] == [n, a, n]
