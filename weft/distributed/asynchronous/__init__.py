"""Training in which workers do not wait for one another: parameter servers, and local SGD.

Some ranks are servers: each holds some of the parameters, with their optimizer, in memory that MPI
lets the others read and write (a one-sided window). Workers fetch parameters, compute gradients and
leave them there. How old the parameters of a gradient may be is bounded, exactly.

    admission   who may begin and whose gradient may be applied, so that none is older than allowed
    layout      which server has which parameters, and where in its memory they and gradients lie
    windows     words and arrays in the memory of another rank
    server      what a server does until all workers have ended
    client      what a worker does at each step
    training    `parallel(mode="async")`: an optimizer whose steps are taken by servers
    local       `parallel(mode="local")`: steps of one's own, averaged now and then
"""
