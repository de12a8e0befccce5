"""Eager operations on large tensors as machine code.

Which of NumPy and compiled code computes must not show in the results: a training that was killed
and resumed has met fewer operations than one that was not, and ends with the same weights. So there
are two kinds of operators:

    those that round at most once   the code equals NumPy bit for bit. From LARGE elements on it is
    (`exact` operators)             compiled in the background when an operation comes for the
                                    second time, and takes over as soon as it is ready
    all others                      the code may differ in the last bits. From LARGE elements on it
                                    always computes, and the first use waits for it

A chooser stands in the place of an operator's kernel once there are large tensors (core/large.py).
If it meets small operands it goes on to the reference kernel, as it does with operands that code
does not take (not in C order, say). An operation is an operator with attributes, shapes and dtypes.

    uses          what is known of operations that were met, and their code
    choosers      for operators; products: for matrix products and convolutions; pullbacks: for the
                  gradients of elementwise operators
    composites    the same for whole composites
    background    the thread that compiles what can wait
    compilation   operations as graphs, which go through the same compiler as every graph
    composite_kernel
                  composites as graphs: a program for the results, and one for the gradients;
                  residuals: what the first leaves for the second; lookups: rows that an
                  embedding made, which are multiplied once each
    array_program machine code as a function of arrays
    on_devices    operations on tensors in the memory of a device, each one launch

This package is what fills `large_kernels` of core/large.py. Only the last three groups load the
compiler.
"""

from .choosers import install_chooser
from .composites import run_composite

__all__ = ["install_chooser", "run_composite"]
