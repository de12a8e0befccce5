"""A language model of an LSTM: an embedding, recurrent layers, and scores of the next token."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError
from ...core.tensor import Tensor
from ..arguments import as_flag
from ..calls import F
from ..dropout import Dropout
from ..embedding import Embedding
from ..linear import Linear
from ..module import Module
from ..recurrent import LSTM
from .generate import next_tokens


class LSTMLanguageModel(Module):
    """Predict each token of a sequence from those before it.

    vocab_size      number of tokens
    embed_size      size of the embedding
    tie_weights     use the embedding as the output layer too (Press, Wolf 2017); the hidden size
                    must be the embedding's
    classes_first   return (N, V, T), as cross_entropy wants it, instead of (N, T, V)

    >>> import weft as wf
    >>> net = LSTMLanguageModel(10, embed_size=4, hidden_size=8)
    >>> net(wf.zeros(2, 5, dtype=wf.int64)).shape
    (2, 5, 10)
    """

    def __init__(
        self,
        vocab_size: int,
        embed_size: int = 128,
        hidden_size: int = 256,
        num_layers: int = 1,
        dropout: float = 0.0,
        tie_weights: bool = False,
        classes_first: bool = False,
    ) -> None:
        super().__init__()
        self.embedding = Embedding(vocab_size, embed_size)
        self.drop = Dropout(dropout)
        between = dropout if num_layers > 1 else 0.0
        self.lstm = LSTM(embed_size, hidden_size, num_layers, batch_first=True, dropout=between)
        self.head = Linear(hidden_size, vocab_size)
        if as_flag(self, "tie_weights", tie_weights):
            _check_sizes(embed_size, hidden_size)
            self.head.weight = self.embedding.weight
        self.classes_first = as_flag(self, "classes_first", classes_first)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the scores of the token after each of the tokens (N, T)."""
        scores, _ = self.advance(tokens, None)
        return F.permute_dims(scores, (0, 2, 1)) if self.classes_first else scores

    def advance(self, tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Return the scores (N, T, V), and the state after the tokens."""
        hidden, state = self.lstm(self.drop(self.embedding(tokens)), state)
        return self.head(self.drop(hidden)), state

    def generate(
        self,
        tokens: Tensor,
        length: int,
        temperature: float = 1.0,
        top_k: int | None = None,
    ) -> Tensor:
        """Return tokens (N, T) with `length` more, drawn one after the other."""
        made, state, read = tokens, None, tokens
        for _ in range(length):
            scores, state = self.advance(read, state)
            read = next_tokens(scores[:, -1], temperature, top_k)
            made = F.concat([made, read], 1)
        return made


def _check_sizes(embed_size: int, hidden_size: int) -> None:
    if embed_size != hidden_size:
        raise ArgumentError(
            "LSTMLanguageModel: tie_weights needs one size for embed_size and hidden_size. "
            f"Received: {embed_size} and {hidden_size}"
        )
