"""torch.distributed: one process, and a script of two that PyTorch's users would write."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
from pathlib import Path

import pytest

import weft.torch.distributed as dist
from weft import torch
from weft.autodiff.exchangers import exchangers
from weft.torch.nn.parallel import DataParallel, DistributedDataParallel
from weft.torch.utils.data.distributed import DistributedSampler

SCRIPT = Path(__file__).parent / "programs" / "ddp.py"


@pytest.fixture(autouse=True)
def one_process():
    dist.init_process_group("gloo")


def test_a_process_on_its_own_is_all_of_them():
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "mpi")
    x = torch.tensor([1.0, 2.0])
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    dist.broadcast(x, src=0)
    dist.reduce(x, dst=0)
    later = dist.all_reduce(x, async_op=True)
    assert later.wait()
    assert later.is_completed()
    assert x.tolist() == [1.0, 2.0]


def test_results_go_into_the_tensors_given():
    x, parts, whole = torch.tensor([1.0, 2.0]), [torch.zeros(2)], torch.zeros(1, 2)
    dist.all_gather(parts, x)
    dist.all_gather_into_tensor(whole, x)
    assert parts[0].tolist() == x.tolist() == whole[0].tolist()
    got = torch.zeros(2)
    dist.scatter(got, [x])
    dist.gather(x, parts)
    dist.reduce_scatter_tensor(whole[0], x)
    dist.all_to_all_single(got, x)
    assert got.tolist() == whole[0].tolist() == x.tolist()


def test_lists_need_a_tensor_for_each_process():
    with pytest.raises(ValueError, match="each of 1 processes"):
        dist.all_gather([], torch.ones(2))
    with pytest.raises(ValueError, match="weft launch"):
        dist.init_process_group("nccl", world_size=4, rank=1)
    with pytest.raises(AttributeError, match="put what they hold into tensors"):
        _ = dist.all_gather_object


def test_wrapped_models_have_the_names_of_pytorch():
    for wrap in (DataParallel, DistributedDataParallel):
        model = wrap(torch.nn.Linear(3, 2))
        assert list(model.state_dict()) == ["module.weight", "module.bias"]
        model(torch.ones(4, 3)).sum().backward()
        assert model.module.bias.grad.tolist() == [4.0, 4.0]


def test_accumulation_without_exchange():
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    with model.no_sync():
        model(torch.ones(1, 1)).sum().backward()
    model(torch.ones(1, 1)).sum().backward()
    assert model.module.bias.grad.tolist() == [2.0]


def test_gradients_travel_as_long_as_the_model_is_there():
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    averager = model._parallel.averager
    assert averager in exchangers
    del model
    gc.collect()
    assert averager not in exchangers


def test_samplers_share_an_order():
    parts = [DistributedSampler(range(10), 2, place, seed=3) for place in (0, 1)]
    first = [list(part) for part in parts]
    assert sorted(first[0] + first[1]) == list(range(10))
    assert first == [list(part) for part in parts]
    parts[0].set_epoch(1)
    assert list(parts[0]) != first[0]


def test_a_script_of_two_processes(tmp_path):
    pytest.importorskip("mpi4py")
    launch = [sys.executable, "-m", "weft.cli", "launch", "-n", "2", "--threads", "1"]
    command = [*launch, "--logs", str(tmp_path), "-m", "weft.cli", "run", str(SCRIPT)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode == 0, done.stderr
    logs = "".join(
        path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file()
    )
    ends = set(re.findall(r"rank (\d) of 2: weights ([-\d.]+), alone ([-\d.]+)", logs))
    assert {rank for rank, _, _ in ends} == {"0", "1"}
    assert len({weights for _, weights, _ in ends}) == 1
    assert all(abs(float(weights) - float(alone)) < 1e-4 for _, weights, alone in ends)
