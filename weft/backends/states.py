"""The lock of states, one for all back ends.

It is held while a program that writes states runs, from its reading them to its writing them, and
while another one looks up the arrays of those it reads. Whoever holds an array is safe afterwards:
what others see is not written to. A fork waits for it, so that a child has no half of an update.
"""

from ..core.locks import fork_safe_lock

STATES = fork_safe_lock("states")
