"""Rows of images, one after another, through an LSTM."""

import torch.nn.functional as F
from common import epochs, fill, images, report, size
from torch import nn, optim


SIDE, HIDDEN, BATCH = size(8, 28), size(16, 64), size(16, 64)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(input_size=SIDE, hidden_size=HIDDEN, batch_first=True)
        self.batchnorm = nn.BatchNorm1d(HIDDEN)
        self.dropout1 = nn.Dropout2d(0.0)
        self.fc1 = nn.Linear(HIDDEN, size(8, 32))
        self.fc2 = nn.Linear(size(8, 32), size(4, 10))

    def forward(self, input):
        input = input.reshape(-1, SIDE, SIDE)
        output, _ = self.rnn(input)
        output = self.batchnorm(output[:, -1, :])
        output = F.relu(self.fc1(output))
        return F.log_softmax(self.fc2(output), dim=1)


data, target = images(size(16, 1280), size=SIDE)
model = fill(Net())
optimizer = optim.Adadelta(model.parameters(), lr=0.1)
losses = []
for _ in epochs(20):
    for x, t in zip(data.split(BATCH), target.split(BATCH), strict=True):
        optimizer.zero_grad()
        loss = F.nll_loss(model(x), t)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
report(losses)
