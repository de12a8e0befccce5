"""Letters after letters by hand: embeddings, a batch norm written out, gradients by `p.grad`."""

import torch
import torch.nn.functional as F
from common import epochs, report, size

words = ["emma", "olivia", "ava", "isabella", "sophia", "mia"] * size(1, 200)
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


width, hidden = size(4, 10), size(16, 200)
C, W1, W2 = wave(count, width), wave(3 * width, hidden), wave(hidden, count)
b2 = torch.zeros(count)
bngain, bnbias = torch.ones((1, hidden)), torch.zeros((1, hidden))
bnmean_running, bnstd_running = torch.zeros((1, hidden)), torch.ones((1, hidden))
parameters = [C, W1, W2, b2, bngain, bnbias]
for p in parameters:
    p.requires_grad = True
losses = []
for _ in epochs(1):
    for i in range(size(20, 300)):
        Xb, Yb = size((X, Y), (X[i % 9 :: 211], Y[i % 9 :: 211]))
        emb = C[Xb]
        hpreact = emb.view(emb.shape[0], -1) @ W1
        bnmeani, bnstdi = hpreact.mean(0, keepdim=True), hpreact.std(0, keepdim=True)
        hpreact = bngain * (hpreact - bnmeani) / bnstdi + bnbias
        with torch.no_grad():
            bnmean_running = 0.9 * bnmean_running + 0.1 * bnmeani
            bnstd_running = 0.9 * bnstd_running + 0.1 * bnstdi
        logits = torch.tanh(hpreact) @ W2 + b2
        loss = F.cross_entropy(logits, Yb)
        for p in parameters:
            p.grad = None
        loss.backward()
        for p in parameters:
            p.data += -(0.5 if i < 10 else 0.1) * p.grad
        losses.append(loss.item())
report(losses)
report([bnmean_running.sum().item(), bnstd_running.sum().item()])
