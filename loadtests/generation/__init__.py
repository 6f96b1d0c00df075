"""Generates load: open and closed workloads on Locust, with a raw record of every request.

An experiment needs `run` (one run against a server), `schedule` and `rules`:

    with known_server(FCFS, log=folder / "server.log") as server:
        generator = Generator(folder, seed=21)
        choices = {"known": [Request("known", "/?service_s=0.0405", 0.0405)]}
        before = generator.calibrate(server, choices, "before", requests=200)
        times_s = poisson_times(0.8 / before.mean_s, random, count=2000)
        schedule = arrivals(times_s, demanded(gamma_demands(0.0405, 0.03, random)))
        record = generator.open(server, schedule, "open-0.8-rep01")
        after = generator.calibrate(server, choices, "after", requests=200)
    judge_run(folder, record, record.facts(before, after))

`calibration` computes E[S] from one customer, `rows` keeps raw rows, `options` has the options of
the locustfiles, `interactions` are requests measured as one, `bulk` posts from many threads. The
modules `asking`, `client`, `sql`, `waiting` and `node` run inside Locust, on gevent; all others do
not import it.
"""
