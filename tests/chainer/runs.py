"""Small training runs, for Chainer and for Weft's face of it; their figures are kept."""

from __future__ import annotations

from typing import Any

import numpy as np

OPTIMIZERS = (
    *("SGD", "MomentumSGD", "NesterovAG", "CorrectedMomentumSGD", "AdaGrad", "AdaDelta", "RMSprop"),
    *("RMSpropGraves", "SMORMS3", "Adam", "AdamW", "AMSGrad"),
)
HOOKS = {
    "WeightDecay": (0.1,),
    "Lasso": (0.01,),
    "GradientClipping": (0.05,),
    "GradientHardClipping": (-0.01, 0.01),
    "GradientLARS": (),
}


def wave(*shape: int, phase: float = 0.0) -> Any:
    """Return numbers between -1 and 1."""
    return np.sin(np.arange(np.prod(shape)) * 1.7 + phase).reshape(shape).astype("f")


def data() -> tuple[Any, Any]:
    """Return inputs and labels."""
    x = wave(48, 6)
    return x, (np.abs(x[:, :3]).argmax(1)).astype("i")


def network(chainer: Any) -> Any:
    """Return a classifier with fixed weights."""
    L, F = chainer.links, chainer.functions
    first = L.Linear(6, 8, initialW=wave(8, 6, phase=0.3))
    model = chainer.Sequential(first, F.tanh, L.Linear(8, 3, initialW=wave(3, 8, phase=0.7)))
    return L.Classifier(model)


def losses(chainer: Any, optimizer: Any, hook: Any = None) -> list[float]:
    """Return the losses of a few steps; the learning rate changes on the way."""
    model, (x, t) = network(chainer), data()
    optimizer.setup(model)
    if hook is not None:
        optimizer.add_hook(hook)
    found = []
    for step in range(6):
        if step == 3 and hasattr(optimizer.hyperparam, "lr"):
            optimizer.lr = optimizer.lr * 0.5
        rows = slice(16 * (step % 3), 16 * (step % 3) + 16)
        optimizer.update(model, x[rows], t[rows])
        found.append(float(model.loss.array))
    return [*found, float((model.predictor[0].W.array * wave(8, 6)).sum())]


def all_runs(chainer: Any) -> dict[str, list[float]]:
    """Return the losses of every optimizer and every hook."""
    found = {name: losses(chainer, _made(chainer, name)) for name in OPTIMIZERS}
    for name, numbers in HOOKS.items():
        hook = getattr(chainer.optimizer_hooks, name)(*numbers)
        found[name] = losses(chainer, chainer.optimizers.SGD(0.1), hook)
    return found


def _made(chainer: Any, name: str) -> Any:
    made = getattr(chainer.optimizers, name)()
    if name == "AdamW":
        made.hyperparam.weight_decay_rate = 0.01
    return made
