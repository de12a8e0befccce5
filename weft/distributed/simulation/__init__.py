"""Predict a training step on many ranks from one on this machine: `wf.distributed.simulate`.

Enters: a captured step, whose kernels are measured, and a network as latency and bandwidth. Leaves:
time and memory of a step for each number of ranks, what holds it up, and what to divide.

    network    what moving bytes among ranks takes (alpha-beta model)
    calibration the same, measured between ranks that run
    measured   kernels of a step with their times, and when each gradient is complete
    timeline   gradients on their way while the rest is computed
    predictions steps on numbers of ranks, as a table
"""
