"""A convolutional network on images, by a loop of epochs over a loader."""

import argparse

import torch
import torch.nn.functional as F
from common import epochs, fill, images, report, size
from torch import nn, optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, size(8, 32), 3, 1)
        self.conv2 = nn.Conv2d(size(8, 32), size(8, 64), 3, 1)
        self.dropout1 = nn.Dropout(0.0)
        self.fc1 = nn.Linear(size(32, 9216), size(16, 128))
        self.fc2 = nn.Linear(size(16, 128), size(4, 10))

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return F.log_softmax(self.fc2(x), dim=1)


def train(args, model, device, train_loader, optimizer):
    model.train()
    losses = []
    for data, target in train_loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(data.to(device)), target.to(device))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test(model, device, test_loader):
    model.eval()
    test_loss = correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            output = model(data.to(device))
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    return test_loss / len(test_loader.dataset), correct


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--no-cuda", action="store_true")
    args = parser.parse_args()
    device = torch.device("cuda" if not args.no_cuda and torch.cuda.is_available() else "cpu")
    data = images(size(32, 1280), size=size(8, 28))
    loader = DataLoader(TensorDataset(*data), batch_size=size(8, 64))
    model = fill(Net().to(device))
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for _ in epochs(args.epochs):
        report(train(args, model, device, loader, optimizer))
        scheduler.step()
    report(test(model, device, loader))


if __name__ == "__main__":
    main()
