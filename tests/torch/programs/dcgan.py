"""Two convolutional networks against each other."""

import torch
from common import epochs, fill, images, report, size
from torch import nn, optim


def weights_init(m):
    name = m.__class__.__name__
    if name.find("BatchNorm") != -1:
        nn.init.ones_(m.weight)
        nn.init.zeros_(m.bias)


NOISE, WIDTH, SIDE, BATCH = size(6, 100), size(4, 16), size(8, 64), size(8, 32)
# Layers between the ends, by how often the width doubles: each halves the image, or doubles it.
DOUBLINGS = size(1, 3)


def growing(doublings):
    for i in range(doublings, 0, -1):
        yield nn.ConvTranspose2d(WIDTH * 2**i, WIDTH * 2 ** (i - 1), 4, 2, 1, bias=False)
        yield nn.BatchNorm2d(WIDTH * 2 ** (i - 1))
        yield nn.ReLU(True)


def shrinking(doublings):
    for i in range(doublings):
        yield nn.Conv2d(WIDTH * 2**i, WIDTH * 2 ** (i + 1), 4, 2, 1, bias=False)
        yield nn.BatchNorm2d(WIDTH * 2 ** (i + 1))
        yield nn.LeakyReLU(0.2, inplace=True)


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        top = WIDTH * 2**DOUBLINGS
        self.main = nn.Sequential(
            nn.ConvTranspose2d(NOISE, top, size(2, 4), 1, 0, bias=False),
            nn.BatchNorm2d(top),
            nn.ReLU(True),
            *growing(DOUBLINGS),
            nn.ConvTranspose2d(WIDTH, 1, 4, 2, 1, bias=False),
            nn.Tanh(),
        )

    def forward(self, x):
        return self.main(x)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(1, WIDTH, 4, 2, 1, bias=False),
            nn.LeakyReLU(0.2, inplace=True),
            *shrinking(DOUBLINGS),
            nn.Conv2d(WIDTH * 2**DOUBLINGS, 1, size(2, 4), 1, 0, bias=False),
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
real = images(BATCH, size=SIDE)[0]
noise = torch.sin(torch.arange(float(BATCH * NOISE))).view(BATCH, NOISE, 1, 1)
losses = []
for _ in epochs(1):
    for _ in range(size(10, 8)):
        net_d.zero_grad()
        label = torch.full((BATCH,), 1.0)
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
