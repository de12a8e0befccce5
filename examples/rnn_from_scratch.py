"""Train an Elman network on characters, with a plain Python loop over time.

    h[t] = tanh(W_xh[x[t]] + h[t-1] W_hh + b_h)        (Elman 1990)
    y[t] = h[t] W_hy + b_y                             logits of the next character

The loop is Python's own `for`: the tape records what ran, and backward through time is the same
`loss.backward()` as everywhere. Weights follow Adagrad with clipped gradients.

    python examples/rnn_from_scratch.py
"""

import argparse

import numpy as np

import weft as wf
import weft.nn.functional as F

TEXT = """\
the warp is long and stands in line,
the weft runs over, under, fine;
a thread goes out, a thread comes back,
a row of blue, a row of black.
the shuttle flies from hand to hand
and leaves behind a narrow band;
the reed comes down, the heddles rise,
the pattern grows before our eyes.
and if a thread is broken, wait:
go back along the weft, and straight
to where it parted; tie the end,
for what was woven, we can mend.
"""


def init_parameters(vocabulary, hidden):
    """Return W_xh, W_hh, b_h, W_hy, b_y; small enough that tanh starts in its linear part."""
    scale = hidden**-0.5
    return [
        (wf.randn(vocabulary, hidden) * scale).requires_grad_(),
        (wf.randn(hidden, hidden) * scale).requires_grad_(),
        wf.zeros(hidden, requires_grad=True),
        (wf.randn(hidden, vocabulary) * scale).requires_grad_(),
        wf.zeros(vocabulary, requires_grad=True),
    ]


def advance(parameters, x, h):
    """Read characters x (batch,) in state h; return logits of the next ones and the new state."""
    w_xh, w_hh, b_h, w_hy, b_y = parameters
    # Indexing takes the rows of W_xh: the product with a one-hot matrix, without the matrix.
    h = wf.tanh(w_xh[x] + h @ w_hh + b_h)
    return h @ w_hy + b_y, h


def sequence_loss(parameters, windows):
    """Return the mean loss per character of windows (batch, length + 1) of the text."""
    h = wf.zeros(len(windows), len(parameters[1]))
    loss = 0.0
    for t in range(windows.shape[1] - 1):
        logits, h = advance(parameters, windows[:, t], h)
        loss = loss + F.cross_entropy(logits, windows[:, t + 1])
    return loss / (windows.shape[1] - 1)


def adagrad_step(parameters, squares, rate=0.1, limit=1.0, eps=1e-8):
    """Scale each step by the gradients so far (Duchi 2011), after clipping their common norm.

    The gradient through time is a product of many Jacobians and explodes now and then; clipping
    keeps its direction (Pascanu 2013).
    """
    norm = sum((p.grad**2).sum().item() for p in parameters) ** 0.5
    scale = min(1.0, limit / (norm + eps))
    with wf.no_grad():
        for p, square in zip(parameters, squares, strict=True):
            g = p.grad * scale
            square.copy_(square + g * g)
            p.copy_(p - rate * g / (wf.sqrt(square) + eps))
            p.grad = None


def train(parameters, text, args):
    """Train on random windows of the text; yield (step, smoothed loss)."""
    rng = np.random.default_rng(args.seed)
    squares = [wf.zeros_like(p) for p in parameters]
    smooth = None
    for step in range(1, args.steps + 1):
        starts = rng.integers(len(text) - args.length, size=args.batch_size)
        windows = wf.tensor(text[starts[:, None] + np.arange(args.length + 1)])
        loss = sequence_loss(parameters, windows)
        loss.backward()
        adagrad_step(parameters, squares)
        smooth = loss.item() if smooth is None else 0.95 * smooth + 0.05 * loss.item()
        yield step, smooth


@wf.no_grad()
def sample(parameters, start, count, temperature=0.5):
    """Let the network write: feed it its own characters, drawn from what it predicts."""
    h = wf.zeros(1, len(parameters[1]))
    written = [start]
    for _ in range(count):
        logits, h = advance(parameters, wf.tensor([written[-1]]), h)
        # Gumbel's trick: argmax(logits + noise) is a draw from softmax(logits).
        noise = -wf.log(-wf.log(wf.rand(*logits.shape)))
        written.append(wf.argmax(logits / temperature + noise).item())
    return written


def main():
    """Train, print the fall of the loss, and let the network write a few lines."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--hidden", type=int, default=64)
    parser.add_argument("--length", type=int, default=24, help="characters in a training window")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a smaller run: 100 steps")
    args = parser.parse_args()
    if args.quick:
        args.steps = 100

    wf.manual_seed(args.seed)
    alphabet = sorted(set(TEXT))
    text = np.array([alphabet.index(character) for character in TEXT])
    parameters = init_parameters(len(alphabet), args.hidden)

    losses = []
    for step, loss in train(parameters, text, args):
        losses.append(loss)
        if step == 1 or step % max(args.steps // 10, 1) == 0:
            print(f"step {step:4}  loss {loss:.4f} nats per character")
    print("\nthe network writes:")
    print("".join(alphabet[i] for i in sample(parameters, alphabet.index("t"), 200)))
    print(f"\nloss: {losses[0]:.3f} -> {losses[-1]:.3f}")


if __name__ == "__main__":
    main()
