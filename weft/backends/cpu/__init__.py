"""The CPU: kernels as LLVM IR, machine code, threads and memory."""
