"""Values of actions, learned from a buffer against a network that follows slowly."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from common import epochs, fill, report, size
from torch import nn, optim


WIDE, NARROW, BATCH = size(24, 120), size(16, 84), size(16, 128)


class QNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(4, WIDE),
            nn.ReLU(),
            nn.Linear(WIDE, NARROW),
            nn.ReLU(),
            nn.Linear(NARROW, 2),
        )

    def forward(self, x):
        return self.network(x)


random.seed(1)
torch.manual_seed(1)
torch.backends.cudnn.deterministic = True
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
q_network = fill(QNetwork()).to(device)
target_network = QNetwork().to(device)
target_network.load_state_dict(q_network.state_dict())
optimizer = optim.Adam(q_network.parameters(), lr=2.5e-3)
states = np.sin(np.arange(size(400, 4000)).reshape(-1, 4)).astype(np.float32)
losses = []
for _ in epochs(1):
    for step in range(size(20, 200)):
        # Acting: one observation at a time, of which the best action is taken.
        q_values = q_network(torch.Tensor(states[step : step + 1]).to(device))
        action = torch.argmax(q_values, dim=1).cpu().numpy()
        rows = (np.arange(BATCH) * 7 + step) % (len(states) - 1)
        obs, after = (
            torch.Tensor(states[rows]).to(device),
            torch.Tensor(states[rows + 1]).to(device),
        )
        actions = torch.tensor((rows % 2)[:, None])
        rewards, dones = torch.ones(BATCH, 1), torch.tensor((rows % 5 == 0)[:, None]).float()
        with torch.no_grad():
            target_max, _ = target_network(after).max(dim=1)
            td_target = rewards.flatten() + 0.99 * target_max * (1 - dones.flatten())
        old_val = q_network(obs).gather(1, actions).squeeze()
        loss = F.mse_loss(td_target, old_val)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 5 == 0:
            assert action.shape == (1,)
            pairs = zip(target_network.parameters(), q_network.parameters(), strict=True)
            for target_param, param in pairs:
                target_param.data.copy_(0.5 * param.data + 0.5 * target_param.data)
        losses.append(loss.item())
report(losses)
