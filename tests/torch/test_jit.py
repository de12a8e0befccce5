"""torch.jit, torch.multiprocessing and the probes: what stands in for what is not here."""

from __future__ import annotations

import pytest

from weft import torch
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
