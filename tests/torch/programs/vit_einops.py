"""A vision transformer whose shapes are written with einops."""

import torch
from common import epochs, fill, images, report, size
from einops import rearrange, reduce, repeat
from einops.layers.torch import Rearrange
from torch import nn

PATCH, SIDE, DIM, HEADS, DEPTH = size(4, 4), size(8, 32), size(16, 64), size(2, 4), size(1, 4)
BATCH = size(8, 32)


class Attention(nn.Module):
    def __init__(self, dim, heads, dim_head):
        super().__init__()
        inner = heads * dim_head
        self.heads = heads
        self.scale = dim_head**-0.5
        self.norm = nn.LayerNorm(dim)
        self.attend = nn.Softmax(dim=-1)
        self.to_qkv = nn.Linear(dim, inner * 3, bias=False)
        self.to_out = nn.Linear(inner, dim)

    def forward(self, x):
        qkv = self.to_qkv(self.norm(x)).chunk(3, dim=-1)
        q, k, v = map(lambda t: rearrange(t, "b n (h d) -> b h n d", h=self.heads), qkv)
        attn = self.attend(torch.matmul(q, k.transpose(-1, -2)) * self.scale)
        return self.to_out(rearrange(torch.matmul(attn, v), "b h n d -> b n (h d)"))


def feed_forward(dim):
    return nn.Sequential(
        nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim)
    )


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Sequential(
            Rearrange("b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=PATCH, p2=PATCH),
            nn.LayerNorm(PATCH * PATCH),
            nn.Linear(PATCH * PATCH, DIM),
        )
        self.pos = nn.Parameter(torch.ones(1, (SIDE // PATCH) ** 2 + 1, DIM) * 0.1)
        self.cls = nn.Parameter(torch.ones(1, 1, DIM) * 0.2)
        self.layers = nn.ModuleList(
            nn.ModuleList([Attention(DIM, HEADS, DIM // HEADS), feed_forward(DIM)])
            for _ in range(DEPTH)
        )
        self.head = nn.Linear(DIM, 4)

    def forward(self, img):
        x = self.emb(img)
        b, n, _ = x.shape
        x = torch.cat((repeat(self.cls, "1 1 d -> b 1 d", b=b), x), dim=1) + self.pos[:, : (n + 1)]
        for attn, ff in self.layers:
            x = attn(x) + x
            x = ff(x) + x
        return self.head(reduce(x, "b n d -> b d", "mean"))


model = fill(ViT(), 0.6)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
data, target = images(size(8, 256), size=SIDE)
losses = []
for _ in epochs(20):
    for x, y in zip(data.split(BATCH), target.split(BATCH), strict=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
report(losses)
