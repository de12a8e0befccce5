"""Programs that `wf.jit` must run exactly as eager code does."""
