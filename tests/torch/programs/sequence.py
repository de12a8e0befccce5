"""Sines continued by two cells in a row, fitted by LBFGS."""

import numpy as np
import torch
from common import epochs, fill, report, size
from torch import nn, optim


HIDDEN = size(8, 51)


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm1 = nn.LSTMCell(1, HIDDEN)
        self.lstm2 = nn.LSTMCell(HIDDEN, HIDDEN)
        self.linear = nn.Linear(HIDDEN, 1)

    def forward(self, input, future=0):
        outputs = []
        h_t = torch.zeros(input.size(0), HIDDEN, dtype=torch.double)
        c_t = torch.zeros(input.size(0), HIDDEN, dtype=torch.double)
        h_t2 = torch.zeros(input.size(0), HIDDEN, dtype=torch.double)
        c_t2 = torch.zeros(input.size(0), HIDDEN, dtype=torch.double)
        for input_t in input.split(1, dim=1):
            h_t, c_t = self.lstm1(input_t, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        for _ in range(future):
            h_t, c_t = self.lstm1(output, (h_t, c_t))
            h_t2, c_t2 = self.lstm2(h_t, (h_t2, c_t2))
            output = self.linear(h_t2)
            outputs += [output]
        return torch.cat(outputs, dim=1)


data = np.sin(np.arange(size(12, 201))[None] * 0.5 + np.arange(size(3, 97))[:, None])
given, target = torch.from_numpy(data[:, :-1]), torch.from_numpy(data[:, 1:])
seq = fill(Sequence().double(), 0.8)
criterion = nn.MSELoss()
optimizer = optim.LBFGS(seq.parameters(), lr=0.8, max_iter=4)
losses = []
for _ in epochs(4):

    def closure():
        optimizer.zero_grad()
        loss = criterion(seq(given), target)
        losses.append(loss.item())
        loss.backward()
        return loss

    optimizer.step(closure)
with torch.no_grad():
    losses.append(seq(given, future=5).detach().numpy().sum())
report(losses)
