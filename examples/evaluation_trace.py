"""Print the evaluation trace of z = x*y + sin(x), forwards and backwards.

Automatic differentiation sees a program as a list of elementary steps v1, v2, ... (Griewank and
Walther 2008, chapter 2). Forward mode carries a tangent dv along with each value and needs one pass
for each input. Reverse mode carries an adjoint, bar v = dz/dv, from the last step to the first and
gives the derivatives with respect to all inputs in one pass.

    python examples/evaluation_trace.py --x 0.5 --y 4.2
"""

import argparse
import math

import weft as wf

STEPS = ("v-1 = x", "v0  = y", "v1  = v-1 * v0", "v2  = sin(v-1)", "v3  = v1 + v2")


def evaluate(x, y):
    """Return every step of the program; the last one is z."""
    v1 = x * y
    v2 = wf.sin(x)
    v3 = v1 + v2
    return x, y, v1, v2, v3


def tangent_trace(x, y, dx, dy):
    """Return dv of each step in the direction (dx, dy): one pass of forward mode."""
    primals = wf.tensor(x, dtype=wf.float64), wf.tensor(y, dtype=wf.float64)
    tangents = wf.tensor(dx, dtype=wf.float64), wf.tensor(dy, dtype=wf.float64)
    _, dv = wf.jvp(evaluate, primals, tangents)
    return [float(d) for d in dv]


def adjoint_trace(x, y):
    """Return the values of all steps, their adjoints, and the order in which these were known."""
    inputs = (wf.tensor(v, dtype=wf.float64, requires_grad=True) for v in (x, y))
    trace = evaluate(*inputs)
    order = []
    for step, v in enumerate(trace):
        v.retain_grad()  # adjoints of intermediate steps are dropped unless asked for
        v.register_hook(lambda _, step=step: order.append(step))
    trace[-1].backward()
    return [v.item() for v in trace], [v.grad.item() for v in trace], order


def print_table(values, dv_dx, dv_dy, adjoints):
    """Print one row a step: value, tangents towards x and y, adjoint."""
    print(
        "step".ljust(15) + "".join(f"{name:>11}" for name in ("value", "dv/dx", "dv/dy", "dz/dv"))
    )
    print(
        "".ljust(15)
        + "".join(f"{name:>11}" for name in ("primal", "tangent", "tangent", "adjoint"))
    )
    print("-" * 59)
    for step, *row in zip(STEPS, values, dv_dx, dv_dy, adjoints, strict=True):
        print(f"{step:15}" + "".join(f"{number:11.6f}" for number in row))
    print("-" * 59)
    print("primals and tangents are computed downwards, adjoints upwards\n")


def main():
    """Trace the program and compare both modes with the derivatives known from calculus."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--x", type=float, default=0.5)
    parser.add_argument("--y", type=float, default=4.2)
    parser.add_argument("--quick", action="store_true", help="accepted for uniformity; it is quick")
    args = parser.parse_args()
    x, y = args.x, args.y

    dv_dx = tangent_trace(x, y, 1.0, 0.0)
    dv_dy = tangent_trace(x, y, 0.0, 1.0)
    values, adjoints, order = adjoint_trace(x, y)
    print_table(values, dv_dx, dv_dy, adjoints)
    print("adjoints became known in the order:", ", ".join(STEPS[i].split()[0] for i in order))

    analytic = (y + math.cos(x), x)
    print(f"analytic: dz/dx = y + cos(x) = {analytic[0]:.6f}, dz/dy = x = {analytic[1]:.6f}")
    forward = (dv_dx[-1], dv_dy[-1])
    reverse = (adjoints[0], adjoints[1])
    print(f"forward:  dz/dx = {forward[0]:.6f}, dz/dy = {forward[1]:.6f}  (the last row)")
    print(f"reverse:  dz/dx = {reverse[0]:.6f}, dz/dy = {reverse[1]:.6f}  (the first two rows)")
    error = max(abs(a - b) for a, b in zip(forward + reverse, analytic * 2, strict=True))
    print(f"max error: {error:.1e}")


if __name__ == "__main__":
    main()
