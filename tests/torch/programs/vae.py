"""A variational autoencoder, whose noise is given."""

import torch
from common import epochs, fill, images, report, size
from torch import nn, optim
from torch.nn import functional as F


PIXELS, HIDDEN, CODE, BATCH = size(64, 784), size(32, 400), size(4, 20), size(16, 128)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(PIXELS, HIDDEN)
        self.fc21 = nn.Linear(HIDDEN, CODE)
        self.fc22 = nn.Linear(HIDDEN, CODE)
        self.fc3 = nn.Linear(CODE, HIDDEN)
        self.fc4 = nn.Linear(HIDDEN, PIXELS)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.cos(torch.arange(float(std.numel()))).view_as(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, PIXELS))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    bce = F.binary_cross_entropy(recon_x, x.view(-1, PIXELS), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld


model = fill(VAE())
optimizer = optim.Adam(model.parameters(), lr=1e-3)
data = images(size(16, 2560), size=size(8, 28))[0].abs().clamp(0, 1)
losses = []
for _ in epochs(20):
    for batch in data.split(BATCH):
        optimizer.zero_grad()
        recon, mu, logvar = model(batch)
        loss = loss_function(recon, batch, mu, logvar)
        loss.backward()
        losses.append(loss.item() / len(batch))
        optimizer.step()
report(losses)
