"""The runtime: from IR text to code that runs.

Enters: the text of LLVM modules, addresses of data. Leaves: functions that can be called.

    native   text -> object code -> addresses in this process
    objects  object code made once: memory, then the disk (store), then LLVM
    threads  the pool that `weft_parallel_for` spreads chunks over
    calls    a Python callable for a native entry point, without per-argument Python work
    arena    aligned, pre-touched memory

The submodules are imported by name: `store` is wanted where llvmlite need not be loaded.
"""
