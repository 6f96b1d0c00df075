"""The performance lab's models: queueing formulas, networks, replays, simulations, statistics.

Pure: no files, clock, threads or network. Where chance is needed, a `random.Random` is handed in,
so that the same seed gives the same numbers. `tests/test_imports.py` holds the package to it. It is
the one part of `loadtests` that the frontend may import: a page of its shows these models.

    steady_state    what a model of an open queue answers; `Unstable` where there is no answer
    single_server   M/M/1, M/G/1 (first come, first served), M/G/1 with processor sharing
    multi_server    M/M/m, and M/G/m by Allen and Cunneen
    laws            utilisation law, Little's law, forced flow, interactive response time
    visits          visit ratios of a routing, service demands, the bottleneck
    stations        the stations of a closed network, for `bounds` and `mva`
    bounds          asymptotic and balanced-job bounds
    mva             exact mean value analysis
    closed_network  simulation of a closed network whose times are not exponential
    distributions   of service times
    arrivals        Poisson arrivals
    replay          recorded arrivals and service times through a queue
    protocol        what a short, repeated experiment is expected to see
    samples         mean, variance, coefficient of variation
    student_t       quantiles of Student's t
    estimates       confidence intervals, paired differences, the verdict on a model
    scalability     the universal scalability law
    recorded        customers in the system over time, Little's law, utilisation of a recorded run
    curves          what the study's figures 2 to 5 show

Symbols and units, everywhere: arrival rate λ (1/s), service time S (s), its variance σ² (s²), its
coefficient of variation cv = σ/E[S], utilisation ρ, waiting time W (s, without service), response
time R (s, with service), customers N, those waiting Nq, servers m, visit ratio V, service demand
D = V·S (s), throughput X (1/s), think time Z (s).
"""
