"""Sixty numerical functions with Python's control flow, or with that of graphs.

Each is an ordinary function of Weft that runs eagerly, with arguments at which it is called. They
are written as their users would write them: early returns, breaks, nested loops, counters, tests on
values. FUNCTIONS is the list; a function's arguments stand in its decorator.
"""

from __future__ import annotations

import numpy as np

import weft as wf

FUNCTIONS = []


def sample(*makers):
    """Add a function with arguments: arrays, or shapes of normal numbers."""

    def added(fn):
        FUNCTIONS.append((fn, makers))
        return fn

    return added


def arguments(makers, seed=0):
    """Return the arguments of a function as float64 arrays."""
    rng = np.random.default_rng(seed)
    return [
        rng.normal(size=m) if isinstance(m, tuple) else np.asarray(m, np.float64) for m in makers
    ]


# -- branches --------------------------------------------------------------------------------------


@sample(0.7)
def one_branch(x):
    if x > 0:
        x = x * x
    return x


@sample(-1.2)
def two_branches(x):
    if x > 0:  # noqa: SIM108  (a branch is what is tested)
        y = wf.sin(x)
    else:
        y = wf.exp(x)
    return y * x


@sample(1.5)
def chain_of_branches(x):
    if x < 0:
        return -x
    if x < 1:
        return x * x
    if x < 2:
        return wf.exp(x)
    return wf.log(x)


@sample(0.3, 0.9)
def nested_branches(x, y):
    if x > y:
        if y > 0:  # noqa: SIM108  (a branch is what is tested)
            z = x * y
        else:
            z = x - y
    elif y > 2 * x:
        z = y * y * x
    else:
        z = x + y
    return z


@sample(0.4)
def conditional_expression(x):
    y = wf.sin(x) if x > 0 else wf.cos(x)
    return y * (2.0 if y > 0.5 else x)


@sample(0.4, -2.0)
def logical_operators(x, y):
    if x > 0 and y > 0:
        return x * y
    if x > 0 or y > 0:
        return x - y * y
    return -x


@sample(0.4)
def negation_and_chains(x):
    if not x > 1 and 0 < x < 0.5:
        return x**3
    return wf.tanh(x)


@sample((4,))
def branch_on_a_norm(x):
    n = (x * x).sum()
    if n > 1:
        x = x / wf.sqrt(n)
    return (x**3).sum()


@sample(0.2, 1.4)
def huber(x, delta):
    r = abs(x)
    if r <= delta:
        return 0.5 * r * r
    return delta * (r - 0.5 * delta)


@sample(3.0, 2.0)
def larger_and_smaller(x, y):
    return max(x, y) ** 2 + min(x, y, x * y)


@sample((3,))
def several_results(x):
    if x.sum() > 0:
        a, b = x * 2, x.sum()
    else:
        a, b = -x, (x * x).sum()
    return a, b


@sample(0.3)
def variable_of_one_side(x):
    y = x * 2
    if y > 0:
        shift = wf.exp(y)
        y = y + shift
    return y


# -- while -----------------------------------------------------------------------------------------


@sample(2.0)
def newton_square_root(a):
    x = a
    while abs(x * x - a) > 1e-10:
        x = 0.5 * (x + a / x)
    return x


@sample(0.6)
def fixed_point_of_cosine(a):
    x, change = a, 1.0
    while change > 1e-12:
        new = wf.cos(a * x)
        change = abs(new - x)
        x = new
    return x


@sample(1.7, 0.3)
def doubling(x, y):
    n = 0
    while x < 100:
        x = x * 2 + y
        n += 1
    return x * n


@sample(0.5)
def series_until_small(x):
    term, total, k = 1.0, 0.0, 0
    while abs(term) > 1e-16:
        total = total + term
        k = k + 1
        term = term * x / k
    return total


@sample(2.0, 3.0)
def arithmetic_geometric_mean(a, b):
    while abs(a - b) > 1e-13:
        a, b = (a + b) / 2, wf.sqrt(a * b)
    return a


@sample(0.2, 0.9)
def bisection_by_values(lo, hi):
    for _ in range(12):
        mid = (lo + hi) / 2
        if wf.cos(mid) - mid > 0:
            lo = mid
        else:
            hi = mid
    return (lo + hi) * (lo + hi)


@sample(7.0)
def collatz_like(x):
    steps = 0
    while x > 1.5:
        if x > 4:  # noqa: SIM108  (a branch is what is tested)
            x = x / 2 + 0.1
        else:
            x = wf.sqrt(x)
        steps = steps + 1
    return x + steps


