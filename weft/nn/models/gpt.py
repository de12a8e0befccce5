"""A decoder-only transformer (Radford et al. 2019, "GPT-2")."""

from __future__ import annotations

import math

from ...core.errors import ArgumentError, ShapeError
from ...core.tensor import Tensor
from ...ops.ranges import arange
from .. import init
from ..arguments import as_flag, as_size
from ..calls import F
from ..containers import ModuleList
from ..dropout import Dropout
from ..embedding import Embedding
from ..linear import Linear
from ..module import Module
from ..norm import LayerNorm
from .generate import next_tokens


class CausalAttention(Module):
    """Attention of each position to itself and those before it."""

    def __init__(self, n_embd: int, n_head: int, dropout: float, bias: bool) -> None:
        super().__init__()
        if n_embd % as_size("GPT", "n_head", n_head):
            raise ArgumentError(
                f"GPT: n_embd must be a multiple of n_head. Received: {n_embd} and {n_head}"
            )
        self.n_head, self.dropout = n_head, dropout
        self.c_attn = Linear(n_embd, 3 * n_embd, bias=bias)
        self.c_proj = Linear(n_embd, n_embd, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return what each position (N, T, E) gathers."""
        n, t, e = x.shape
        heads = F.reshape(self.c_attn(x), (n, t, 3, self.n_head, e // self.n_head))
        q, k, v = (F.permute_dims(heads[:, :, i], (0, 2, 1, 3)) for i in range(3))
        drop = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=drop, is_causal=True)
        result: Tensor = self.c_proj(F.reshape(F.permute_dims(y, (0, 2, 1, 3)), (n, t, e)))
        return result


class FeedForward(Module):
    """A hidden layer of four times the size, at each position."""

    def __init__(self, n_embd: int, bias: bool) -> None:
        super().__init__()
        self.c_fc = Linear(n_embd, 4 * n_embd, bias=bias)
        self.c_proj = Linear(4 * n_embd, n_embd, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs."""
        result: Tensor = self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))
        return result


class Block(Module):
    """Attention and feed-forward net, each after a norm and beside a shortcut."""

    def __init__(self, n_embd: int, n_head: int, dropout: float, bias: bool) -> None:
        super().__init__()
        self.ln_1 = LayerNorm(n_embd, bias=bias)
        self.attn = CausalAttention(n_embd, n_head, dropout, bias)
        self.ln_2 = LayerNorm(n_embd, bias=bias)
        self.mlp = FeedForward(n_embd, bias)
        self.drop = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Return the outputs."""
        x = x + self.drop(self.attn(self.ln_1(x)))
        result: Tensor = x + self.drop(self.mlp(self.ln_2(x)))
        return result


class GPT(Module):
    """Predict each token of a sequence from those before it.

    vocab_size      number of tokens
    block_size      longest sequence
    n_layer, n_head, n_embd   blocks, attention heads, size of the embedding
    bias            of linear layers and norms
    tie_weights     use the embedding as the output layer too
    classes_first   return (N, V, T), as cross_entropy wants it, instead of (N, T, V)

    >>> import weft as wf
    >>> net = GPT(10, block_size=8, n_layer=1, n_head=2, n_embd=4)
    >>> net(wf.zeros(2, 5, dtype=wf.int64)).shape
    (2, 5, 10)
    """

    def __init__(
        self,
        vocab_size: int,
        block_size: int = 128,
        n_layer: int = 4,
        n_head: int = 4,
        n_embd: int = 128,
        dropout: float = 0.0,
        bias: bool = True,
        tie_weights: bool = True,
        classes_first: bool = False,
    ) -> None:
        super().__init__()
        self.block_size = as_size(self, "block_size", block_size)
        self.wte = Embedding(vocab_size, n_embd)
        self.wpe = Embedding(block_size, n_embd)
        self.drop = Dropout(dropout)
        self.h = ModuleList(
            [Block(n_embd, n_head, dropout, bias) for _ in range(as_size(self, "n_layer", n_layer))]
        )
        self.ln_f = LayerNorm(n_embd, bias=bias)
        self.lm_head = Linear(n_embd, vocab_size, bias=False)
        if as_flag(self, "tie_weights", tie_weights):
            self.lm_head.weight = self.wte.weight
        self.classes_first = as_flag(self, "classes_first", classes_first)
        self._draw(n_layer)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the scores of the token after each of the tokens (N, T)."""
        length = tokens.shape[-1]
        if tokens.ndim != 2 or length > self.block_size:
            raise ShapeError(
                f"GPT: expected tokens (N, T) with T up to block_size={self.block_size}. "
                f"Received: {tuple(tokens.shape)}"
            )
        x = self.drop(self.wte(tokens) + self.wpe(arange(length)))
        for block in self.h:
            x = block(x)
        scores: Tensor = self.lm_head(self.ln_f(x))
        return F.permute_dims(scores, (0, 2, 1)) if self.classes_first else scores

    def generate(
        self,
        tokens: Tensor,
        length: int,
        temperature: float = 1.0,
        top_k: int | None = None,
    ) -> Tensor:
        """Return tokens (N, T) with `length` more, drawn one after the other."""
        axis = 2 if self.classes_first else 1
        for _ in range(length):
            scores = self(tokens[:, -self.block_size :])
            last = scores[:, :, -1] if axis == 2 else scores[:, -1]
            tokens = F.concat([tokens, next_tokens(last, temperature, top_k)], 1)
        return tokens

    def _draw(self, n_layer: int) -> None:
        """Draw weights of deviation 0.02; less where 2 n_layer branches add up (section 2.3)."""
        for name, module in self.named_modules():
            if isinstance(module, Linear | Embedding):
                deep = name.endswith("c_proj")
                init.normal_(module.weight, 0.0, 0.02 / (math.sqrt(2 * n_layer) if deep else 1.0))
            if isinstance(module, Linear) and module.bias is not None:
                init.zeros_(module.bias)
