"""Names by several models of letters: a dataset that writes into zeros, one loop for all kinds."""

import os
import tempfile

import torch
from common import epochs, fill, report, size
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, SequentialSampler
from torch.utils.tensorboard import SummaryWriter

WORDS = ["emma", "olivia", "ava", "isabella", "sophia", "mia", "charlotte", "amelia"]
LAYERS, HEADS, DIM, DIM2, BATCH = size(1, 4), size(2, 4), size(8, 64), size(8, 64), size(8, 32)


class CharDataset(Dataset):
    def __init__(self, words):
        self.words = words
        self.chars = sorted(set("".join(words)))
        self.max_word_length = max(len(w) for w in words)
        self.stoi = {ch: i + 1 for i, ch in enumerate(self.chars)}

    def __len__(self):
        return len(self.words)

    def get_vocab_size(self):
        return len(self.chars) + 1

    def get_output_length(self):
        return self.max_word_length + 1

    def __getitem__(self, idx):
        ix = torch.tensor([self.stoi[w] for w in self.words[idx]], dtype=torch.long)
        x = torch.zeros(self.max_word_length + 1, dtype=torch.long)
        y = torch.zeros(self.max_word_length + 1, dtype=torch.long)
        x[1 : 1 + len(ix)] = ix
        y[: len(ix)] = ix
        y[len(ix) + 1 :] = -1
        return x, y


class CausalBoW(nn.Module):
    def __init__(self, block_size):
        super().__init__()
        self.block_size = block_size
        mask = torch.tril(torch.ones(block_size, block_size))
        self.register_buffer("bias", mask.view(1, block_size, block_size))

    def forward(self, x):
        B, T, C = x.size()
        att = torch.zeros((B, T, T), device=x.device)
        att = att.masked_fill(self.bias[:, :T, :T] == 0, float("-inf"))
        return F.softmax(att, dim=-1) @ x


class BoW(nn.Module):
    def __init__(self, vocab, block):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, DIM), nn.Embedding(block, DIM)
        self.bow = CausalBoW(block)
        self.mlp = nn.ModuleDict(dict(c_fc=nn.Linear(DIM, DIM2), c_proj=nn.Linear(DIM2, DIM)))
        self.lm_head = nn.Linear(DIM, vocab)

    def forward(self, idx, targets=None):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device).unsqueeze(0)
        x = self.wte(idx) + self.wpe(pos)
        x = x + self.bow(x)
        x = x + self.mlp.c_proj(F.tanh(self.mlp.c_fc(x)))
        return with_loss(self.lm_head(x), targets)


class RNNCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.xh_to_h = nn.Linear(DIM + DIM2, DIM2)

    def forward(self, xt, hprev):
        return F.tanh(self.xh_to_h(torch.cat([xt, hprev], dim=1)))


class GRUCell(nn.Module):
    def __init__(self):
        super().__init__()
        self.xh_to_z = nn.Linear(DIM + DIM2, DIM2)
        self.xh_to_r = nn.Linear(DIM + DIM2, DIM2)
        self.xh_to_hbar = nn.Linear(DIM + DIM2, DIM2)

    def forward(self, xt, hprev):
        xh = torch.cat([xt, hprev], dim=1)
        r = F.sigmoid(self.xh_to_r(xh))
        hbar = F.tanh(self.xh_to_hbar(torch.cat([xt, r * hprev], dim=1)))
        z = F.sigmoid(self.xh_to_z(xh))
        return (1 - z) * hprev + z * hbar


class RNN(nn.Module):
    def __init__(self, vocab, cell):
        super().__init__()
        self.start = nn.Parameter(torch.zeros(1, DIM2))
        self.wte = nn.Embedding(vocab, DIM)
        self.cell = cell
        self.lm_head = nn.Linear(DIM2, vocab)

    def forward(self, idx, targets=None):
        b, t = idx.size()
        emb = self.wte(idx)
        hprev = self.start.expand((b, -1))
        hiddens = []
        for i in range(t):
            hprev = self.cell(emb[:, i, :], hprev)
            hiddens.append(hprev)
        return with_loss(self.lm_head(torch.stack(hiddens, 1)), targets)


class MLP(nn.Module):
    def __init__(self, vocab, block):
        super().__init__()
        self.vocab_size, self.block_size = vocab, block
        self.wte = nn.Embedding(vocab + 1, DIM)
        self.mlp = nn.Sequential(nn.Linear(block * DIM, DIM2), nn.Tanh(), nn.Linear(DIM2, vocab))

    def forward(self, idx, targets=None):
        embs = []
        for _ in range(self.block_size):
            embs.append(self.wte(idx))
            idx = torch.roll(idx, 1, 1)
            idx[:, 0] = self.vocab_size
        return with_loss(self.mlp(torch.cat(embs, -1)), targets)


class Bigram(nn.Module):
    def __init__(self, vocab):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros((vocab, vocab)))

    def forward(self, idx, targets=None):
        return with_loss(self.logits[idx], targets)


class Transformer(nn.Module):
    def __init__(self, vocab, block):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, DIM), nn.Embedding(block, DIM)
        layer = nn.TransformerEncoderLayer(DIM, HEADS, 4 * DIM, 0.0, "gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.lm_head = nn.Linear(DIM, vocab)
        mask = torch.full((block, block), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, idx, targets=None):
        pos = torch.arange(idx.size(1))
        x = self.layers(self.wte(idx) + self.wpe(pos), mask=self.mask)
        return with_loss(self.lm_head(x), targets)


def with_loss(logits, targets):
    loss = None
    if targets is not None:
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
    return logits, loss


def make(kind, vocab, block):
    if kind == "rnn":
        return RNN(vocab, RNNCell())
    if kind == "gru":
        return RNN(vocab, GRUCell())
    if kind == "bigram":
        return Bigram(vocab)
    return {"mlp": MLP, "bow": BoW, "transformer": Transformer}[kind](vocab, block)


@torch.inference_mode()
def evaluate(model, dataset, batch_size=4):
    model.eval()
    loader = DataLoader(dataset, shuffle=False, batch_size=batch_size, num_workers=0)
    losses = [model(X, Y)[1].item() for X, Y in loader]
    model.train()
    return torch.tensor(losses).mean().item()


dataset = CharDataset(WORDS * size(1, 80))
work_dir = tempfile.mkdtemp()
writer = SummaryWriter(log_dir=work_dir)
losses = []
for kind in size(("bigram", "mlp", "rnn", "gru", "bow", "transformer"), ("transformer",)):
    model = fill(make(kind, dataset.get_vocab_size(), dataset.get_output_length()), 0.5)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=5e-3, weight_decay=0.01, betas=(0.9, 0.99), eps=1e-8
    )
    loader = DataLoader(dataset, sampler=SequentialSampler(dataset), batch_size=BATCH)
    for epoch in epochs(4):
        for X, Y in loader:
            logits, loss = model(X, Y)
            model.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        writer.add_scalar("Loss/train", losses[-1], epoch)
        writer.flush()
    if size(1, 0):
        losses.append(evaluate(model, dataset))
    torch.save(model.state_dict(), os.path.join(work_dir, "model.pt"))
    model.load_state_dict(torch.load(os.path.join(work_dir, "model.pt")))
report(losses)
