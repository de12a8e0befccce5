"""The runtime's own functions in LLVM IR: calls, buffers, threads, signals."""
