"""Letters after letters by hand: embeddings, a batch norm written out, gradients by `p.grad`."""

import torch
import torch.nn.functional as F
from common import report

words = ["emma", "olivia", "ava", "isabella", "sophia", "mia"]
chars = sorted(set("".join(words)))
stoi = {s: i + 1 for i, s in enumerate(chars)}
stoi["."] = 0
X, Y = [], []
for w in words:
    context = [0] * 3
    for ch in w + ".":
        X.append(context)
        Y.append(stoi[ch])
        context = [*context[1:], stoi[ch]]
X, Y = torch.tensor(X), torch.tensor(Y)
count = len(stoi)


def wave(*shape):
    n = 1
    for size in shape:
        n *= size
    return torch.sin(torch.arange(n) * 1.7).view(shape) * 0.3


C, W1, W2, b2 = wave(count, 4), wave(12, 16), wave(16, count), torch.zeros(count)
bngain, bnbias = torch.ones((1, 16)), torch.zeros((1, 16))
bnmean_running, bnstd_running = torch.zeros((1, 16)), torch.ones((1, 16))
parameters = [C, W1, W2, b2, bngain, bnbias]
for p in parameters:
    p.requires_grad = True
losses = []
for i in range(20):
    emb = C[X]
    hpreact = emb.view(emb.shape[0], -1) @ W1
    bnmeani, bnstdi = hpreact.mean(0, keepdim=True), hpreact.std(0, keepdim=True)
    hpreact = bngain * (hpreact - bnmeani) / bnstdi + bnbias
    with torch.no_grad():
        bnmean_running = 0.9 * bnmean_running + 0.1 * bnmeani
        bnstd_running = 0.9 * bnstd_running + 0.1 * bnstdi
    logits = torch.tanh(hpreact) @ W2 + b2
    loss = F.cross_entropy(logits, Y)
    for p in parameters:
        p.grad = None
    loss.backward()
    for p in parameters:
        p.data += -(0.5 if i < 10 else 0.1) * p.grad
    losses.append(loss.item())
report(losses)
report([bnmean_running.sum().item(), bnstd_running.sum().item()])