@sample((3,))
def while_over_a_vector(x):
    while (x * x).sum() < 50:
        x = x * 1.5 + wf.sin(x)
    return x.sum()


@sample(0.8)
def while_with_python_counter(x):
    n = 5
    while n > 0:
        x = wf.sin(x) + x * n
        n -= 1
    return x


# -- for -------------------------------------------------------------------------------------------


@sample(1.3)
def power_by_a_loop(x):
    y = x
    for _ in range(6):
        y = y * x
    return y


@sample((5,), 0.7)
def horner(c, x):
    y = 0.0
    for a in c:
        y = y * x + a
    return y


@sample((6,))
def running_sum_of_squares(x):
    s = 0.0
    for i in range(6):
        s = s + x[i] * x[i] * i
    return s


@sample((4, 3), (3,))
def rows_of_a_matrix(m, v):
    s = 0.0
    for row in m:
        s = s + wf.tanh((row * v).sum())
    return s


@sample((5,), (5,))
def zipped_rows(x, y):
    s, p = 0.0, 1.0
    for a, b in zip(x, y, strict=True):
        s = s + a * b
        p = p * (1 + a * a)
    return s * p


@sample((5,))
def enumerated_rows(x):
    s = 0.0
    for i, a in enumerate(x):
        if i % 2 == 0:  # noqa: SIM108  (a branch is what is tested)
            s = s + a * i
        else:
            s = s - wf.exp(a)
    return s


@sample((7,))
def positive_part_only(x):
    s = 0.0
    for a in x:
        if a > 0:
            s = s + wf.log1p(a)
    return s


@sample((6,))
def largest_so_far(x):
    best = x[0]
    for i in range(1, 6):
        if x[i] > best:
            best = x[i] * 1.0
    return best * best


@sample((6,))
def backwards(x):
    s = 0.0
    for a in reversed(x):
        s = wf.sin(s + a)
    return s


@sample((8,))
def every_third(x):
    s = x[0] * 0
    for i in range(7, 0, -3):
        s = s * 0.5 + x[i] ** 2
    return s


@sample((3, 4), (4, 2))
def triple_loop_product(a, b):
    s = 0.0
    for i in range(3):
        for j in range(2):
            p = 0.0
            for k in range(4):
                p = p + a[i, k] * b[k, j]
            s = s + p * p
    return s


@sample(0.9)
def loop_of_a_while(x):
    s = 0.0
    for i in range(4):
        y = x + i
        while y > 1:
            y = y / 2
        s = s + y * y
    return s


@sample(0.9)
def while_of_a_loop(x):
    y = x
    while y < 40:
        for k in range(3):
            y = y + wf.sqrt(y) * k
    return y


@sample((3, 3))
def triangle(a):
    s = 0.0
    for i in range(3):
        for j in range(3):
            if j <= i:  # noqa: SIM108  (a branch is what is tested)
                s = s + a[i, j] ** 2
            else:
                s = s - a[i, j]
    return s


# -- early exits -----------------------------------------------------------------------------------


@sample((8,))
def stop_at_a_threshold(x):
    s = 0.0
    for a in x:
        if s > 0.5:
            break
        s = s + a * a
    return s


@sample((8,))
def skip_negative(x):
    s = 1.0
    for a in x:
        if a < 0:
            continue
        s = s * (1 + a)
    return s


@sample((8,))
def first_above(x):
    for a in x:
        if a > 0.3:
            return a * a
    return x.sum()


@sample((8,))
def return_from_nested_loops(x):
    for i in range(4):
        for j in range(2):
            y = x[2 * i + j]
            if y > 0.4:
                return y * (i + 1) + j
    return x[0]


@sample(1.1)
def break_of_a_while(x):
    n = 0
    while True:
        x = x * 1.4
        n = n + 1
        if x > 10 or n > 20:
            break
    return x * x


@sample((6,))
def break_and_continue(x):
    s = 0.0
    for i in range(6):
        if x[i] < -1:
            continue
        s = s + wf.exp(x[i])
        if s > 3:
            break
        s = s + 0.1
    return s


@sample(0.7)
def early_return_of_a_while(x):
    k = 0
    while k < 10:
        x = wf.sin(x) + 0.2
        if x < 0.75:
            return x * k
        k += 1
    return x


@sample((5,))
def inner_break(x):
    s = 0.0
    for i in range(5):
        y = x[i]
        for _ in range(10):
            if abs(y) < 0.1:
                break
            y = y / 2
        s = s + y
    return s


# -- recurrences -----------------------------------------------------------------------------------


@sample(0.3, 3.6)
def logistic_map(x, r):
    for _ in range(20):
        x = r * x * (1 - x)
    return x


