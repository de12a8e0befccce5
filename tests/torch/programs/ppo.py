"""Clipped policy gradients with generalised advantages."""

import numpy as np
import torch
from common import epochs, fill, report, size
from torch import nn, optim
from torch.distributions.categorical import Categorical


HIDDEN = size(16, 64)


def layer_init(layer, std=2**0.5, bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


def body():
    yield layer_init(nn.Linear(4, HIDDEN))
    yield nn.Tanh()
    if HIDDEN > 16:
        yield layer_init(nn.Linear(HIDDEN, HIDDEN))
        yield nn.Tanh()


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(*body(), layer_init(nn.Linear(HIDDEN, 1), std=1.0))
        self.actor = nn.Sequential(*body(), layer_init(nn.Linear(HIDDEN, 2), std=0.01))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


steps, envs, updates, parts = size(8, 128), 4, size(5, 1), size(2, 4)
rows = steps * envs
agent = fill(Agent())
optimizer = optim.Adam(agent.parameters(), lr=2.5e-3, eps=1e-5)
obs = torch.sin(torch.arange(float(steps * envs * 4))).view(steps, envs, 4)
actions = (torch.arange(steps * envs) % 2).view(steps, envs)
rewards = torch.cos(torch.arange(float(steps * envs))).view(steps, envs)
dones = torch.zeros((steps, envs))
dones[5] = 1
values, logprobs = torch.zeros((steps, envs)), torch.zeros((steps, envs))
losses = []
for _ in epochs(1):
    for update in range(updates):
        optimizer.param_groups[0]["lr"] = (1.0 - update / 5) * 2.5e-3
        for step in range(steps):
            with torch.no_grad():
                _, logprob, _, value = agent.get_action_and_value(obs[step], actions[step])
                values[step] = value.flatten()
            logprobs[step] = logprob
        with torch.no_grad():
            next_value = agent.get_value(obs[-1]).reshape(1, -1)
            advantages = torch.zeros_like(rewards)
            lastgaelam = 0
            for t in reversed(range(steps)):
                last = t == steps - 1
                nextnonterminal = 1.0 - dones[t if last else t + 1]
                nextvalues = next_value if last else values[t + 1]
                delta = rewards[t] + 0.99 * nextvalues * nextnonterminal - values[t]
                advantages[t] = lastgaelam = delta + 0.99 * 0.95 * nextnonterminal * lastgaelam
            returns = advantages + values
        b_obs, b_logprobs = obs.reshape((-1, 4)), logprobs.reshape(-1)
        b_actions, b_advantages = actions.reshape((-1,)), advantages.reshape(-1)
        b_returns, b_values = returns.reshape(-1), values.reshape(-1)
        order = [epoch % 2 for epoch in range(4)] if parts == 2 else [*range(parts)] * 4
        for part in order:
            mb = np.arange(rows)[part::parts]
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(
                b_obs[mb], b_actions.long()[mb]
            )
            logratio = newlogprob - b_logprobs[mb]
            ratio = logratio.exp()
            mb_advantages = b_advantages[mb]
            mb_advantages = (mb_advantages - mb_advantages.mean()) / (mb_advantages.std() + 1e-8)
            pg_loss1 = -mb_advantages * ratio
            pg_loss2 = -mb_advantages * torch.clamp(ratio, 0.8, 1.2)
            pg_loss = torch.max(pg_loss1, pg_loss2).mean()
            newvalue = newvalue.view(-1)
            v_unclipped = (newvalue - b_returns[mb]) ** 2
            v_clipped = b_values[mb] + torch.clamp(newvalue - b_values[mb], -0.2, 0.2)
            v_loss = 0.5 * torch.max(v_unclipped, (v_clipped - b_returns[mb]) ** 2).mean()
            loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
            losses.append(loss.item())
report(losses)
