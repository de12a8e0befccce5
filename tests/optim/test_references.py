"""Every optimizer against its published formulas, written out step by step in plain NumPy."""

import itertools

import numpy as np
import pytest

import weft as wf
from weft import optim
from weft.optim import eager_step

STEPS = 50


def trajectory(name, options, start, grads):
    """Return the values of one parameter after each step, for given gradients."""
    w = wf.tensor(start, requires_grad=True)
    optimizer = getattr(optim, name)([w], **options)
    path = []
    for g in grads:
        w.grad = wf.tensor(g)
        optimizer.step()
        path.append(np.array(w.detach()))
    return np.array(path)


def expected(rule, options, start, grads):
    path, w = [], start.copy()
    state = {}
    for t, gradient in enumerate(grads, 1):
        g = -gradient if options.get("maximize") else gradient
        w = rule(w, g, t, state, **options)
        path.append(w)
    return np.array(path)


def slot(state, name, like, value=0.0):
    return state.get(name, np.full_like(like, value))


def sgd(w, g, t, s, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, **_):
    g = g + weight_decay * w
    if momentum:
        s["b"] = g if t == 1 else momentum * s["b"] + (1 - dampening) * g
        g = g + momentum * s["b"] if nesterov else s["b"]
    return w - lr * g


def momentum(w, g, t, s, **options):
    return sgd(w, g, t, s, **{"momentum": 0.9, **options})


def adagrad(
    w,
    g,
    t,
    s,
    lr=1e-2,
    lr_decay=0.0,
    weight_decay=0.0,
    initial_accumulator_value=0.0,
    eps=1e-10,
    **_,
):
    g = g + weight_decay * w
    s["h"] = slot(s, "h", w, initial_accumulator_value) + g**2
    return w - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(s["h"]) + eps)


def adadelta(w, g, t, s, lr=1.0, rho=0.9, eps=1e-6, weight_decay=0.0, **_):
    g = g + weight_decay * w
    s["g"] = rho * slot(s, "g", w) + (1 - rho) * g**2
    x = np.sqrt(slot(s, "x", w) + eps) / np.sqrt(s["g"] + eps) * g
    s["x"] = rho * slot(s, "x", w) + (1 - rho) * x**2
    return w - lr * x


def rmsprop(
    w, g, t, s, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False, **_
):
    g = g + weight_decay * w
    s["n"] = alpha * slot(s, "n", w) + (1 - alpha) * g**2
    s["m"] = alpha * slot(s, "m", w) + (1 - alpha) * g
    spread = s["n"] - s["m"] ** 2 if centered else s["n"]
    s["b"] = momentum * slot(s, "b", w) + g / (np.sqrt(spread) + eps)
    return w - lr * s["b"]


def moments(w, g, t, s, betas, scale=True):
    s["m"] = betas[0] * slot(s, "m", w) + (1 - betas[0]) * g
    s["v"] = betas[1] * slot(s, "v", w) + (1 - betas[1]) * g**2
    return s["m"] / (1 - betas[0] ** t), s["v"] / (1 - betas[1] ** t)


def adam(
    w,
    g,
    t,
    s,
    lr=1e-3,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.0,
    amsgrad=False,
    decoupled_weight_decay=False,
    **_,
):
    if decoupled_weight_decay:
        w = w * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * w
    m, v = moments(w, g, t, s, betas)
    if amsgrad:
        s["top"] = np.maximum(slot(s, "top", w), s["v"])
        v = s["top"] / (1 - betas[1] ** t)
    return w - lr * m / (np.sqrt(v) + eps)


def adamw(w, g, t, s, **options):
    return adam(w, g, t, s, decoupled_weight_decay=True, **{"weight_decay": 1e-2, **options})


def amsgrad(w, g, t, s, **options):
    return adam(w, g, t, s, amsgrad=True, **options)


