"""A GPT that learns to sort: a dataset of its own, a trainer with callbacks, groups by names."""

import math
from collections import defaultdict

import torch
from common import epochs, fill, report, size
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, SequentialSampler

LENGTH, DIGITS = size(4, 6), 3
LAYERS, HEADS, DIM, BATCH = size(2, 3), size(2, 3), size(16, 48), size(8, 64)


class SortDataset(Dataset):
    """Digits, and behind them the same in order."""

    def __len__(self):
        return BATCH * size(4, 20)

    def get_vocab_size(self):
        return DIGITS

    def get_block_size(self):
        return LENGTH * 2 - 1

    def __getitem__(self, idx):
        inp = (torch.arange(LENGTH, dtype=torch.long) * (idx + 2) + idx) % DIGITS
        sol = torch.sort(inp)[0]
        cat = torch.cat((inp, sol), dim=0)
        x = cat[:-1].clone()
        y = cat[1:].clone()
        y[: LENGTH - 1] = -1
        return x, y


class NewGELU(nn.Module):
    def forward(self, x):
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
        return 0.5 * x * (1.0 + torch.tanh(inner))


class CausalSelfAttention(nn.Module):
    def __init__(self, block_size):
        super().__init__()
        self.c_attn = nn.Linear(DIM, 3 * DIM)
        self.c_proj = nn.Linear(DIM, DIM)
        self.attn_dropout = nn.Dropout(0.0)
        mask = torch.tril(torch.ones(block_size, block_size))
        self.register_buffer("bias", mask.view(1, 1, block_size, block_size))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(DIM, dim=2)
        k = k.view(B, T, HEADS, C // HEADS).transpose(1, 2)
        q = q.view(B, T, HEADS, C // HEADS).transpose(1, 2)
        v = v.view(B, T, HEADS, C // HEADS).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        att = self.attn_dropout(F.softmax(att, dim=-1))
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.c_proj(y)


class Block(nn.Module):
    def __init__(self, block_size):
        super().__init__()
        self.ln_1 = nn.LayerNorm(DIM)
        self.attn = CausalSelfAttention(block_size)
        self.ln_2 = nn.LayerNorm(DIM)
        self.mlp = nn.ModuleDict(
            dict(
                c_fc=nn.Linear(DIM, 4 * DIM),
                c_proj=nn.Linear(4 * DIM, DIM),
                act=NewGELU(),
                dropout=nn.Dropout(0.0),
            )
        )
        m = self.mlp
        self.mlpf = lambda x: m.dropout(m.c_proj(m.act(m.c_fc(x))))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlpf(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocab_size, block_size):
        super().__init__()
        self.block_size = block_size
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(vocab_size, DIM),
                wpe=nn.Embedding(block_size, DIM),
                drop=nn.Dropout(0.0),
                h=nn.ModuleList([Block(block_size) for _ in range(LAYERS)]),
                ln_f=nn.LayerNorm(DIM),
            )
        )
        self.lm_head = nn.Linear(DIM, vocab_size, bias=False)

    def configure_optimizers(self):
        decay, no_decay = set(), set()
        whitelist, blacklist = (torch.nn.Linear,), (torch.nn.LayerNorm, torch.nn.Embedding)
        for mn, m in self.named_modules():
            for pn, _ in m.named_parameters():
                fpn = f"{mn}.{pn}" if mn else pn
                if pn.endswith("bias"):
                    no_decay.add(fpn)
                elif pn.endswith("weight") and isinstance(m, whitelist):
                    decay.add(fpn)
                elif pn.endswith("weight") and isinstance(m, blacklist):
                    no_decay.add(fpn)
        params = {pn: p for pn, p in self.named_parameters()}
        assert not decay & no_decay
        assert not params.keys() - (decay | no_decay)
        groups = [
            {"params": [params[pn] for pn in sorted(decay)], "weight_decay": 0.1},
            {"params": [params[pn] for pn in sorted(no_decay)], "weight_decay": 0.0},
        ]
        return torch.optim.AdamW(groups, lr=5e-4, betas=(0.9, 0.95))

    def forward(self, idx, targets=None):
        _, t = idx.size()
        assert t <= self.block_size
        pos = torch.arange(0, t, dtype=torch.long, device=idx.device).unsqueeze(0)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x)
        logits = self.lm_head(self.transformer.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(
                logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1
            )
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, do_sample=False):
        for _ in range(max_new_tokens):
            cond = idx if idx.size(1) <= self.block_size else idx[:, -self.block_size :]
            logits, _ = self(cond)
            probs = F.softmax(logits[:, -1, :], dim=-1)
            if do_sample:
                idx_next = torch.multinomial(probs, num_samples=1)
            else:
                _, idx_next = torch.topk(probs, k=1, dim=-1)
            idx = torch.cat((idx, idx_next), dim=1)
        return idx


class Trainer:
    def __init__(self, model, train_dataset):
        self.model, self.train_dataset = model, train_dataset
        self.callbacks = defaultdict(list)
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.model = self.model.to(self.device)
        self.optimizer = model.configure_optimizers()

    def add_callback(self, onevent, callback):
        self.callbacks[onevent].append(callback)

    def trigger_callbacks(self, onevent):
        for callback in self.callbacks.get(onevent, []):
            callback(self)

    def run(self, max_iters):
        model = self.model
        loader = DataLoader(
            self.train_dataset,
            sampler=SequentialSampler(self.train_dataset),
            shuffle=False,
            pin_memory=True,
            batch_size=BATCH,
            num_workers=0,
        )
        model.train()
        data_iter = iter(loader)
        for _ in range(max_iters):
            try:
                batch = next(data_iter)
            except StopIteration:
                data_iter = iter(loader)
                batch = next(data_iter)
            x, y = [t.to(self.device) for t in batch]
            _, self.loss = model(x, y)
            model.zero_grad(set_to_none=True)
            self.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            self.optimizer.step()
            self.trigger_callbacks("on_batch_end")


losses = []
dataset = SortDataset()
gpt = fill(GPT(dataset.get_vocab_size(), dataset.get_block_size()), 0.5)
trainer = Trainer(gpt, dataset)
trainer.add_callback("on_batch_end", lambda trainer: losses.append(trainer.loss.item()))
for _ in epochs(1):
    trainer.run(max_iters=20)
report(losses)
gpt.eval()
print(gpt.generate(torch.tensor([[0, 2, 1, 0]], dtype=torch.long), LENGTH)[0].tolist())
