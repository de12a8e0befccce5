"""Calls that PyTorch refuses, and what it raises: its words are part of its interface.

    python tests/torch/bad_calls.py

writes bad_calls.json, the type and the message of each error, where PyTorch is installed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FIGURES = Path(__file__).with_suffix(".json")

# One call a line; `a` has the shape (2, 3), `v` (3,), `s` (), `i` whole numbers, `g` a gradient.
CALLS = """
# arithmetic and products
a + torch.ones(2, 4)
a * torch.ones(4)
torch.ones(2, 1, 3) - torch.ones(5, 2)
torch.where(a > 0, a, torch.ones(4))
torch.maximum(a, torch.ones(4))
torch.lerp(a, torch.ones(4), 0.5)
torch.addcmul(a, torch.ones(4), a)
a += torch.ones(2, 4)
a.add_(torch.ones(4, 2, 3))
i += 1.5
a @ torch.ones(4, 5)
torch.mm(a, torch.ones(4, 5))
torch.mm(a, v)
torch.matmul(a, torch.ones(4))
torch.matmul(torch.ones(2, 2, 3), torch.ones(2, 4, 3))
torch.matmul(s, a)
torch.bmm(a, a)
torch.bmm(torch.ones(2, 3, 4), torch.ones(3, 4, 5))
torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 5, 6))
torch.mv(a, torch.ones(4))
torch.dot(v, torch.ones(4))
torch.dot(a, a)
torch.addmm(torch.ones(7), a, torch.ones(3, 4))
torch.addmm(a, a, torch.ones(4, 4))
torch.outer(a, v)
torch.einsum("ij,jk->ik", a, torch.ones(4, 5))
torch.einsum("ij->ijk", a)
torch.einsum("ijk->i", a)
torch.tensordot(a, torch.ones(4, 2), 1)
torch.cross(torch.ones(2, 4), torch.ones(2, 4), dim=1)
torch.cdist(a, torch.ones(2, 4))
torch.kron(a, "x")
a + "x"
a + None
a @ 2
torch.add(a)
torch.exp("x")
torch.exp(3.0)
torch.sin([1.0, 2.0])
torch.bitwise_and(a, a)
a & i
~a
torch.clamp(a)
-torch.tensor([True])
torch.tensor([True]) - torch.tensor([True])
# shapes
a.view(4)
a.view(-1, 4)
a.view(-1, -1)
a.reshape(4)
a.reshape(-1, 4)
a.reshape(2, -2)
a.t().view(6)
a.transpose(0, 2)
a.transpose(-3, 0)
a.permute(0)
a.permute(0, 0)
a.permute(0, 5)
a.unsqueeze(4)
a.squeeze(2)
a.flatten(2)
a.flatten(1, 0)
a.expand(4, 3)
a.expand(3)
a.expand(-1, 2, 3)
a.repeat(2)
torch.ones(2, 2, 2).t()
a.chunk(0)
a.split(0)
a.split([1, 2])
a.split(2, dim=2)
a.unbind(2)
a.narrow(1, 2, 2)
a.select(1, 3)
a.movedim(0, 2)
a.unflatten(1, (2, 2))
a.diagonal(0, 0, 0)
a.unfold(1, 4, 1)
torch.cat([a, torch.ones(2, 4)])
torch.cat([a, v])
torch.cat([a, a], dim=2)
torch.cat([])
torch.cat(a)
torch.stack([a, torch.ones(2, 4)])
torch.stack([])
torch.stack([a, a], dim=3)
torch.broadcast_shapes((2, 3), (4,))
torch.broadcast_tensors(a, torch.ones(4))
torch.hstack([a, torch.ones(3, 3)])
torch.flip(a, [2])
torch.roll(a, (1, 2), 0)
torch.tril(v)
torch.diag(torch.ones(2, 2, 2))
torch.meshgrid(a, v)
# reductions and orders
a.sum(2)
a.sum((0, 0))
a.mean(-3)
i.mean()
a.max(2)
a.argmax(2)
torch.ones(0).max()
torch.ones(0, 3).argmax(0)
torch.ones(0, 3).amax(0)
a.softmax(2)
F.softmax(i, 0)
a.cumsum(2)
a.sort(2)
a.topk(4)
a.topk(1, 2)
a.kthvalue(4)
a.norm(dim=2)
a.std(2)
torch.quantile(a, 1.5)
torch.logsumexp(a, 2)
a.all(2)
torch.multinomial(-v, 1)
torch.multinomial(v, 4)
torch.bincount(v)
torch.bincount(-i)
torch.histc(a, 0)
# indexing
a[2]
a[0, 3]
a[0, 0, 0]
a[torch.tensor([2])]
a[0.5]
a["x"]
a[torch.tensor([0.5])]
a[torch.tensor([True, False, True])]
a[::-1]
s[0]
a[0] = torch.ones(4)
a[5] = 0
a[torch.tensor([5])] = 0.0
a[:, [0, 1]] = torch.ones(2, 3)
torch.index_select(a, 0, torch.tensor([2]))
torch.index_select(a, 0, torch.tensor([0.5]))
torch.index_select(a, 2, torch.tensor([0]))
torch.gather(a, 1, torch.tensor([[3]]))
torch.gather(a, 1, torch.tensor([0]))
torch.gather(a, 1, torch.tensor([[0.5]]))
torch.gather(a, 0, torch.zeros(1, 4, dtype=torch.int64))
a.scatter_(1, torch.tensor([[3]]), 1.0)
a.scatter_(1, torch.tensor([[0]]), torch.ones(2, dtype=torch.int64))
a.scatter_add(1, torch.tensor([[3]]), torch.ones(1, 1))
a.index_add(0, torch.tensor([2]), torch.ones(1, 3))
a.masked_fill(torch.ones(2, 3), 0.0)
a.masked_fill(torch.ones(4, dtype=torch.bool), 0.0)
a.masked_select(torch.ones(4, dtype=torch.bool))
torch.take(a, torch.tensor([6]))
len(s)
list(s)
bool(a)
float(a)
int(v)
a.item()
if a > 0: pass
for x in s: pass
np.asarray(g)
g.numpy()
a.tolist(1)
# making tensors
torch.tensor([[1, 2], [3]])
torch.tensor("x")
torch.tensor(None)
torch.tensor([1, "x"])
torch.zeros(-1)
torch.zeros(2, "x")
torch.zeros(2.5)
torch.ones(2, dtype="float32")
torch.full((2,))
torch.arange(0, 3, -1)
torch.arange(0, 3, 0)
torch.linspace(0, 1, -1)
torch.eye(-1)
torch.randint(3, 3, (2,))
torch.randint(0, 3)
torch.randperm(-1)
torch.rand(2, -3)
torch.normal(0.0, -1.0, (2,))
torch.from_numpy([1, 2])
torch.from_numpy(np.array(["x"]))
torch.ones(2, device="nowhere")
torch.ones(2).to("nowhere")
torch.ones(2, device="cuda")
torch.ones(2).cuda()
torch.manual_seed("x")
torch.nope
a.nope
a.to(5)
torch.ones(2, requires_grad=True, dtype=torch.int64)
# autograd
a.backward()
a.sum().backward()
(g * 2).backward()
(g * 2).backward(torch.ones(4))
y = g.sum(); y.backward(); y.backward()
torch.autograd.grad(a.sum(), a)
torch.autograd.grad(g * 2, g)
torch.autograd.grad(g.sum(), torch.ones(2, requires_grad=True))
torch.autograd.grad(g.sum(), a)
g += 1
g[0] = 1
g.zero_()
y = g * 2; z = y ** 2; y += 1; z.sum().backward()
y = g.exp(); y += 1; y.sum().backward()
i.requires_grad_()
(g * 2).requires_grad_(False)
g.grad = torch.ones(5)
g.grad = 1
g.view(2, 3)[0] += 1
torch.add(g, 1, out=a)
torch.unbind(g * 2)[0].add_(1)
torch.ones(3).expand(2, 3).add_(1)
# functions of networks
F.linear(a, torch.ones(4, 5))
F.linear(a, torch.ones(4, 3), torch.ones(5))
F.conv2d(torch.ones(1, 3, 8, 8), torch.ones(4, 2, 3, 3))
F.conv2d(torch.ones(3, 8), torch.ones(4, 3, 3, 3))
F.conv2d(torch.ones(1, 3, 2, 2), torch.ones(4, 3, 3, 3))
F.conv2d(torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3), torch.ones(5))
F.conv2d(torch.ones(1, 3, 8, 8), torch.ones(4, 1, 3, 3), groups=2)
F.conv2d(torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3), stride=0)
F.conv2d(torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3), padding=-1)
F.conv1d(torch.ones(1, 3, 8), torch.ones(4, 2, 3))
F.conv_transpose2d(torch.ones(1, 3, 8, 8), torch.ones(4, 3, 3, 3))
F.max_pool2d(torch.ones(1, 3, 2, 2), 3)
F.max_pool2d(torch.ones(3), 2)
F.avg_pool2d(torch.ones(1, 3, 2, 2), 3)
F.max_pool2d(torch.ones(1, 1, 4, 4), 2, padding=2)
F.adaptive_avg_pool2d(torch.ones(3), 2)
F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 3]))
F.cross_entropy(torch.ones(2, 3), torch.tensor([0]))
F.cross_entropy(torch.ones(2, 3), torch.tensor([0.5, 0.5]))
F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 1]), weight=torch.ones(2))
F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 1]), reduction="x")
F.cross_entropy(torch.ones(2, 3), torch.tensor([[0], [1]]))
F.cross_entropy(torch.ones(2, 3), torch.tensor([0, -1]))
F.nll_loss(torch.ones(2, 3), torch.tensor([0, 3]))
F.nll_loss(torch.ones(2, 3), torch.tensor([0]))
F.nll_loss(torch.ones(2, 3), torch.tensor([0.0, 1.0]))
F.mse_loss(a, torch.ones(2, 4))
F.mse_loss(a, a, reduction="x")
F.l1_loss(a, torch.ones(4))
F.binary_cross_entropy(a * 2, a)
F.binary_cross_entropy(a, torch.ones(4))
F.binary_cross_entropy_with_logits(a, torch.ones(4))
F.embedding(torch.tensor([5]), torch.ones(3, 2))
F.embedding(torch.tensor([0.5]), torch.ones(3, 2))
F.one_hot(torch.tensor([3]), 2)
F.one_hot(torch.tensor([0.5]))
F.dropout(a, 1.5)
F.layer_norm(a, (4,))
F.layer_norm(a, (3,), torch.ones(4))
F.batch_norm(a, torch.zeros(4), torch.ones(4))
F.batch_norm(torch.ones(1, 3), torch.zeros(3), torch.ones(3), training=True)
F.group_norm(torch.ones(1, 3, 2), 2)
F.pad(a, (1,))
F.pad(a, (1, 1, 1, 1, 1, 1))
F.pad(torch.ones(1, 1, 2), (3, 3), mode="reflect")
F.pad(a, (1, 1), mode="x")
F.interpolate(torch.ones(1, 1, 4, 4))
F.interpolate(torch.ones(1, 1, 4, 4), 2, 2)
F.interpolate(torch.ones(1, 1, 4, 4), 2, mode="x")
F.glu(v)
F.pixel_shuffle(torch.ones(1, 3, 2, 2), 2)
F.scaled_dot_product_attention(torch.ones(1, 2, 4), torch.ones(1, 2, 5), torch.ones(1, 2, 4))
F.normalize(a, dim=2)
F.cosine_similarity(a, torch.ones(2, 4))
F.relu("x")
# modules
nn.Linear(3, 4)(torch.ones(2, 5))
nn.Linear(3, 4)(i)
nn.Linear(3, 4)()
nn.Linear(3)
nn.Conv2d(3, 4, 3)(torch.ones(1, 1, 8, 8))
nn.Conv2d(3, 4, 3, groups=2)
nn.Conv2d(3, 4, 3)(torch.ones(8, 8))
nn.BatchNorm2d(3)(torch.ones(2, 4, 2, 2))
nn.BatchNorm2d(3)(torch.ones(2, 3))
nn.BatchNorm1d(3)(torch.ones(2, 3, 2, 2))
nn.LayerNorm(4)(a)
nn.Embedding(3, 2)(torch.tensor([3]))
nn.Embedding(3, 2, padding_idx=5)
nn.LSTM(3, 4)(torch.ones(5, 2, 4))
nn.LSTM(3, 4)(torch.ones(5))
nn.GRU(3, 4)(torch.ones(5, 2, 3), torch.ones(1, 3, 4))
nn.RNN(3, 4, nonlinearity="x")
nn.MultiheadAttention(5, 2)
nn.Dropout(2)
nn.GroupNorm(2, 3)
nn.Sequential(1)
nn.Sequential(nn.Linear(2, 3), nn.Linear(4, 5))(torch.ones(1, 2))
nn.ModuleList([1])
nn.Module()(a)
nn.Linear(3, 4).load_state_dict({"weight": torch.ones(4, 3)})
nn.Linear(3, 4).load_state_dict({"weight": torch.ones(3, 4), "bias": torch.ones(4)})
nn.Linear(3, 4).load_state_dict({"weight": torch.ones(4, 3), "bias": torch.ones(4), "x": s})
nn.Linear(3, 4).load_state_dict(3)
nn.Linear(3, 4).nope
nn.Linear(3, 4).weight = torch.ones(4, 3)
nn.Linear(3, 4).register_parameter("a.b", None)
nn.Linear(3, 4).register_parameter("", None)
nn.Linear(3, 4).register_parameter("x", a)
nn.Linear(3, 4).register_buffer("weight", a)
nn.Linear(3, 4).add_module("x", 3)
nn.Linear(3, 4).get_submodule("x")
nn.Linear(3, 4).get_parameter("x")
nn.Linear(3, 4).to(torch.int64)
nn.ParameterList([1])
nn.CrossEntropyLoss()(a, torch.tensor([0, 1, 2]))
nn.MSELoss()(a)
nn.Flatten(5)(a)
nn.Unflatten(1, (2, 2))(a)
nn.Parameter(i)
nn.init.xavier_uniform_(v)
nn.utils.clip_grad_norm_([g.clone()], "x")
nn.utils.rnn.pad_sequence([a, torch.ones(2, 4)])
nn.utils.rnn.pack_padded_sequence(torch.ones(3, 2, 1), [2, 3])
# optimizers and schedules
optim.SGD([], lr=0.1)
optim.SGD([g], lr=-1)
optim.SGD([g], momentum=-1)
optim.SGD([g], nesterov=True)
optim.SGD(g, lr=0.1)
optim.SGD([1], lr=0.1)
optim.SGD([g * 2], lr=0.1)
optim.SGD([{"params": [g]}, {"params": [g]}], lr=0.1)
optim.SGD([{"params": {g}}], lr=0.1)
optim.Adam([g], lr=-1)
optim.Adam([g], betas=(1.5, 0.9))
optim.Adam([g], betas=(0.9, 1.5))
optim.Adam([g], eps=-1)
optim.Adam([g], weight_decay=-1)
optim.SGD([g], 0.1).load_state_dict({"state": {}, "param_groups": []})
optim.SGD([g], 0.1).add_param_group([g])
optim.lr_scheduler.StepLR(g, 1)
optim.lr_scheduler.StepLR(optim.SGD([g], 0.1))
optim.lr_scheduler.OneCycleLR(optim.SGD([g], 0.1), 0.1)
optim.lr_scheduler.ReduceLROnPlateau(optim.SGD([g], 0.1), "x")
optim.lr_scheduler.ReduceLROnPlateau(optim.SGD([g], 0.1), factor=1.0)
optim.lr_scheduler.LambdaLR(optim.SGD([g], 0.1), [len, len])
optim.LBFGS([g]).step()
# data
DataLoader([1, 2], batch_size=0)
DataLoader([1, 2], batch_size=-1)
DataLoader([1, 2], num_workers=-1)
DataLoader([1, 2], shuffle=True, sampler=[0])
DataLoader([1, 2], batch_sampler=[[0]], batch_size=2)
DataLoader([1, 2], timeout=-1)
DataLoader([1, 2], prefetch_factor=2)
DataLoader([1, 2], persistent_workers=True)
DataLoader([], shuffle=True)
next(iter(DataLoader([torch.ones(2), torch.ones(3)], batch_size=2)))
next(iter(DataLoader([object()])))
next(iter(DataLoader([[1, 2], [3]], batch_size=2)))
TensorDataset(torch.ones(2), torch.ones(3))
data.random_split([1, 2, 3], [1, 1])
data.random_split([1, 2, 3], [0.5, 0.6])
data.ConcatDataset([])
data.RandomSampler([1], num_samples=0)
data.BatchSampler([0], 0, False)
data.WeightedRandomSampler([1.0], 0)
data.Dataset()[0]
# others
torch.linalg.inv(a)
torch.linalg.inv(torch.zeros(2, 2))
torch.linalg.solve(torch.zeros(2, 2), torch.ones(2))
torch.linalg.cholesky(-torch.eye(2))
torch.linalg.det(a)
torch.distributions.Normal(0.0, -1.0)
torch.distributions.Categorical(-v)
torch.load("nowhere.pt")
torch.save(a, "nowhere/x.pt")
torch.set_default_dtype(torch.int64)
torch.finfo(torch.int64)
torch.iinfo(torch.float32)
torch.func.grad(lambda x: x * 2)(a)
torch.func.vmap(lambda x, y: x + y)(a, v)
torch.func.vmap(lambda x: x)(s)
torch.testing.assert_close(a, a + 1)
torch.testing.assert_close(a, v)
torch.no_such_function(a)
import torch.nowhere
"""


def calls() -> list[str]:
    """Return the calls."""
    return [line for line in CALLS.splitlines() if line and not line.startswith("#")]


def scope(torch: Any) -> dict[str, Any]:
    """Return the names that calls use."""
    return {
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
        "optim": torch.optim,
        "data": torch.utils.data,
        "DataLoader": torch.utils.data.DataLoader,
        "TensorDataset": torch.utils.data.TensorDataset,
        "np": np,
        "a": torch.ones(2, 3),
        "v": torch.ones(3),
        "s": torch.tensor(1.0),
        "i": torch.tensor([1, 2]),
        "g": torch.ones(6, requires_grad=True),
    }


def raised(torch: Any, call: str) -> tuple[str, str] | None:
    """Return the type and the words of what a call raises; None if it raises nothing."""
    try:
        exec(call, scope(torch))
    except Exception as error:
        return type(error).__name__, str(error)
    return None


def main() -> None:
    """Make every call, and write what it raised."""
    import torch  # noqa: PLC0415  (PyTorch, which tests do without)

    found = {call: raised(torch, call) for call in calls()}
    rows = ",\n".join(f"  {json.dumps(call)}: {json.dumps(found[call])}" for call in found)
    FIGURES.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