def adamax(w, g, t, s, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, **_):
    g = g + weight_decay * w
    s["m"] = betas[0] * slot(s, "m", w) + (1 - betas[0]) * g
    s["u"] = np.maximum(betas[1] * slot(s, "u", w), np.abs(g) + eps)
    return w - lr / (1 - betas[0] ** t) * s["m"] / s["u"]


def nadam(
    w, g, t, s, lr=2e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, momentum_decay=4e-3, **_
):
    g = g + weight_decay * w
    mu = [betas[0] * (1 - 0.5 * 0.96 ** (k * momentum_decay)) for k in (t, t + 1)]
    s["p"] = s.get("p", 1.0) * mu[0]
    _, v = moments(w, g, t, s, betas)
    m = mu[1] * s["m"] / (1 - s["p"] * mu[1]) + (1 - mu[0]) * g / (1 - s["p"])
    return w - lr * m / (np.sqrt(v) + eps)


def radam(w, g, t, s, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, **_):
    g = g + weight_decay * w
    m, _ = moments(w, g, t, s, betas)
    rho_inf = 2 / (1 - betas[1]) - 1
    rho = rho_inf - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
    if rho <= 5:
        return w - lr * m
    r = np.sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
    return w - lr * m * r * np.sqrt(1 - betas[1] ** t) / (np.sqrt(s["v"]) + eps)


def lion(w, g, t, s, lr=1e-4, betas=(0.9, 0.99), weight_decay=0.0, **_):
    m = slot(s, "m", w)
    update = np.sign(betas[0] * m + (1 - betas[0]) * g)
    s["m"] = betas[1] * m + (1 - betas[1]) * g
    return w - lr * (update + weight_decay * w)


def lamb(w, g, t, s, lr=1e-3, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0, **_):
    m, v = moments(w, g, t, s, betas)
    update = m / (np.sqrt(v) + eps) + weight_decay * w
    lengths = np.linalg.norm(w), np.linalg.norm(update)
    ratio = lengths[0] / lengths[1] if all(lengths) else 1.0
    return w - lr * ratio * update


def asgd(w, g, t, s, lr=1e-2, lambd=1e-4, alpha=0.75, t0=1e6, weight_decay=0.0, **_):
    g = g + weight_decay * w
    eta, mu = s.get("eta", lr), s.get("mu", 1.0)
    w = w * (1 - lambd * eta) - eta * g
    s["ax"] = w if mu == 1 else s["ax"] + mu * (w - s["ax"])
    s["eta"], s["mu"] = lr / (1 + lambd * lr * t) ** alpha, 1 / max(1, t - t0)
    return w


def rprop(w, g, t, s, lr=1e-2, etas=(0.5, 1.2), step_sizes=(1e-6, 50.0), **_):
    sign = np.sign(g * slot(s, "g", w))
    factors = np.select([sign > 0, sign < 0], [etas[1], etas[0]], 1.0)
    s["size"] = np.clip(slot(s, "size", w, lr) * factors, *step_sizes)
    s["g"] = np.where(sign < 0, 0.0, g)
    return w - s["size"] * np.sign(s["g"])


def adafactor(
    w, g, t, s, lr=1e-2, beta2_decay=-0.8, eps=(None, 1e-3), d=1.0, weight_decay=0.0, **_
):
    floor = np.finfo(w.dtype).eps if eps[0] is None else eps[0]
    new = t**beta2_decay
    if w.ndim > 1 and w.size:
        s["r"] = (1 - new) * s.get("r", 0.0) + new * (g**2).mean(-1, keepdims=True)
        s["c"] = (1 - new) * s.get("c", 0.0) + new * (g**2).mean(-2, keepdims=True)
        v = s["r"] @ s["c"] / np.maximum(s["r"].mean(-2, keepdims=True), floor)
    else:
        s["v"] = v = (1 - new) * slot(s, "v", w) + new * g**2
    u = g / np.sqrt(np.maximum(v, floor**2))
    root = max(1, w.size) ** 0.5
    rate = max(eps[1], np.linalg.norm(w) / root) * min(lr, t**-0.5)
    return w * (1 - lr * weight_decay) - rate * u / max(1.0, np.linalg.norm(u) / (root * d))


