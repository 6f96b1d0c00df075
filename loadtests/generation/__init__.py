"""Load generation: open and closed workloads on Locust, with a raw record of every request.

An experiment needs `run` (one run against a server), `calibrating`, `schedule` and `rules`:

    from random import Random
    from loadtests.generation.calibrating import calibrate
    from loadtests.generation.run import judge_run, open_run
    from loadtests.generation.schedule import Request, arrivals, demanded, gamma_demands
    from loadtests.models.random_times import poisson_times
    from loadtests.servers.gunicorn import FCFS
    from loadtests.servers.known import known_server

    with known_server(FCFS, log=folder / "server.log") as server:
        choices = {"known": [Request("known", "/?service_s=0.0405", 0.0405)]}
        before = calibrate(server, choices, requests=200, run="before", folder=folder)
        random = Random(21)
        times_s = poisson_times(0.8 / before.mean_s, random, count=2000)
        schedule = arrivals(times_s, demanded(gamma_demands(0.0405, 0.03, random)))
        record = open_run(server, schedule, run="open-0.8-rep01", folder=folder)
        after = calibrate(server, choices, requests=200, run="after", folder=folder)
    judge_run(folder, record, record.facts(before, after))

The modules `client`, `pacing` and `node` run inside Locust, on gevent; all others do not import it.
"""
