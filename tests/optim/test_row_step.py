"""Steps by row-sparse gradients: in eager mode, in graphs and under jit they are the same."""

from __future__ import annotations

import re

import numpy as np
import pytest

import weft as wf
from weft.optim import transform as tx

ROWS, WIDTH, STEPS = 40, 3, 4
RNG = np.random.default_rng(0)
TABLE = RNG.standard_normal((ROWS, WIDTH)).astype(np.float32)
INDICES = [RNG.integers(0, 12, (2, 5)) for _ in range(STEPS)]  # few rows: many stand twice
TARGET = RNG.standard_normal((2, 5, WIDTH)).astype(np.float32)

EXACT = {  # rows without a gradient stay as they are in the dense step too
    "sgd": lambda params: wf.optim.SGD(params, lr=0.1),
    "ascent": lambda params: wf.optim.SGD(params, lr=0.1, maximize=True),
    "adagrad": lambda params: wf.optim.Adagrad(params, lr=0.1),
    "adagrad with decay of the rate": lambda params: wf.optim.Adagrad(
        params, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.5
    ),
    "clipped": lambda params: wf.optim.TransformOptimizer(
        params, tx.chain(tx.clip_by_global_norm(0.5), tx.scale(-0.1))
    ),
    "clipped by value": lambda params: wf.optim.TransformOptimizer(
        params, tx.chain(tx.clip_by_value(0.1), tx.scale(-0.1))
    ),
}
LAZY = {
    "momentum": lambda params: wf.optim.SGD(params, lr=0.1, momentum=0.9),
    "nesterov": lambda params: wf.optim.SGD(params, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda params: wf.optim.Adam(params, lr=0.1),
    "amsgrad": lambda params: wf.optim.Amsgrad(params, lr=0.1),
    "adamw without decay": lambda params: wf.optim.AdamW(params, lr=0.1, weight_decay=0.0),
    "sparse adam": lambda params: wf.optim.SparseAdam(params, lr=0.1),
}
ALL = EXACT | LAZY


def make_table(sparse=True, dtype=np.float32, **options):
    weight = wf.tensor(TABLE.astype(dtype))
    return wf.nn.Embedding(ROWS, WIDTH, sparse=sparse, _weight=weight, **options)


def loss_of(table, index):
    return ((table(index) - wf.tensor(TARGET.astype(table.weight.dtype))) ** 2).sum()


def eagerly(table, optimizer, indices):
    for index in indices:
        optimizer.zero_grad()
        loss_of(table, wf.tensor(index)).backward()
        optimizer.step()


def in_a_session(table, optimizer, indices, shape=(2, 5)):
    with wf.Graph() as graph:
        index = wf.placeholder(shape, indices[0].dtype)
        step = optimizer.minimize(loss_of(table, index))
    session = wf.Session(graph)
    for array in indices:
        session.run(step, {index: array})


def by_jit(table, optimizer, indices):
    @wf.jit
    def step(index):
        optimizer.zero_grad()
        loss = loss_of(table, index)
        loss.backward()
        optimizer.step()
        return loss

    for index in indices:
        step(wf.tensor(index))


FACES = {"eager": eagerly, "session": in_a_session, "jit": by_jit}
every_face = pytest.mark.parametrize("face", FACES.values(), ids=FACES)


def trained(make, face, indices=INDICES, **options):
    table = make_table(**options)
    optimizer = make(table.parameters())
    face(table, optimizer, indices)
    return table, optimizer


@every_face
@pytest.mark.parametrize("make", EXACT.values(), ids=EXACT)
def test_steps_that_leave_other_rows_alone_are_the_dense_ones_to_the_bit(make, face):
    table, optimizer = trained(make, face)
    dense_table, dense_optimizer = trained(make, eagerly, sparse=False)
    np.testing.assert_array_equal(table.weight.numpy(), dense_table.weight.numpy())
    assert_equal_states(optimizer, dense_optimizer)


@pytest.mark.parametrize("face", [in_a_session, by_jit], ids=["session", "jit"])
@pytest.mark.parametrize("make", LAZY.values(), ids=LAZY)
def test_all_faces_take_the_same_lazy_step(make, face):
    table, optimizer = trained(make, face)
    eager_table, eager_optimizer = trained(make, eagerly)
    np.testing.assert_allclose(table.weight.numpy(), eager_table.weight.numpy(), rtol=2e-6)
    assert_equal_states(optimizer, eager_optimizer, rtol=2e-6)


def assert_equal_states(a, b, rtol=0.0):
    (first,), (second,) = a.state.values(), b.state.values()
    assert list(first) == list(second)
    for name, value in first.items():
        np.testing.assert_allclose(value, second[name], rtol=rtol, err_msg=name)
    assert a.t == b.t


# -- the formulas, in NumPy ------------------------------------------------------------------------


def gradients_of(table, index):
    """Return the distinct rows of a batch, and the gradient of each."""
    rows = np.unique(index)
    difference = 2 * (table[index] - TARGET)
    dense = np.zeros_like(table)
    np.add.at(dense, index.reshape(-1), difference.reshape(-1, WIDTH))
    return rows, dense[rows]


def adam_in_numpy(lr, eps_before, b1=0.9, b2=0.999, eps=1e-8):
    table = TABLE.astype(np.float64)
    m, v = np.zeros_like(table), np.zeros_like(table)
    for t, index in enumerate(INDICES, 1):
        rows, g = gradients_of(table, index)
        m[rows] = b1 * m[rows] + (1 - b1) * g
        v[rows] = b2 * v[rows] + (1 - b2) * g * g
        c1, c2 = 1 - b1**t, 1 - b2**t
        if eps_before:  # as PyTorch's SparseAdam has it
            table[rows] -= lr * np.sqrt(c2) / c1 * m[rows] / (np.sqrt(v[rows]) + eps)
        else:
            table[rows] -= lr * (m[rows] / c1) / (np.sqrt(v[rows] / c2) + eps)
    return table


@every_face
def test_sparse_adam_is_pytorchs(face):
    table, _ = trained(LAZY["sparse adam"], face)
    np.testing.assert_allclose(table.weight.numpy(), adam_in_numpy(0.1, True), rtol=1e-5)


@every_face
def test_adam_is_adam_on_the_rows_that_have_a_gradient(face):
    table, _ = trained(LAZY["adam"], face)
    np.testing.assert_allclose(table.weight.numpy(), adam_in_numpy(0.1, False), rtol=1e-5)


def test_eps_shows_the_difference_between_both():
    make = {
        "adam": lambda params: wf.optim.Adam(params, lr=0.1, eps=1.0),
        "sparse adam": lambda params: wf.optim.SparseAdam(params, lr=0.1, eps=1.0),
    }
    first, second = (trained(make[name], eagerly)[0].weight.numpy() for name in make)
    assert not np.allclose(first, second, rtol=1e-2)


def test_momentum_decays_when_a_row_has_a_gradient_again():
    table = TABLE.astype(np.float64)
    buffer = np.zeros_like(table)
    for index in INDICES:
        rows, g = gradients_of(table, index)
        buffer[rows] = 0.9 * buffer[rows] + g
        table[rows] -= 0.1 * buffer[rows]
    found, _ = trained(LAZY["momentum"], eagerly)
    np.testing.assert_allclose(found.weight.numpy(), table, rtol=1e-4, atol=1e-5)


# -- indices and tables of every kind --------------------------------------------------------------


@every_face
@pytest.mark.parametrize(
    "indices",
    [
        [np.zeros((0, 5), np.int64)] * 2,
        [np.arange(ROWS).reshape(8, 5)] * 2,
        [np.full((3, 5), 7)] * 2,
        [np.array([[3, 1], [3, 39]], np.int32)] * 2,
        [RNG.integers(0, ROWS, (2, 2, 5)) for _ in range(2)],
        [np.array([5, 6, 5], np.uint8)] * 2,
    ],
    ids=["empty", "all rows", "one row", "int32", "3-d", "uint8"],
)
@pytest.mark.parametrize("name", ["sgd", "adagrad"])
def test_indices(name, face, indices, monkeypatch):
    target = RNG.standard_normal((*indices[0].shape, WIDTH)).astype(np.float32)
    monkeypatch.setitem(globals(), "TARGET", target)
    options = {"shape": indices[0].shape} if face is in_a_session else {}
    table, dense = make_table(), make_table(sparse=False)
    face(table, EXACT[name](table.parameters()), indices, **options)
    eagerly(dense, EXACT[name](dense.parameters()), indices)
    np.testing.assert_array_equal(table.weight.numpy(), dense.weight.numpy())


@pytest.mark.parametrize("name", ["sgd", "adagrad"])
def test_few_of_many_rows_stand_again(name):
    index = np.append(RNG.permutation(8000)[:600], (7, 3, 7))
    tables = [wf.nn.Embedding(8000, 2, sparse=sparse) for sparse in (True, False)]
    for table in tables:
        table.weight.assign(np.linspace(-1, 1, 16000, dtype=np.float32).reshape(8000, 2))
        optimizer = EXACT[name](table.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            (table(wf.tensor(index)) ** 3).sum().backward()
            optimizer.step()
    np.testing.assert_array_equal(*[table.weight.numpy() for table in tables])


@every_face
@pytest.mark.parametrize("dtype", [np.float16, wf.bfloat16, np.float64], ids=str)
@pytest.mark.parametrize("name", ["sgd", "adagrad", "adam"])
def test_tables_of_other_precision(name, dtype, face):
    table, _ = trained(ALL[name], face, dtype=dtype)
    assert table.weight.dtype == dtype
    if name in EXACT:
        dense, _ = trained(ALL[name], eagerly, dtype=dtype, sparse=False)
        np.testing.assert_array_equal(
            table.weight.to(wf.float64).numpy(), dense.weight.to(wf.float64).numpy()
        )
    else:
        eager, _ = trained(ALL[name], eagerly, dtype=dtype)
        np.testing.assert_allclose(
            table.weight.to(wf.float64).numpy(), eager.weight.to(wf.float64).numpy(), rtol=1e-2
        )


def test_batches_of_any_size_in_one_graph():
    table, dense = make_table(), make_table(sparse=False)
    optimizer = wf.optim.SGD(table.parameters(), lr=0.1)
    with wf.Graph() as graph:
        index = wf.placeholder((None, None), wf.int64)
        step = optimizer.minimize((table(index) ** 2).sum())
    session = wf.Session(graph)
    other = wf.optim.SGD(dense.parameters(), lr=0.1)
    for shape in ((2, 3), (4, 1), (2, 3), (1, 7)):
        array = RNG.integers(0, ROWS, shape)
        session.run(step, {index: array})
        other.minimize((dense(wf.tensor(array)) ** 2).sum())
    np.testing.assert_array_equal(table.weight.numpy(), dense.weight.numpy())


@every_face
def test_an_index_out_of_range_changes_nothing(face):
    table = make_table()
    optimizer = wf.optim.Adam(table.parameters(), lr=0.1)
    bad = INDICES[0].copy()
    bad[1, 2] = ROWS
    with pytest.raises(IndexError, match="size 40"):
        face(table, optimizer, [bad])
    np.testing.assert_array_equal(table.weight.numpy(), TABLE)
    assert all(not np.any(x) for s in optimizer.state.values() for x in s.values())
    assert optimizer.t == 0


@every_face
def test_padding_is_not_trained(face):
    table, _ = trained(LAZY["adam"], face, [np.full((2, 5), 3)], padding_idx=3)
    np.testing.assert_array_equal(table.weight.numpy(), TABLE)


# -- together with other things --------------------------------------------------------------------


@every_face
def test_dense_and_sparse_parameters_in_one_optimizer(face):
    def nets(sparse):
        wf.manual_seed(0)
        table = make_table(sparse)
        return wf.nn.Sequential(table, wf.nn.Linear(WIDTH, WIDTH))

    sparse, dense = nets(True), nets(False)
    for net, way in ((sparse, face), (dense, eagerly)):
        proxy = _WithWeight(net)
        way(proxy, wf.optim.Adagrad(net.parameters(), lr=0.1), INDICES)
    for a, b in zip(sparse.parameters(), dense.parameters(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=2e-6, atol=1e-7)


class _WithWeight:
    """A net called like a table: with a weight, whose dtype the loss is in."""

    def __init__(self, net):
        self.net, self.weight = net, net[0].weight

    def __call__(self, index):
        return self.net(index)


@every_face
def test_a_table_that_is_also_read_whole_has_a_dense_gradient(face):
    class Tied:
        def __init__(self, sparse):
            self.table = make_table(sparse)
            self.weight, self.parameters = self.table.weight, self.table.parameters

        def __call__(self, index):
            rows = self.table(index)
            return rows + (rows @ self.weight.T).sum(-1, keepdim=True)

    tied, dense = Tied(True), Tied(False)
    face(tied, wf.optim.SGD(tied.parameters(), lr=0.01, weight_decay=0.1), INDICES)
    eagerly(dense, wf.optim.SGD(dense.parameters(), lr=0.01, weight_decay=0.1), INDICES)
    np.testing.assert_allclose(tied.weight.numpy(), dense.weight.numpy(), rtol=1e-4, atol=1e-5)


def test_a_resumed_run_goes_on_as_if_nothing_had_happened():
    make = LAZY["adam"]
    table, _ = trained(make, eagerly)
    first, optimizer = trained(make, eagerly, INDICES[:2])
    second = make_table()
    second.load_state_dict(first.state_dict())
    resumed = make(second.parameters())
    resumed.load_state_dict(optimizer.state_dict())
    eagerly(second, resumed, INDICES[2:])
    np.testing.assert_array_equal(second.weight.numpy(), table.weight.numpy())


def test_faces_may_alternate():
    table = make_table()
    optimizer = LAZY["adam"](table.parameters())
    for face, index in zip((eagerly, in_a_session, by_jit, eagerly), INDICES, strict=True):
        face(table, optimizer, [index])
    expected, _ = trained(LAZY["adam"], eagerly)
    np.testing.assert_allclose(table.weight.numpy(), expected.weight.numpy(), rtol=2e-6)


def test_who_holds_an_old_value_keeps_it():
    table = make_table()
    optimizer = LAZY["adam"](table.parameters())
    eagerly(table, optimizer, INDICES[:1])
    before, slot = table.weight.detach(), optimizer.state[table.weight]["exp_avg"]
    kept, kept_slot = before.numpy().copy(), slot.copy()
    eagerly(table, optimizer, INDICES[1:])
    np.testing.assert_array_equal(before.numpy(), kept)
    np.testing.assert_array_equal(slot, kept_slot)


def test_a_rule_may_keep_the_rows_that_it_was_given():
    rule = tx.per_value(
        lambda p: {"old": np.zeros_like(p), "kept": 0},
        lambda g, s, p: (-g, {"old": p, "kept": p}),
        slots=("old", "kept"),
        whole=None,
    )
    table = make_table()
    optimizer = wf.optim.TransformOptimizer(table.parameters(), rule)
    eagerly(table, optimizer, [np.arange(10).reshape(2, 5)])
    slots = optimizer.state[table.weight]
    np.testing.assert_array_equal(slots["old"][:10], TABLE[:10])
    np.testing.assert_array_equal(slots["kept"], TABLE[:10])
    assert (table.weight.numpy()[:10] != TABLE[:10]).any()


def test_an_update_is_in_place():
    table = make_table()
    optimizer = LAZY["adam"](table.parameters())
    eagerly(table, optimizer, INDICES[:1])
    arrays = [table.weight._value, optimizer.state[table.weight]["exp_avg"]]
    addresses = [array.__array_interface__["data"][0] for array in arrays]
    del arrays
    eagerly(table, optimizer, INDICES[1:])
    after = [table.weight._value, optimizer.state[table.weight]["exp_avg"]]
    assert [array.__array_interface__["data"][0] for array in after] == addresses


# -- what is refused -------------------------------------------------------------------------------


REFUSED = {
    "SGD": lambda params: wf.optim.SGD(params, lr=0.1, weight_decay=0.1),
    "Adam": lambda params: wf.optim.Adam(params, weight_decay=0.1),
    "AdamW": wf.optim.AdamW,
    "Adagrad": lambda params: wf.optim.Adagrad(params, weight_decay=0.1),
    "RMSprop": wf.optim.RMSprop,
    "Adadelta": wf.optim.Adadelta,
    "Adamax": wf.optim.Adamax,
    "NAdam": wf.optim.NAdam,
    "RAdam": wf.optim.RAdam,
    "LAMB": wf.optim.LAMB,
    "Lion": wf.optim.Lion,
    "ASGD": wf.optim.ASGD,
    "Rprop": wf.optim.Rprop,
    "Adafactor": wf.optim.Adafactor,
    "Muon": wf.optim.Muon,
}


@pytest.mark.parametrize("name", REFUSED)
def test_methods_that_move_all_rows_are_refused_with_the_way_out(name):
    table = make_table()
    optimizer = REFUSED[name](table.named_parameters())
    loss = loss_of(table, wf.tensor(INDICES[0]))
    loss.backward()
    message = rf"{name} cannot take .* of parameter weight, of shape \(40, 3\).*sparse=False"
    with pytest.raises(wf.WeftError, match=message):
        optimizer.step(loss=loss)
    np.testing.assert_array_equal(table.weight.numpy(), TABLE)


def test_weight_decay_and_dampening_say_why():
    table = make_table()
    loss_of(table, wf.tensor(INDICES[0])).backward()
    decayed = wf.optim.SGD(table.parameters(), lr=0.1, weight_decay=0.1)
    with pytest.raises(wf.WeftError, match="weight decay shrinks all rows"):
        decayed.step()
    dampened = wf.optim.SGD(table.parameters(), lr=0.1, momentum=0.9, dampening=0.5)
    with pytest.raises(wf.WeftError, match="dampening"):
        dampened.step()


def test_a_graph_refuses_when_the_step_is_built():
    table = make_table()
    with wf.Graph(), pytest.raises(wf.WeftError, match="RMSprop cannot take the row-sparse"):
        wf.optim.RMSprop(table.parameters()).minimize((table(wf.placeholder((2,), wf.int64))).sum())


@every_face
def test_sparse_adam_refuses_dense_gradients(face):
    table = make_table(sparse=False)
    with pytest.raises(
        wf.WeftError, match=r"SparseAdam takes row-sparse gradients alone.*sparse=True"
    ):
        face(table, wf.optim.SparseAdam(table.parameters()), INDICES[:1])


def test_lbfgs_makes_them_dense():
    table, dense = make_table(), make_table(sparse=False)
    for one in (table, dense):
        optimizer = wf.optim.LBFGS(one.parameters(), lr=0.1)

        def closure(one=one, optimizer=optimizer):
            optimizer.zero_grad()
            loss = loss_of(one, wf.tensor(INDICES[0]))
            loss.backward()
            return loss

        optimizer.step(closure)
    np.testing.assert_array_equal(table.weight.numpy(), dense.weight.numpy())


# -- around a step ---------------------------------------------------------------------------------


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("clip", ["norm", "value"])
def test_clipping_is_that_of_the_dense_gradient(clip, jitted):
    def stepped(sparse):
        table = make_table(sparse)
        optimizer = wf.optim.SGD(table.parameters(), lr=0.1)

        def step(index):
            optimizer.zero_grad()
            loss_of(table, index).backward()
            if clip == "norm":
                norm = wf.optim.clip_grad_norm_(table.parameters(), 0.5)
            else:
                wf.optim.clip_grad_value_(table.parameters(), 0.3)
                norm = wf.tensor(0.0)
            optimizer.step()
            return norm

        run = wf.jit(step) if jitted else step
        norms = [float(run(wf.tensor(index))) for index in INDICES]
        return table.weight.numpy(), norms

    (sparse, norms), (dense, expected) = stepped(True), stepped(False)
    np.testing.assert_allclose(sparse, dense, rtol=1e-5)
    np.testing.assert_allclose(norms, expected, rtol=1e-5)


def test_one_jitted_function_for_batches_of_any_size():
    def trained_by(run):
        table = make_table()
        optimizer = LAZY["adam"](table.parameters())

        def step(index):
            optimizer.zero_grad()
            (table(index) ** 2).sum().backward()
            wf.optim.clip_grad_norm_(table.parameters(), 1.0)
            optimizer.step()

        stepped, rng = run(step), np.random.default_rng(1)
        for count in (3, 5, 8, 8, 0, 11, 1, 6):
            stepped(wf.tensor(rng.integers(0, ROWS, (count, 2))))
        return table.weight.numpy(), table.weight.grad.rows.shape

    (found, rows), (expected, shape) = trained_by(wf.jit), trained_by(lambda step: step)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert rows == shape


def test_loss_scaling_skips_what_is_not_finite():
    table = make_table(dtype=np.float16)
    optimizer = wf.optim.SGD(table.parameters(), lr=0.1)
    scaler = wf.optim.LossScaler(optimizer, 2.0**15)
    optimizer.minimize(loss_of(table, wf.tensor(INDICES[0])).to(wf.float32))
    skipped, scaler.factor = scaler.skipped, 8.0
    optimizer.minimize(loss_of(table, wf.tensor(INDICES[0])).to(wf.float32))
    assert (skipped, scaler.skipped) == (1, 1)
    assert not np.array_equal(table.weight.numpy(), TABLE.astype(np.float16))


def test_an_accumulator_goes_on_from_its_checkpoint():
    def accumulate(table, stop):
        accumulator = wf.optim.GradientAccumulator(EXACT["sgd"](table.parameters()), 2)
        for index in INDICES[:stop]:
            accumulator.minimize(loss_of(table, wf.tensor(index)))
        return accumulator

    whole, part = make_table(), make_table()
    accumulate(whole, 2)
    saved = accumulate(part, 1).state_dict()
    part.weight.grad = None
    resumed = wf.optim.GradientAccumulator(EXACT["sgd"](part.parameters()), 2)
    resumed.load_state_dict(saved)
    assert isinstance(part.weight.grad, wf.RowSparse)
    resumed.minimize(loss_of(part, wf.tensor(INDICES[1])))
    np.testing.assert_array_equal(part.weight.numpy(), whole.weight.numpy())


def test_schedules_change_the_rate():
    table = make_table()
    optimizer = wf.optim.Adagrad(table.parameters(), lr=0.1)
    schedule = wf.optim.lr.StepLR(optimizer, 1, gamma=0.0)
    eagerly(table, optimizer, INDICES[:1])
    schedule.step()
    before = table.weight.numpy().copy()
    eagerly(table, optimizer, INDICES[1:])
    np.testing.assert_array_equal(table.weight.numpy(), before)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "eager"])
def test_training_with_fit_clips_and_accumulates(compiled):
    x, y = RNG.integers(0, ROWS, (12, 2)), RNG.standard_normal((12, 1)).astype(np.float32)

    def fitted(sparse):
        wf.manual_seed(0)
        net = wf.nn.Sequential(make_table(sparse), wf.nn.Flatten(), wf.nn.Linear(2 * WIDTH, 1))
        loader = wf.data.DataLoader(wf.data.TensorDataset(wf.tensor(x), wf.tensor(y)), 3)
        updater = wf.train.Updater(
            net,
            wf.optim.Adagrad(net.parameters(), lr=0.1),
            wf.nn.functional.mse_loss,
            loader,
            accumulate=2,
            clip_norm=0.5,
            clip_value=0.4,
        )
        wf.train.Trainer(updater, stop=(2, "epoch"), out=None, compile=compiled).run()
        return net

    sparse, dense = fitted(True), fitted(False)
    assert isinstance(sparse[0].weight.grad, wf.RowSparse)
    for a, b in zip(sparse.parameters(), dense.parameters(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, atol=1e-6)
    sparse.compile("sgd", "mse", compile=compiled)
    history = sparse.fit(x, y, epochs=2, verbose=0)
    assert history.history["loss"][1] < history.history["loss"][0]


def test_errors_of_names_are_plain():
    table = make_table()
    loss_of(table, wf.tensor(INDICES[0])).backward()
    with pytest.raises(AttributeError, match=re.escape(".to_dense()")):
        table.weight.grad.mean()


@pytest.mark.parametrize("row", [-1, 40])
def test_rows_that_a_parameter_does_not_have(row):
    table = make_table()
    table.weight.grad = wf.RowSparse(wf.tensor([3, row]), wf.ones(2, 3), (40, 3))
    with pytest.raises(IndexError, match=rf"has rows from 0 to 39. Received: row {row}"):
        wf.optim.SGD(table.parameters(), lr=0.1).step()
    np.testing.assert_array_equal(table.weight.numpy(), TABLE)