def options_of(**choices):
    return [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]


DECAY = {"weight_decay": [0.0, 0.1], "maximize": [False, True]}
BETAS = [(0.9, 0.999), (0.5, 0.9), (0.0, 0.0)]
CASES = {
    ("SGD", sgd): [
        *options_of(lr=[0.1], momentum=[0.0, 0.9], dampening=[0.0, 0.5], **DECAY),
        *options_of(lr=[0.1], momentum=[0.9], nesterov=[True], **DECAY),
    ],
    ("Momentum", momentum): options_of(lr=[0.1], nesterov=[False, True], **DECAY),
    ("Adagrad", adagrad): options_of(
        lr_decay=[0.0, 0.1], initial_accumulator_value=[0.0, 0.1], eps=[1e-10, 0.1], **DECAY
    ),
    ("Adadelta", adadelta): options_of(lr=[1.0, 0.3], rho=[0.9, 0.5], eps=[1e-6, 0.1], **DECAY),
    ("RMSprop", rmsprop): options_of(
        alpha=[0.99, 0.5], eps=[1e-8, 0.1], momentum=[0.0, 0.9], centered=[False, True], **DECAY
    ),
    ("Adam", adam): options_of(
        betas=BETAS,
        eps=[1e-8, 0.1],
        amsgrad=[False, True],
        decoupled_weight_decay=[False, True],
        **DECAY,
    ),
    ("AdamW", adamw): options_of(betas=BETAS, amsgrad=[False, True], **DECAY),
    ("Amsgrad", amsgrad): options_of(betas=BETAS, **DECAY),
    ("Adamax", adamax): options_of(betas=BETAS, eps=[1e-8, 0.1], **DECAY),
    ("NAdam", nadam): options_of(betas=BETAS, momentum_decay=[0.004, 0.1], **DECAY),
    ("RAdam", radam): options_of(betas=BETAS[:2], eps=[1e-8, 0.1], **DECAY),
    ("Lion", lion): options_of(lr=[1e-2], betas=BETAS, **DECAY),
    ("ASGD", asgd): options_of(lambd=[1e-4, 0.5], alpha=[0.75, 0.1], t0=[1e6, 7.0], **DECAY),
    ("Rprop", rprop): options_of(
        etas=[(0.5, 1.2), (0.1, 3.0)], step_sizes=[(1e-6, 50.0), (0.005, 0.02)]
    ),
    ("Adafactor", adafactor): options_of(
        lr=[1e-2, 0.3],
        beta2_decay=[-0.8, -0.1],
        eps=[(None, 1e-3), (0.1, 2.0)],
        d=[1.0, 2.0],
        **DECAY,
    ),
    ("LAMB", lamb): options_of(lr=[1e-2], betas=BETAS[:2], eps=[1e-6, 0.1], **DECAY),
}
ALL = [
    pytest.param(name, rule, options, id=f"{name}-{index}")
    for (name, rule), cases in CASES.items()
    for index, options in enumerate([{}, *cases])
]


@pytest.mark.parametrize(("name", "rule", "options"), ALL)
def test_formula(name, rule, options):
    rng = np.random.default_rng(0)
    start, grads = rng.normal(size=(3, 2)), rng.normal(size=(STEPS, 3, 2))
    found = trajectory(name, options, start, grads)
    np.testing.assert_allclose(found, expected(rule, options, start, grads), rtol=1e-9, atol=1e-12)


