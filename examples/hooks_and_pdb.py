"""Look inside the backward pass: hooks, retained gradients, and the debugger.

A Weft program is a Python program, in backward too. A hook is called with a gradient at the moment
it is known, and may replace it; a `wf.Function` has a backward of its own; in both, `print` and
`pdb` work as anywhere else, and an exception has a plain traceback.

    python examples/hooks_and_pdb.py
    python examples/hooks_and_pdb.py --pdb      stops inside backward: try `p g`, `w`, then `c`
"""

import argparse

import weft as wf


def differentiate():
    """Compute y = x**2 + x and its derivative 2x + 1 at x = 5."""
    x = wf.tensor([5.0], requires_grad=True)
    y = x**2 + x
    y.backward()
    print(f"y = x**2 + x at x = 5:  y = {y.item():g}, dy/dx = {x.grad.item():g}")
    return x.grad.item()


def watch_gradients():
    """Print each gradient as backward reaches it, and keep that of an intermediate result."""
    x = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)
    square = x * x
    total = square.sum()

    # Backward frees the gradients of intermediate results; ask for those you want to read after.
    square.retain_grad()
    # Backward goes from the result to the leaves, so the hook on `square` is called first. A hook
    # that returns None only looks.
    square.register_hook(lambda g: print(f"  gradient of square: {g.tolist()}"))
    x.register_hook(lambda g: print(f"  gradient of x:      {g.tolist()}"))
    total.backward()
    return square.grad.tolist()


def clip_gradient():
    """Replace a gradient on its way: here each element is kept within [-3, 3]."""
    x = wf.tensor([1.0, 2.0, 3.0], requires_grad=True)
    handle = x.register_hook(lambda g: wf.clip(g, -3.0, 3.0))
    (x * x).sum().backward()
    clipped = x.grad.tolist()

    handle.remove()  # from now on the gradient arrives as it is
    x.grad = None  # backward adds to .grad, so forget the first result
    (x * x).sum().backward()
    print(f"  clipped: {clipped}, with the hook removed: {x.grad.tolist()}")
    return clipped


def stop_in_hook(use_pdb):
    """Stop in a hook: the gradient is a tensor in a local variable."""
    x = wf.tensor([0.5, -1.0], requires_grad=True)
    y = wf.tanh(x)

    def inspect(g):
        if use_pdb:
            # `p g` shows the gradient; `p y` what it belongs to; `u` goes up to the walk itself.
            breakpoint()  # noqa: T100  (what --pdb asks for)
        print(f"  inside the hook: g = {g.tolist()}")

    y.register_hook(inspect)
    y.sum().backward()


class Cube(wf.Function):
    """The cube of each element, with a derivative rule of our own."""

    use_pdb = False

    @staticmethod
    def forward(ctx, x):
        """Compute the value, and save what the derivative will need."""
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        """Return the gradient of the input from that of the output."""
        (x,) = ctx.saved_tensors
        if Cube.use_pdb:
            # This frame is an ordinary one: step with `n`, change a value with `g = g * 2`.
            breakpoint()  # noqa: T100  (what --pdb asks for)
        return g * 3 * x * x


def stop_in_function(use_pdb):
    """Stop in the backward of a function that we wrote."""
    Cube.use_pdb = use_pdb
    x = wf.tensor([1.0, 2.0], requires_grad=True)
    Cube.apply(x).sum().backward()
    print(f"  gradient of the cube: {x.grad.tolist()}")
    return x.grad.tolist()


def main():
    """Run each part and check what it found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--pdb", action="store_true", help="stop in the debugger inside backward")
    parser.add_argument("--quick", action="store_true", help="accepted for uniformity; it is quick")
    args = parser.parse_args()

    grad = differentiate()
    print("hooks that look:")
    square_grad = watch_gradients()
    print("a hook that replaces:")
    clipped = clip_gradient()
    print("a hook as a place to stop:")
    stop_in_hook(args.pdb)
    print("a function with its own backward:")
    cube_grad = stop_in_function(args.pdb)

    expected = (11.0, [1.0, 1.0, 1.0], [2.0, 3.0, 3.0], [3.0, 12.0])
    if (grad, square_grad, clipped, cube_grad) != expected:
        raise SystemExit("a gradient is not what it should be")
    print(f"grad: {grad:g}")


if __name__ == "__main__":
    main()
