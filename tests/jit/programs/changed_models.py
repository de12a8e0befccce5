"""Models and optimizers that are changed between two calls: layers, weights, attributes, state."""

from __future__ import annotations

import copy
import functools
import types

import weft as wf
from tests.jit.harness import Call, Case, array, program, rows

F = wf.nn.functional


class Net(wf.nn.Module):
    """Two layers with an option between them."""

    def __init__(self):
        super().__init__()
        self.first, self.second = wf.nn.Linear(3, 4), wf.nn.Linear(4, 1)
        self.slope, self.act = 1.0, "tanh"

    def forward(self, x):
        return self.second(getattr(self.first(x) * self.slope, self.act)())


def _changed(jit, change, again=None, momentum=0.0):
    """Return a training step before and after something changes the net and the optimizer."""
    net = Net()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1, momentum=momentum)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    acts = {2: change, 5: again or (lambda *parts: None)}
    before = {at: functools.partial(act, net, optimizer) for at, act in acts.items()}
    calls = [Call(rows(4, 3, seed=s), before=before.get(s)) for s in range(7)]
    return Case(step, calls, {"net": net, "optimizer": optimizer})


@program()
def layer_replaced(jit):
    def change(net, optimizer):
        net.second = wf.nn.Linear(4, 2)

    return _changed(jit, change)


@program()
def layer_replaced_by_one_of_that_shape(jit):
    def change(net, optimizer):
        net.second = wf.nn.Linear(4, 1)

    return _changed(jit, change)


@program()
def parameter_assigned(jit):
    def change(net, optimizer):
        net.first.weight = wf.nn.Parameter(wf.ones((4, 3)) * 0.1)

    return _changed(jit, change)


@program()
def bias_removed(jit):
    def change(net, optimizer):
        net.second.bias = None

    return _changed(jit, change)


@program()
def attribute_changed(jit):
    def change(net, optimizer):
        net.slope = 0.25

    def again(net, optimizer):
        net.act = "exp"

    return _changed(jit, change, again)


@program()
def attribute_of_another_type(jit):
    def change(net, optimizer):
        net.slope = wf.tensor([1.0, 2.0, 3.0, 4.0])

    def again(net, optimizer):
        net.slope = 1

    return _changed(jit, change, again)


@program()
def parameters_added_to_the_optimizer(jit):
    net = Net()
    net.second.requires_grad_(False)
    optimizer = wf.optim.SGD(net.first.parameters(), lr=0.1, momentum=0.9)

    @jit
    def step(x):
        optimizer.zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    def unfreeze():
        net.second.requires_grad_()
        optimizer.add_param_group({"params": net.second.parameters(), "lr": 0.01})

    calls = [Call(rows(4, 3, seed=s), before=unfreeze if s == 3 else None) for s in range(6)]
    return Case(step, calls, {"net": net, "optimizer": optimizer})


@program()
def hyperparameters_changed(jit):
    def change(net, optimizer):
        optimizer.param_groups[0]["momentum"] = 0.9

    def again(net, optimizer):
        optimizer.param_groups[0].update(weight_decay=0.1, nesterov=True)

    return _changed(jit, change, again, momentum=0.5)


@program()
def weights_loaded(jit):
    def change(net, optimizer):
        net.load_state_dict({k: wf.full(v.shape, 0.1) for k, v in net.state_dict().items()})

    return _changed(jit, change)


@program()
def state_saved_and_restored(jit):
    kept = {}

    def save(net, optimizer):
        kept["net"] = {k: v.clone() for k, v in net.state_dict().items()}
        kept["optimizer"] = copy.deepcopy(optimizer.state_dict())

    def restore(net, optimizer):
        net.load_state_dict(kept["net"])
        optimizer.load_state_dict(kept["optimizer"])

    return _changed(jit, save, restore, momentum=0.9)


@program()
def weights_written_from_outside(jit):
    def change(net, optimizer):
        with wf.no_grad():
            net.first.weight.copy_(wf.tensor(array(4, 3, seed=8)))
            net.first.bias.zero_()

    return _changed(jit, change)


@program()
def optimizer_replaced(jit):
    net = Net()
    parts = {"optimizer": wf.optim.SGD(net.parameters(), lr=0.1)}

    @jit
    def step(x):
        parts["optimizer"].zero_grad()
        loss = net(x).square().mean()
        loss.backward()
        parts["optimizer"].step()
        return loss

    def replace():
        parts["optimizer"] = wf.optim.Adam(net.parameters(), lr=0.01)

    calls = [Call(rows(4, 3, seed=s), before=replace if s == 3 else None) for s in range(6)]
    return Case(step, calls, {"net": net, "parts": parts})


@program()
def converted_to_float64(jit):
    net = Net()

    @jit
    def step(x):
        net.zero_grad()
        loss = net(x.to(net.first.weight.dtype)).square().mean()
        loss.backward()
        return loss

    calls = [Call(rows(4, 3, seed=s), before=net.double if s == 2 else None) for s in range(5)]
    return Case(step, calls, {"net": net})


