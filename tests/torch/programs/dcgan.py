"""Two convolutional networks against each other."""

import torch
from common import fill, images, report
from torch import nn, optim


def weights_init(m):
    name = m.__class__.__name__
    if name.find("BatchNorm") != -1:
        nn.init.ones_(m.weight)
        nn.init.zeros_(m.bias)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(6, 8, 2, 1, 0, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(True),
            nn.ConvTranspose2d(8, 4, 4, 2, 1, bias=False),
            nn.BatchNorm2d(4),
            nn.ReLU(True),
            nn.ConvTranspose2d(4, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, x):
        return self.main(x)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, 4, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(4, 8, 4, 2, 1, bias=False),
            nn.BatchNorm2d(8),
            nn.LeakyReLU(0.2, inplace=True),
            nn.Conv2d(8, 1, 2, 1, 0, bias=False),
            nn.Sigmoid(),
        )

    def forward(self, x):
        return self.main(x).view(-1, 1).squeeze(1)


net_g, net_d = fill(Generator()), fill(Discriminator())
net_g.apply(weights_init)
net_d.apply(weights_init)
criterion = nn.BCELoss()
opt_d = optim.Adam(net_d.parameters(), lr=2e-3, betas=(0.5, 0.999))
opt_g = optim.Adam(net_g.parameters(), lr=2e-3, betas=(0.5, 0.999))
real = images(8)[0]
noise = torch.sin(torch.arange(48.0)).view(8, 6, 1, 1)
losses = []
for _ in range(10):
    net_d.zero_grad()
    label = torch.full((8,), 1.0)
    err_real = criterion(net_d(real), label)
    err_real.backward()
    fake = net_g(noise)
    label.fill_(0.0)
    err_fake = criterion(net_d(fake.detach()), label)
    err_fake.backward()
    opt_d.step()
    net_g.zero_grad()
    label.fill_(1.0)
    err_g = criterion(net_d(fake), label)
    err_g.backward()
    opt_g.step()
    losses += [(err_real + err_fake).item(), err_g.item()]
report(losses)
