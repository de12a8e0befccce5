"""Actor and critic on a small walk: actions by their probabilities, returns by discounting."""

from collections import namedtuple

import torch
import torch.nn.functional as F
from common import epochs, fill, report, size
from torch import nn, optim
from torch.distributions import Categorical

SavedAction = namedtuple("SavedAction", ["log_prob", "value"])


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, size(16, 128))
        self.action_head = nn.Linear(size(16, 128), 2)
        self.value_head = nn.Linear(size(16, 128), 1)
        self.saved_actions = []
        self.rewards = []

    def forward(self, x):
        x = F.relu(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


model = fill(Policy())
optimizer = optim.Adam(model.parameters(), lr=3e-2)
losses = []
for _ in epochs(1):
    for _ in range(size(20, 10)):
        state = torch.tensor([0.1, -0.2, 0.05, 0.0])
        for t in range(size(6, 50)):
            probs, value = model(state)
            m = Categorical(probs)
            action = probs.argmax() if t % 2 else torch.tensor(t % 2)
            model.saved_actions.append(SavedAction(m.log_prob(action), value))
            push = 0.1 if action.item() else -0.1
            state = state + torch.tensor([push, -push, 0.02, 0.01])
            model.rewards.append(1.0 - abs(state[0].item()))
        total, returns = 0, []
        for r in model.rewards[::-1]:
            total = r + 0.99 * total
            returns.insert(0, total)
        returns = torch.tensor(returns)
        returns = (returns - returns.mean()) / (returns.std() + 1e-8)
        policy_losses, value_losses = [], []
        for (log_prob, value), ret in zip(model.saved_actions, returns, strict=True):
            advantage = ret - value.item()
            policy_losses.append(-log_prob * advantage)
            value_losses.append(F.smooth_l1_loss(value, torch.tensor([ret])))
        optimizer.zero_grad()
        loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        del model.rewards[:]
        del model.saved_actions[:]
report(losses)
