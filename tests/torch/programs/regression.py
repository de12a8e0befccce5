"""A polynomial of degree four, found again."""

from itertools import count

import torch
import torch.nn.functional as F
from common import epochs, fill, report, size

DEGREE = 4
W_target = torch.linspace(-2, 2, DEGREE).unsqueeze(1)
b_target = torch.full((1,), 0.7)


def make_features(x):
    x = x.unsqueeze(1)
    return torch.cat([x**i for i in range(1, DEGREE + 1)], 1)


def f(x):
    return x.mm(W_target) + b_target.item()


fc = fill(torch.nn.Linear(W_target.size(0), 1))
losses = []
for _ in epochs(1):
    for batch_idx in count(1):
        x = make_features(torch.sin(torch.arange(32.0) * batch_idx))
        y = f(x)
        fc.zero_grad()
        output = F.smooth_l1_loss(fc(x), y)
        losses.append(output.item())
        output.backward()
        for param in fc.parameters():
            param.data.add_(-0.1 * param.grad)
        if batch_idx >= size(20, 500):
            break
report(losses)
print(" ".join(f"{w:+.3f}" for w in fc.weight.view(-1)))
