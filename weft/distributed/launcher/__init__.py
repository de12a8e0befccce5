"""Start many processes and watch over them: mpiexec, heartbeats, logs, restarts.

Enter: a script with its arguments and how many ranks there shall be. Leave: its exit status, a log
of each rank, and what went wrong, once. Nothing here knows tensors; ranks find one another by MPI.

    mpiexec     the command that starts ranks, for the MPI that is installed
    messages    what ranks and the launcher say to one another
    heartbeat   a thread in each rank that tells the launcher that it lives
    watcher     what the launcher knows of every rank: lost, silent, slow
    output      what ranks print: one terminal, a log of each
    job         one attempt, from start to end
    worker      what runs in each rank, around the user's script
"""
