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