NAMES = [name for name, _ in CASES]
SHAPES = [(), (1,), (0, 3), (40, 50)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_shapes(name, shape):
    rng = np.random.default_rng(1)
    start = np.asarray(rng.normal(size=shape), np.float32)
    grads = [np.asarray(rng.normal(size=shape), np.float32) for _ in range(5)]
    rule = dict(CASES.keys())[name]
    found = trajectory(name, {}, start, grads)
    assert found.shape == (5, *shape)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected(rule, {}, start, grads), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_machine_code_changes_no_bit(name, dtype, monkeypatch):
    rng = np.random.default_rng(2)
    start = rng.normal(size=(7, 11)).astype(dtype)
    grads = rng.normal(size=(8, 11, 7)).astype(dtype).transpose(0, 2, 1)  # not contiguous
    whole = trajectory(name, {}, start, grads)
    monkeypatch.setattr(eager_step, "LARGE", 2)
    np.testing.assert_array_equal(trajectory(name, {}, start, grads), whole)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", NAMES)
def test_half_precision_is_computed_in_single(name, dtype, compiled, monkeypatch):
    rng = np.random.default_rng(2)
    monkeypatch.setattr(eager_step, "LARGE", 3 if compiled else 100)
    w = wf.tensor(rng.normal(size=(5,)).astype(np.float32)).to(dtype).requires_grad_()
    single = wf.tensor(np.array(w.detach().float()), requires_grad=True)
    g = wf.tensor(rng.normal(size=(5,)).astype(np.float32) * 1e-3).to(dtype)
    for p, gradient in ((w, g), (single, g.float())):
        p.grad = gradient
        getattr(optim, name)([p]).step()
    assert w.dtype.name == dtype
    assert np.array_equal(w.detach().numpy(), single.detach().to(dtype).numpy())


@pytest.mark.parametrize("name", NAMES)
def test_nan_and_inf_stay_where_they_are(name):
    start = np.array([1.0, 2.0, 3.0, 0.0])
    grads = [np.array([np.nan, np.inf, 1e300, 0.0])] * 3
    found = trajectory(name, {}, start, grads)
    if name in ("LAMB", "Adafactor"):  # one length for the whole layer
        assert np.isnan(found[-1, 0])
        return
    assert np.isnan(found[-1, 0])
    assert found[-1, 3] == 0.0


def test_rounding_cannot_make_a_centered_spread_negative():
    grads = np.full((200, 4), 0.1, np.float32)
    found = trajectory("RMSprop", {"centered": True}, np.zeros(4, np.float32), grads)
    assert np.isfinite(found).all()


# -- what is kept apart from the parameters -------------------------------------------------------


def test_asgd_keeps_the_average_of_its_path():
    rng = np.random.default_rng(0)
    grads = rng.normal(size=(20, 3))
    w = wf.tensor(np.zeros(3), requires_grad=True)
    optimizer = optim.ASGD([w], lr=0.1, t0=5)
    path = []
    for g in grads:
        w.grad = wf.tensor(g)
        optimizer.step()
        path.append(np.array(w.detach()))
    # Weights 1, 1/2, 1/3 ... from the seventh update on: a plain mean from the sixth.
    np.testing.assert_allclose(optimizer.state[w]["ax"], np.mean(path[6:], 0), rtol=1e-12)


# -- Muon ------------------------------------------------------------------------------------------


def muon(w, grads, lr=1e-3, weight_decay=0.1, momentum=0.95, nesterov=True, adjust_lr_fn=None):
    a, b, c = 3.4445, -4.775, 2.0315
    buffer = np.zeros_like(w)
    rows, columns = w.shape
    factor = max(1.0, rows / columns) ** 0.5
    if adjust_lr_fn == "match_rms_adamw":
        factor = 0.2 * max(rows, columns) ** 0.5
    for g in grads:
        buffer = momentum * buffer + (1 - momentum) * g
        x = (1 - momentum) * g + momentum * buffer if nesterov else buffer
        left, sizes, right = np.linalg.svd(x, full_matrices=False)
        sizes = sizes / np.linalg.norm(sizes)
        for _ in range(5):
            sizes = a * sizes + b * sizes**3 + c * sizes**5
        w = w * (1 - lr * weight_decay) - lr * factor * (left * sizes) @ right
    return w


@pytest.mark.parametrize("shape", [(4, 3), (3, 5), (2, 2), (1, 4)])
@pytest.mark.parametrize(
    "options",
    [{}, {"nesterov": False}, {"adjust_lr_fn": "match_rms_adamw", "weight_decay": 0.0, "lr": 0.1}],
)
def test_muon_is_a_polynomial_of_singular_values(shape, options):
    rng = np.random.default_rng(0)
    start, grads = rng.normal(size=shape), rng.normal(size=(10, *shape))
    found = trajectory("Muon", options, start, grads)
    np.testing.assert_allclose(found[-1], muon(start, grads, **options), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)])
