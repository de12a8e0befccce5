"""Train a network on all processes, and once more alone on all rows: the weights are the same."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def train(model, loader, sampler=None):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        if sampler is not None:
            sampler.set_epoch(epoch)
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
    return sum(p.detach().sum().item() for p in model.parameters())


def main():
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    assert rank == int(os.environ["RANK"])
    x = torch.linspace(-1, 1, 64).reshape(16, 4)
    data = TensorDataset(x, x.sum(dim=1, keepdim=True))
    sampler = DistributedSampler(data, shuffle=False)
    model = DDP(network())
    together = train(model, DataLoader(data, batch_size=16 // size, sampler=sampler), sampler)
    total = torch.tensor([together])
    dist.all_reduce(total)
    assert abs(total.item() / size - together) < 1e-5
    alone = train(network(), DataLoader(data, batch_size=16))
    print(f"rank {rank} of {size}: weights {together:.6f}, alone {alone:.6f}", flush=True)
    dist.destroy_process_group()


main()
