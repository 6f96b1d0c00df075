"""Computes what the lab predicts: queueing formulas, networks, replays, simulations, statistics.

The models are pure: without files, clock, threads or network, which `tests/test_imports.py` checks.
Where chance is needed, a `random.Random` is an argument, so that the same seed gives the same
numbers. Arguments outside the domain, as too few values, are a ValueError, unless a docstring says
that they are not checked. The frontend, which shows the models on a page, may import nothing else
of `loadtests`.

    open_queue         M/G/1, M/M/m, M/G/m: means by formula, and each with its replay
    laws               the stations of closed networks, and their demands
    bounds             asymptotic and balanced-job bounds
    networks           closed, open and mixed networks with several classes of customers
    mva                exact mean value analysis of one class, and its curve with bounds
    random_times       Poisson arrivals, and distributions of service times
    replay             recorded arrivals and service times, sent through a queue
    protocol           the results to expect of a short, repeated experiment
    sample_statistics  variance, coefficient of variation, quantiles
    student_t          quantiles of Student's t
    estimates          confidence intervals, the verdict on a model

Symbols and units, everywhere: arrival rate λ (1/s), service time S (s), its variance σ² (s²), its
coefficient of variation cv = σ/E[S], utilisation ρ, waiting time W (s, without service), response
time R (s, with service), customers N, those waiting Nq, servers m, visit ratio V, service demand
D = V·S (s), throughput X (1/s), think time Z (s).
"""
