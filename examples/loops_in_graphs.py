"""Differentiate through loops whose number of trips depends on the data.

Kepler's equation M = E - e sin(E) has no solution in closed form; Newton's iteration finds E in a
few trips, how many depends on M and e. The iteration is a `while_loop` in a graph, and its
derivatives (dE/dM, d2E/dM2) by reverse mode are compared with those of the implicit function.

    python examples/loops_in_graphs.py
"""

import argparse
import math

import weft as wf

TOLERANCE = 1e-14


def kepler(mean_anomaly, eccentricity):
    """Return the eccentric anomaly E and how many steps Newton's iteration took."""

    def error(anomaly):
        return anomaly - eccentricity * wf.sin(anomaly) - mean_anomaly

    def improve(carry):
        anomaly, steps = carry
        slope = 1.0 - eccentricity * wf.cos(anomaly)
        return anomaly - error(anomaly) / slope, steps + 1

    # The last step counts for the derivatives: it is taken from the solution itself.
    found, steps = wf.while_loop(
        lambda carry: abs(error(carry[0])) > TOLERANCE, improve, (mean_anomaly, 0)
    )
    refined, _ = improve((found, steps))
    twice, _ = improve((refined, steps))
    return twice, steps


def exact_derivatives(anomaly, e):
    """Return dE/dM and d2E/dM2 of the implicit function."""
    slope = 1.0 - e * math.cos(anomaly)
    return 1.0 / slope, -e * math.sin(anomaly) / slope**3


def main():
    """Solve for several orbits in one graph."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="accepted for uniformity; it is quick")
    parser.parse_args()
    with wf.Graph() as graph:
        m = wf.placeholder((), wf.float64, name="M")
        e = wf.placeholder((), wf.float64, name="e")
        anomaly, steps = kepler(m, e)
        first = wf.gradients(anomaly, m)
        second = wf.gradients(first, m)
    worst = 0.0
    print("    M     e   steps          E      dE/dM    d2E/dM2")
    with wf.Session(graph) as session:
        for mean, ecc in [(0.5, 0.1), (1.0, 0.5), (2.5, 0.8), (0.2, 0.9), (3.0, 0.3)]:
            fetches = [steps, anomaly, first, second]
            trips, *values = session.run(fetches, {m: mean, e: ecc})
            numbers = [float(v) for v in values]
            print(
                f"{mean:5.1f} {ecc:5.1f} {int(trips):7d} {' '.join(f'{v:10.6f}' for v in numbers)}"
            )
            exact = exact_derivatives(numbers[0], ecc)
            errors = (abs(a - b) / abs(b) for a, b in zip(numbers[1:], exact, strict=True))
            worst = max(worst, *errors)
    print(f"largest relative error of the derivatives: {worst:.1e}")


if __name__ == "__main__":
    main()