@sample(1.0, 1.0)
def fibonacci(a, b):
    for _ in range(15):
        a, b = b, a + b
    return a * b


@sample((5, 3), (3, 3), (3,))
def recurrent_network(xs, w, b):
    h = wf.zeros(3, dtype=wf.float64)
    for x in xs:
        h = wf.tanh(w @ h + x + b)
    return (h * h).sum()


@sample((6,), 0.6, 0.2)
def exponential_smoothing(x, alpha, beta):
    level, trend = x[0], x[1] - x[0]
    for i in range(1, 6):
        last = level
        level = alpha * x[i] + (1 - alpha) * (level + trend)
        trend = beta * (level - last) + (1 - beta) * trend
    return level + trend


@sample(1.0, 0.0, 0.1)
def harmonic_oscillator(q, p, h):
    for _ in range(25):
        p = p - h * q
        q = q + h * p
    return q * q + p


@sample(0.5, 0.05)
def runge_kutta(y, h):
    def slope(y):
        return y * (1 - y)

    for _ in range(10):
        k1 = slope(y)
        k2 = slope(y + h / 2 * k1)
        k3 = slope(y + h / 2 * k2)
        k4 = slope(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


@sample((7,))
def alternating_signs(x):
    s, sign = 0.0, 1.0
    for a in x:
        s = s + sign * a * a
        sign = -sign
    return s


@sample((4, 3), (3, 3))
def scan_of_a_graph(xs, w):
    h, ys = wf.scan(lambda h, x: (wf.tanh(w @ h + x), (h * x).sum()), xs[0], xs)
    return ys.sum() + h.sum()


@sample(0.4)
def while_loop_of_a_graph(x):
    def body(state):
        y, k = state
        return wf.cond(y > 1, lambda: y / 2, lambda: y * 3 + x), k + 1

    y, _ = wf.while_loop(lambda state: state[1] < 6, body, (x, 0))
    return y * y


# -- linear algebra --------------------------------------------------------------------------------


@sample((4, 4), (4,))
def power_iteration(a, v):
    for _ in range(8):
        v = a @ v
        v = v / wf.sqrt((v * v).sum())
    return v @ (a @ v)


@sample((3, 3), (3,))
def conjugate_gradients(m, b):
    a = m @ m.T + 3 * wf.eye(3, dtype=wf.float64)
    x = b * 0
    r = b
    p = r
    rr = r @ r
    while rr > 1e-20:
        ap = a @ p
        alpha = rr / (p @ ap)
        x = x + alpha * p
        r = r - alpha * ap
        new = r @ r
        p = r + new / rr * p
        rr = new
    return x @ x


@sample((3, 3))
def cholesky_by_columns(m):
    a = m @ m.T + 4 * wf.eye(3, dtype=wf.float64)
    c = a * 0
    for j in range(3):
        s = a[j, j] - (c[j] * c[j]).sum()
        c[j, j] = wf.sqrt(s)
        for i in range(3):
            if i > j:
                c[i, j] = (a[i, j] - (c[i] * c[j]).sum()) / c[j, j]
    return wf.log(c[0, 0]) + wf.log(c[1, 1]) + c[2, 2] * c[2, 0]


@sample((3, 3), (3,))
def solved_and_conditioned(m, b):
    a = m + 5 * wf.eye(3, dtype=wf.float64)
    x = wf.linalg.solve(a, b)
    if x.sum() > 0:
        return (x * b).sum()
    return (x * x).sum() + wf.linalg.det(a)


@sample((3, 3))
def newton_inverse(m):
    a = m @ m.T + wf.eye(3, dtype=wf.float64)
    x = a / (a * a).sum()
    for _ in range(30):
        x = x @ (2 * wf.eye(3, dtype=wf.float64) - a @ x)
    return (x * x).sum()


@sample((3, 3), (3,))
def forward_substitution(m, b):
    x = b * 0
    for i in range(3):
        x[i] = (b[i] - (m[i] * x).sum()) / (m[i, i] + 4)
    return (x * x).sum()


@sample((3, 3))
def gram_schmidt(a):
    q = a * 0
    for i in range(3):
        v = a[i]
        for j in range(3):
            if j < i:
                v = v - (q[j] @ a[i]) * q[j]
        q[i] = v / wf.sqrt(v @ v)
    return (q * a).sum()


@sample((3, 3))
def factored_log_determinant(m):
    a = m @ m.T + 2 * wf.eye(3, dtype=wf.float64)
    factor = wf.linalg.cholesky(a)
    s = 0.0
    for i in range(3):
        s = s + 2 * wf.log(factor[i, i])
    return s