@program()
def forward_replaced(jit):
    def change(net, optimizer):
        net.forward = types.MethodType(lambda self, x: self.second(self.first(x)), net)

    return _changed(jit, change)


@program()
def method_of_the_class_replaced(jit):
    class Own(Net):
        pass

    net = Own()

    @jit
    def step(x):
        return net(x)

    def replace():
        Own.forward = lambda self, x: self.first(x)

    calls = [Call(rows(4, 3, seed=s), before=replace if s == 2 else None) for s in range(4)]
    return Case(step, calls, {"net": net})


@program()
def layers_appended(jit):
    layers = wf.nn.ModuleList([wf.nn.Linear(3, 3)])

    @jit
    def step(x):
        for layer in layers:
            x = layer(x).tanh()
        return x

    def append():
        layers.append(wf.nn.Linear(3, 3))

    calls = [Call(rows(2, 3, seed=s), before=append if s in (2, 4) else None) for s in range(6)]
    return Case(step, calls, {"layers": layers})


@program()
def deep_copy_of_the_model(jit):
    net = Net()
    models = {"copy": None}

    @jit
    def step(model, x):
        model.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        with wf.no_grad():
            for p in model.parameters():
                p.sub_(0.1 * p.grad)
        return loss

    def both(x):
        result = step(net, x)
        if models["copy"] is not None:
            result = result, step(models["copy"], x)
        return result

    def copy_it():
        models["copy"] = copy.deepcopy(net)

    calls = [Call(rows(4, 3, seed=s), before=copy_it if s == 2 else None) for s in range(5)]
    return Case(both, calls, {"net": net, "models": models})


@program()
def best_weights_kept_inside(jit):
    net = Net()
    best = {}

    @jit
    def step(x):
        loss = net(x).square().mean()
        net.zero_grad()
        loss.backward()
        with wf.no_grad():
            for p in net.parameters():
                p.sub_(0.5 * p.grad)
        if not best or loss < best["loss"]:
            best.update(loss=loss.item(), weights=net.state_dict())
        return loss

    return Case(step, [(rows(4, 3, seed=s),) for s in range(6)], {"net": net, "best": best})


@program()
def gradients_switched_on_and_off(jit):
    def change(net, optimizer):
        net.first.weight.requires_grad_(False)

    def again(net, optimizer):
        net.first.weight.requires_grad_(True)

    return _changed(jit, change, again)


@program()
def momentum_cleared(jit):
    def change(net, optimizer):
        optimizer.state.clear()

    return _changed(jit, change, momentum=0.9)


@program()
def grads_set_from_outside(jit):
    net = Net()
    optimizer = wf.optim.SGD(net.parameters(), lr=0.1)

    @jit
    def step(x):
        net(x).square().mean().backward()
        optimizer.step()

    def set_grads():
        for p in net.parameters():
            p.grad = wf.ones(p.shape)

    def clear_one():
        net.first.bias.grad = None

    acts = (None, None, set_grads, None, clear_one, None)
    calls = [Call(rows(4, 3, seed=s), before=act) for s, act in enumerate(acts)]
    return Case(step, calls, {"net": net})


@program()
def submodule_in_evaluation(jit):
    net = wf.nn.Sequential(wf.nn.Linear(3, 4, bias=False), wf.nn.BatchNorm1d(4), wf.nn.Dropout(0.5))

    @jit
    def step(x):
        return net(x)

    acts = (None, None, net[1].eval, None, net[2].eval, net.train, None)
    calls = [Call(rows(6, 3, seed=s), before=act) for s, act in enumerate(acts)]
    return Case(step, calls, {"net": net})


class Options:
    """What a layer is told apart from its own attributes."""

    shift = 0.5


class Scaled(wf.nn.Linear):
    """A layer that was derived: what its forward reads is its own, not Weft's."""

    def __init__(self):
        super().__init__(3, 3)
        self.scale, self.powers, self.options = 1.0, {"first": 2.0}, Options()

    def forward(self, x):
        return super().forward(x) * self.scale + self.powers["first"] + self.options.shift


@program()
def attributes_of_a_derived_layer_changed(jit):
    net = wf.nn.Sequential(Scaled(), wf.nn.Tanh())

    @jit
    def step(x):
        return net(x)

    acts = {
        2: lambda: setattr(net[0], "scale", 3.0),
        4: lambda: net[0].powers.update(first=0.25),
        6: lambda: setattr(net[0].options, "shift", 2.0),
    }
    calls = [Call(rows(4, 3, seed=s), before=acts.get(s)) for s in range(8)]
    return Case(step, calls, {"net": net})


@program(captured=False)  # what a layer reads of itself is not seen one by one: recorded anew
def counter_of_a_derived_layer(jit):
    class Counting(Scaled):
        def forward(self, x):
            self.scale += 1.0
            return super().forward(x)

    net = Counting()
    return Case(jit(net), [(rows(4, 3, seed=s),) for s in range(5)], {"net": net})
