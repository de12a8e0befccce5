"""A recurrent language model: truncated time, clipped gradients, a rate that falls by hand."""

import math

import torch
from common import epochs, fill, report, size
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
    tokens, batch, bptt = size(13, 10000), size(4, 20), size(5, 35)
    source = batchify((torch.arange(size(400, 8000)) * 7) % tokens, batch)
    for kind in size(("LSTM", "GRU"), ("LSTM",)):
        model = fill(RNNModel(kind, tokens, size(12, 200), 2, True), 0.5)
        criterion = nn.NLLLoss()
        lr = 2.0
        for _ in epochs(1):
            hidden = model.init_hidden(batch)
            for i in range(0, size(50, 350), bptt):
                data = source[i : i + bptt]
                targets = source[i + 1 : i + 1 + bptt].reshape(-1)
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
