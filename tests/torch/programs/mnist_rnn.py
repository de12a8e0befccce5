"""Rows of images, one after another, through an LSTM."""

import torch.nn.functional as F
from common import fill, images, report
from torch import nn, optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(input_size=8, hidden_size=16, batch_first=True)
        self.batchnorm = nn.BatchNorm1d(16)
        self.dropout1 = nn.Dropout2d(0.0)
        self.fc1 = nn.Linear(16, 8)
        self.fc2 = nn.Linear(8, 4)

    def forward(self, input):
        input = input.reshape(-1, 8, 8)
        output, _ = self.rnn(input)
        output = self.batchnorm(output[:, -1, :])
        output = F.relu(self.fc1(output))
        return F.log_softmax(self.fc2(output), dim=1)


data, target = images(16)
model = fill(Net())
optimizer = optim.Adadelta(model.parameters(), lr=0.1)
losses = []
for _ in range(20):
    optimizer.zero_grad()
    loss = F.nll_loss(model(data), target)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
report(losses)