def test_muon_takes_matrices_alone(shape):
    with pytest.raises(ValueError, match="Muon only supports 2D parameters"):
        optim.Muon([wf.zeros(shape, requires_grad=True)])


# -- Eve -------------------------------------------------------------------------------------------


def eve(w, grads, losses, lr=1e-3, betas=(0.9, 0.999, 0.999), k=0.1, K=10.0, eps=1e-8):
    s, d, followed = {}, 1.0, None
    for t, (g, f) in enumerate(zip(grads, losses, strict=True), 1):
        m, v = moments(w, g, t, s, betas[:2])
        if t == 1:
            followed = f
        else:
            delta, top = (k + 1, K + 1) if f >= followed else (1 / (K + 1), 1 / (k + 1))
            new = min(max(delta, f / followed), top) * followed
            d = betas[2] * d + (1 - betas[2]) * abs(new - followed) / min(new, followed)
            followed = new
        w = w - lr / d * m / (np.sqrt(v) + eps)
    return w


@pytest.mark.parametrize("betas", [(0.9, 0.999, 0.999), (0.5, 0.9, 0.5)])
@pytest.mark.parametrize("bounds", [(0.1, 10.0), (0.5, 2.0)])
def test_eve(betas, bounds):
    rng = np.random.default_rng(0)
    start, grads = rng.normal(size=3), rng.normal(size=(STEPS, 3))
    losses = np.exp(rng.normal(size=STEPS))
    w = wf.tensor(start, requires_grad=True)
    optimizer = optim.Eve([w], betas=betas, bounds=bounds)
    for g, loss in zip(grads, losses, strict=True):
        w.grad = wf.tensor(g)
        optimizer.step(loss=wf.tensor(loss))
    wanted = eve(start, grads, losses, betas=betas, k=bounds[0], K=bounds[1])
    np.testing.assert_allclose(w.detach().numpy(), wanted, rtol=1e-10)


def test_eve_takes_a_minimum_and_survives_bad_losses():
    w = wf.tensor([1.0], requires_grad=True)
    optimizer = optim.Eve([w], minimum=-5.0)
    for loss in [-4.0, np.nan, np.inf, -5.0, *[-5.0] * 400]:
        w.grad = wf.tensor([0.1])
        optimizer.step(loss=loss)
    assert np.isfinite(w.detach().numpy()).all()


@pytest.mark.parametrize("options", [{"bounds": (1.0, 0.5)}, {"bounds": (0.0, 1.0)}])
def test_eve_refuses_bad_bounds(options):
    with pytest.raises(ValueError, match="0 < k < K"):
        optim.Eve([wf.tensor([1.0], requires_grad=True)], **options)


def test_eve_asks_for_the_loss():
    w = wf.tensor([1.0], requires_grad=True)
    optimizer = optim.Eve([w])
    w.grad = wf.tensor([1.0])
    with pytest.raises(TypeError, match=r"step\(loss=loss\)"):
        optimizer.step()
    with pytest.raises(ValueError, match="minimum="):
        optimizer.step(loss=-1.0)
