"""A loop of one's own, eager: every value can be looked at."""

from typing import Any

from task import RATE, Trained, batches, start

import weft as wf
import weft.nn.functional as F
from weft import nn


class Net(nn.Module):
    """Two layers with ReLU between them."""

    def __init__(self) -> None:
        super().__init__()
        weights = [nn.Parameter(wf.tensor(w)) for w in start()]
        self.w1, self.b1, self.w2, self.b2 = weights

    def forward(self, x: Any) -> Any:
        """Return the outputs."""
        return F.linear(F.relu(F.linear(x, self.w1, self.b1)), self.w2, self.b2)


def stepper() -> tuple[Net, Any]:
    """Return a net, and what takes a step with a batch."""
    net = Net()
    optimizer = wf.optim.SGD(net.parameters(), lr=RATE)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return net, step


def weights_of(net: Any) -> list[Any]:
    """Return the weights as arrays."""
    return [p.detach().numpy() for p in net.parameters()]


def train() -> Trained:
    """Train in Python."""
    net, step = stepper()
    for x, y in batches():
        step(wf.tensor(x), wf.tensor(y))
    graph = wf.jit(step).graph(wf.tensor(x), wf.tensor(y))
    return Trained(weights_of(net), graph)
