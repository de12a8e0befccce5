"""What several processes compute together: sums, copies and parts of one another's tensors.

A tensor of this process enters, what was made of those of all leaves. Their kernels go to the
processes' connections, which stand above (weft/distributed). Imports core.
"""

NAMESPACE = None
