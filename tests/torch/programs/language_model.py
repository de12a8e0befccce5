"""A recurrent language model: truncated time, clipped gradients, a rate that falls by hand."""

import math

import torch
from common import fill, report
from torch import nn


class RNNModel(nn.Module):
    def __init__(self, kind, tokens, width, layers, tied):
        super().__init__()
        self.encoder = nn.Embedding(tokens, width)
        self.rnn = getattr(nn, kind)(width, width, layers, dropout=0.0)
        self.decoder = nn.Linear(width, tokens)
        if tied:
            self.decoder.weight = self.encoder.weight
        self.width, self.layers, self.kind = width, layers, kind

    def forward(self, x, hidden):
        output, hidden = self.rnn(self.encoder(x), hidden)
        decoded = self.decoder(output).view(-1, self.decoder.out_features)
        return nn.functional.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        shape = self.layers, bsz, self.width
        if self.kind == "LSTM":
            return weight.new_zeros(*shape), weight.new_zeros(*shape)
        return weight.new_zeros(*shape)


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def batchify(data, bsz):
    count = data.size(0) // bsz
    return data.narrow(0, 0, count * bsz).view(bsz, -1).t().contiguous()


def main():
    losses = []
    source = batchify((torch.arange(400) * 7) % 13, 4)
    for kind in ("LSTM", "GRU"):
        model = fill(RNNModel(kind, 13, 12, 2, True), 0.5)
        criterion = nn.NLLLoss()
        hidden = model.init_hidden(4)
        lr = 2.0
        for i in range(0, 50, 5):
            data, targets = source[i : i + 5], source[i + 1 : i + 6].reshape(-1)
            model.zero_grad()
            hidden = repackage_hidden(hidden)
            output, hidden = model(data, hidden)
            loss = criterion(output, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-lr)
            losses.append(loss.item())
            lr *= 0.9
    report(losses)
    print(f"{math.exp(losses[-1]):.3f}")


if __name__ == "__main__":
    main()
