"""Running, keeping, analysing and comparing, with an experiment of six rows."""

import errno
import re
import signal
import subprocess
import sys
import xml.dom.minidom
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from loadtests import __main__ as command
from loadtests import experiments
from loadtests.experiments import running
from loadtests.experiments.running import resume, run
from loadtests.generation.run import REQUESTS
from loadtests.lab.content import (
    NO_BREAK,
    Cell,
    Figure,
    Metric,
    Report,
    Section,
    Table,
    shown,
    together,
)
from loadtests.lab.experiment import Experiment, Options, Run
from loadtests.lab.report import drawing
from loadtests.lab.report.drawing import Axis, Series, drawn
from loadtests.lab.report.page import FOLDED_ROWS, report_page
from loadtests.lab.results import NothingCounts, Results, ResultsError
from loadtests.machine_samples import Sample
from loadtests.models.estimates import Interval
from loadtests.processes import PROJECT, ProgramFailed, free_port
from loadtests.servers.null import null_server
from tests.api.processes import until
from tests.loadtests.lab.miniature import BOTH, EMULATED, EXPERIMENT


@pytest.fixture(autouse=True)
def _known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "experiment", BOTH.__getitem__)
    monkeypatch.setattr(command, "experiment", BOTH.__getitem__)
    # Drawings take long, and are looked at by themselves.
    monkeypatch.setattr(drawing, "drawn", lambda x, y, series: "<svg></svg>")


def done(folder: Path, chosen: Experiment = EXPERIMENT, **options: object) -> Results:
    run(chosen, Options(**options), folder, lambda text: None)  # type: ignore[arg-type]
    return Results(folder)


def report_of(results: Results) -> str:
    return (results.folder / "report.html").read_text(encoding="utf-8")


class TestRunning:
    def test_leaves_a_manifest_tables_a_summary_and_a_report(self, tmp_path: Path) -> None:
        results = done(tmp_path / "one")
        manifest = results.manifest()
        assert (manifest["experiment"], manifest["state"]) == ("miniature", "complete")
        assert manifest["title"] == "Squares"
        assert manifest["machine"]["cores"] >= 1
        assert [row["square"] for row in results.rows("squares")][-1] == "25.0"
        assert results.summary()["metrics"][0]["value"] == 25

    def test_makes_the_same_report_again_byte_for_byte(self, tmp_path: Path) -> None:
        results = done(tmp_path / "one")
        before = {p.name: p.read_bytes() for p in results.folder.iterdir()}
        running.analyse(results)
        assert {p.name: p.read_bytes() for p in results.folder.iterdir()} == before

    def test_keeps_and_analyses_what_was_measured_before_an_interrupt(self, tmp_path: Path) -> None:
        with pytest.raises(KeyboardInterrupt):
            done(tmp_path / "one", reps=4)
        results = Results(tmp_path / "one")
        assert results.manifest()["state"] == "interrupted"
        assert len(results.rows("squares")) == 4
        assert "was interrupted" in report_of(results)

    def test_that_ended_with_an_error_shows_it(self, tmp_path: Path) -> None:
        def fails(run: Run) -> None:
            EXPERIMENT.measure(run)
            raise ProgramFailed("answered 500.")

        failing = replace(EXPERIMENT, measure=fails)
        with pytest.raises(ProgramFailed):
            run(failing, Options(), tmp_path / "one", lambda text: None)
        page = report_of(Results(tmp_path / "one"))
        assert "This run ended with an error (answered 500). It shows" in page

    def failing(self, folder: Path, problem: Exception, *, can_resume: bool, host: str = "") -> str:
        """What the command says, and the manifest keeps, if measuring fails so."""

        def fails(_: Run) -> None:
            raise problem

        failing = replace(
            EXPERIMENT,
            measure=fails,
            can_resume=can_resume,
        )
        with pytest.raises((OSError, ProgramFailed)) as raised:
            run(failing, Options(host=host), folder, lambda text: None)
        assert Results(folder).manifest()["problem"] == str(raised.value)
        return str(raised.value)

    @pytest.mark.parametrize("can_resume", [True, False])
    @pytest.mark.parametrize(
        "problem",
        [
            ConnectionRefusedError(111, "refused"),
            OSError(errno.EHOSTUNREACH, "No route"),
            OSError(errno.EADDRNOTAVAIL, "No port"),
            ProgramFailed("210 of 210 requests failed"),
        ],
    )
    def test_that_lost_its_service_says_so_and_how_it_goes_on(
        self, tmp_path: Path, problem: Exception, *, can_resume: bool
    ) -> None:
        nobody = f"http://127.0.0.1:{free_port()}"
        message = self.failing(tmp_path / "one", problem, can_resume=can_resume, host=nobody)
        assert message.startswith("the service is not reached any more: [Errno ")
        assert (f"`scripts/lab resume {tmp_path}/one` goes on" in message) is can_resume

    @pytest.mark.parametrize("can_resume", [True, False])
    def test_that_was_interrupted_says_how_it_goes_on(
        self, tmp_path: Path, *, can_resume: bool
    ) -> None:
        chosen, messages = replace(EXPERIMENT, can_resume=can_resume), list[str]()
        with pytest.raises(KeyboardInterrupt):
            run(chosen, Options(reps=4), tmp_path / "one", messages.append)
        again = f"; `scripts/lab resume {tmp_path}/one` goes on" if can_resume else ""
        assert messages[0] == f"interrupted; what was measured is kept{again}"

    def test_that_failed_otherwise_is_not_said_to_have_lost_its_service(
        self, tmp_path: Path
    ) -> None:
        full, wrong = OSError(errno.ENOSPC, "No space left"), ProgramFailed("answered 500")
        assert "No space left" in self.failing(tmp_path / "one", full, can_resume=True)
        with null_server(tmp_path / "log") as server:
            for name, host in (("two", server.url), ("three", "")):
                message = self.failing(tmp_path / name, wrong, can_resume=True, host=host)
                assert message == "answered 500"

    def test_says_why_no_report_was_made(self, tmp_path: Path) -> None:
        messages: list[str] = []
        with pytest.raises(KeyboardInterrupt):
            run(EXPERIMENT, Options(reps=0), tmp_path / "one", messages.append)
        assert any("no report was made: " in line for line in messages)

    def test_goes_on_only_where_the_experiment_can(self, tmp_path: Path) -> None:
        results = done(tmp_path / "one")
        with pytest.raises(ResultsError, match="miniature, which cannot be resumed"):
            resume(results.folder, lambda text: None)
        assert results.manifest()["state"] == "complete"
        with pytest.raises(ResultsError, match="is not a folder of results"):
            resume(tmp_path / "two", lambda text: None)

    def test_never_writes_over_results(self, tmp_path: Path) -> None:
        done(tmp_path / "one")
        with pytest.raises(ResultsError, match="never written over"):
            done(tmp_path / "one")

    def test_refuses_to_divide_what_is_not_emulated(self, tmp_path: Path) -> None:
        with pytest.raises(ResultsError, match="--scale divides emulated times"):
            done(tmp_path / "one", scale=5)


def test_no_line_of_a_report_begins_with_a_sign() -> None:
    assert together("+3 ± 1 % of it") == f"+3{NO_BREAK}±{NO_BREAK}1{NO_BREAK}% of it"


class TestTables:
    def test_a_row_that_was_cut_off_is_left_out(self, tmp_path: Path) -> None:
        (tmp_path / "cut.csv").write_bytes(b"x,y\r\n1,2\r\n3,")
        assert Results(tmp_path).rows("cut") == [{"x": "1", "y": "2"}]

    def test_none_is_empty_and_numbers_lose_nothing(self, tmp_path: Path) -> None:
        results = Results(tmp_path)
        with results.table("samples", Sample) as table:
            table.add(Sample(0.1 + 0.2, 0.0, None, 0.0))
        (row,) = results.rows("samples")
        assert (row["at_s"], row["server_cpu"]) == ("0.30000000000000004", "")

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("[]", "it holds no object"),
            ('{"experiment": "miniature"}', "lacks mode"),
            ("{", "JSON"),
        ],
    )
    def test_a_manifest_of_something_else_is_named(
        self, tmp_path: Path, text: str, problem: str
    ) -> None:
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(ResultsError, match=f"manifest.json .*{problem}"):
            running.analyse(Results(tmp_path))
        with pytest.raises(ResultsError, match=f"manifest.json .*{problem}"):
            resume(tmp_path, print)

    def test_a_missing_table_and_a_strange_folder_are_named(self, tmp_path: Path) -> None:
        with pytest.raises(ResultsError, match=r"has no table other\.csv"):
            Results(tmp_path).rows("other")
        with pytest.raises(ResultsError, match="is not a folder of results"):
            running.analyse(Results(tmp_path))


class TestReport:
    def test_escapes_text_and_loads_nothing(self, tmp_path: Path) -> None:
        page = report_of(done(tmp_path / "one"))
        assert "The largest is 25 &amp; no more." in page
        assert "a &lt;neighbour&gt; was loud" in page
        assert "<script" not in page
        assert not re.findall(r'(?:src|href)="(?!#)[^"]*"', page)

    def test_every_figure_of_emulated_storage_says_so_in_its_caption(self, tmp_path: Path) -> None:
        emulated = report_of(done(tmp_path / "one", EMULATED))
        captions = re.findall("<figcaption>(.*?)</figcaption>", emulated)
        assert captions == ["They grow. Emulated storage, K = 100."]
        assert "They grow.</figcaption>" in report_of(done(tmp_path / "two"))

    def test_a_caption_tells_the_waits_where_the_experiment_has_them(self, tmp_path: Path) -> None:
        results = done(tmp_path / "one", EMULATED, scale=10)
        waiting = replace(EMULATED, waited=": reading waits {read_ms} ms, checking {check_ms} ms")
        page = report_page(waiting, results.manifest(), EXPERIMENT.analyse(results), [])
        caption = "They grow. Emulated storage, K = 10: reading waits 4.6 ms, checking 3.9 ms."
        assert f"<figcaption>{caption}</figcaption>" in page

    def test_tells_its_mode_and_what_is_emulated(self, tmp_path: Path) -> None:
        real = report_of(done(tmp_path / "real", quick=True))
        emulated = report_of(done(tmp_path / "emulated", EMULATED))
        assert (
            "<p>It squares.</p>\n<p>Reproduces nothing of study 002.</p>\n<p>In tables, ±" in real
        )
        assert ["It proves nothing." in page for page in (real, emulated)] == [True, False]
        assert "<dt>reps</dt><dd>–</dd>" in real, "nobody chose how many"
        assert "the service as shipped" in real
        assert "K = 100, with the study's times of a block: 46/K ms for reading it" in emulated
        assert "Waits took their place. This tests queueing behaviour" in emulated
        assert "Emulated storage" not in real

    def test_lists_rejected_runs_and_the_errata_of_its_study(self, tmp_path: Path) -> None:
        page = report_of(done(tmp_path / "one"))
        assert "Runs: 2. Rejected by rule: 1; these are kept, but count nowhere." in page
        assert "All runs (2 rows)</summary>" in page  # folded, as the errata are
        assert re.search(r"Errata of study 002 \(\d+ rows\)</summary>", page)
        assert "Schema validation in Go" in page
        assert "Equation (1)" not in page

    @pytest.mark.parametrize(
        ("cell", "text"),
        [
            (40.499375, "40.5"),
            (0.05, "0.0500"),
            (1234.5, "1,234"),
            (999.7, "1,000"),
            (0.000012, "1.20e-05"),
            (None, "–"),
            (1234567, "1,234,567"),
            ("word", "word"),
            (0.0, "0.00"),
            (Interval(1000.0, 512.0), f"1,000{NO_BREAK}±{NO_BREAK}512"),
            (Interval(3.0), "3.00"),
        ],
    )
    def test_numbers_have_three_digits(self, cell: Cell, text: str) -> None:
        assert shown(cell) == text

    def test_the_interval_of_an_amount_does_not_begin_below_0(self) -> None:
        assert Metric.of_amount("a", Interval(1.0, 2.0), "s") == Metric("a", 1.0, "s", 0.0, 3.0)
        assert Metric.of_amount("a", Interval(1.0)) == Metric("a", 1.0)


class TestDrawing:
    LINE = (
        Axis("x / s"),
        Axis("y / s"),
        [Series("a", "ours", [1, 2], [1, None], [0, None], [2, None])],
    )

    def test_is_the_same_each_time_and_well_formed(self) -> None:
        assert drawn(*self.LINE) == drawn(*self.LINE)
        xml.dom.minidom.parseString(drawn(*self.LINE))

    def test_follows_the_colours_of_the_page(self) -> None:
        assert "var(--data-1)" in drawn(*self.LINE)
        assert "#a1000" not in drawn(*self.LINE)

    def test_of_nothing_positive_a_logarithmic_axis_is_drawn_all_the_same(self) -> None:
        x, y = Axis("x", is_logarithmic=True), Axis("y", is_logarithmic=True)
        xml.dom.minidom.parseString(drawn(x, y, [Series("a", "ours", [1, 2], [None, None])]))

    def test_bars_that_lie_have_words_beside_them(self) -> None:
        words = ["a word that is long", "another"]
        here = Series("here", "ours", words, [3.0, None], [2.0, None], [4.0, None], shape="rows")
        there = Series("there", "study", words, [None, 2000.0], shape="rows")
        lie = drawn(Axis("s", is_logarithmic=True), Axis(""), [here, there])
        xml.dom.minidom.parseString(lie)
        assert all(f">{text}<" in lie for text in [*words, "here", "there"])

    def test_two_figures_share_no_id(self) -> None:
        other = drawn(Axis("x"), Axis("y"), [Series("b", "study", ["p"], [1], shape="rows")])
        ids = [set(re.findall(r'\bid="([^"]+)"', svg)) for svg in (drawn(*self.LINE), other)]
        assert all(ids)
        assert not ids[0] & ids[1]

    def test_every_reference_has_its_target(self) -> None:
        svg = drawn(*self.LINE)
        targets = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
        assert targets <= set(re.findall(r'\bid="([^"]+)"', svg))
        assert not re.findall(r'(?:src|href)="(?!#)', svg)


class TestCommand:
    def ask(self, *arguments: object) -> Result:
        return CliRunner().invoke(command.main, [str(argument) for argument in arguments])

    def test_writes_reports_again(self, tmp_path: Path) -> None:
        folder = done(tmp_path / "one").folder
        (folder / "report.html").unlink()
        assert self.ask("analyse", folder).exit_code == 0
        assert (folder / "report.html").exists()

    @pytest.mark.parametrize("option", ["--workers 2", "--calibration one.csv", "--out ."])
    def test_says_which_options_only_files_have(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("one.csv").touch()
        outcome = self.ask("analyse", tmp_path, *option.split())
        assert outcome.exit_code == 2
        assert "--workers, --calibration and --out are for files" in outcome.output

    def test_names_an_experiment_that_does_not_exist(self) -> None:
        outcome = self.ask("run", "nothing")
        assert outcome.exit_code == 2
        assert "nothing" in outcome.output

    @pytest.mark.parametrize("number", ["nan", "inf", "-inf", "1e999"])
    @pytest.mark.parametrize(
        "words",
        [
            ("pi", "http://127.0.0.1:1", "--minutes"),
            ("run", "open-workload", "--scale"),
            ("pi", "http://127.0.0.1:1", "--loads"),
            ("run", "open-workload", "--loads"),
        ],
    )
    def test_numbers_are_finite(self, words: tuple[str, ...], number: str) -> None:
        outcome = self.ask(*words, number)
        assert outcome.exit_code == 2
        assert f"Invalid value for '{words[-1]}': {number} is not a finite number" in outcome.output

    def test_says_what_is_wrong_without_a_traceback(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr("sys.argv", ["lab", "analyse", str(tmp_path)])
        assert command.run_command() == 1
        assert "error:" in capsys.readouterr().err
        monkeypatch.setattr("sys.argv", ["lab", "run", "micro", "--out", "/proc/none"])
        monkeypatch.setattr(command, "experiment", lambda name: EXPERIMENT)
        assert command.run_command() == 1
        assert "micro: [Errno" in capsys.readouterr().err
        older = done(tmp_path / "older").folder
        (older / "requests.csv").write_text("run,took\r\n", encoding="utf-8")
        monkeypatch.setattr("sys.argv", ["lab", "analyse", str(older)])
        assert command.run_command() == 1
        assert "requests.csv: ['run', 'took'] is not a Row" in capsys.readouterr().err

    def test_all_divides_what_is_emulated_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(command, "NAMES", [*BOTH])
        assert self.ask("run", "all", "--scale", 5, "--out", tmp_path).exit_code == 0
        scales = {
            path.name.split("-")[0]: Results(path).manifest()["scale"]
            for path in tmp_path.iterdir()
        }
        assert scales == {"miniature": None, "emulated": 5}

    def test_an_experiment_that_cannot_be_made_keeps_none_of_the_others_from_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def measure(_: Run) -> None:
            raise ProgramFailed("mariadbd is missing")

        known = {"first": replace(EXPERIMENT, name="first", measure=measure), **BOTH}
        monkeypatch.setattr(command, "NAMES", [*known])
        monkeypatch.setattr(command, "experiment", known.__getitem__)
        monkeypatch.setattr(running, "experiment", known.__getitem__)
        outcome = self.ask("run", "all", "--out", tmp_path)
        assert (outcome.exit_code, len([*tmp_path.glob("*/report.html")])) == (1, len(BOTH))
        assert "first: mariadbd is missing" in outcome.output


def test_every_experiment_with_emulated_storage_says_what_waits_in_it() -> None:
    known = map(experiments.experiment, experiments.NAMES)
    emulated = [experiment for experiment in known if experiment.mode == "emulated"]
    assert {experiment.name for experiment in emulated} == {"open-workload", "queueing-network"}
    assert len({experiment.emulated_so for experiment in emulated}) == 2
    assert len({experiment.waited for experiment in emulated}) == 2


def test_every_experiment_is_what_its_name_says() -> None:
    loaded = {"open-workload", "queueing-network", "request-rate", "server-threads"}
    for name in experiments.NAMES:
        chosen = experiments.experiment(name)
        assert chosen.name == name
        assert chosen.has_loads == (name in loaded)


class TestFailing:
    def test_an_experiment_that_says_no_ends_with_status_1_and_says_so_last(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        failing = replace(EXPERIMENT, analyse=lambda results: Report(["No."], [], failure="no!"))
        monkeypatch.setattr(running, "experiment", lambda name: failing)
        monkeypatch.setattr(command, "experiment", lambda name: failing)
        chosen = command.main.commands["run"].params[0]
        monkeypatch.setattr(chosen, "type", click.STRING)
        monkeypatch.setattr("sys.argv", ["lab", "run", "miniature", "--out", str(tmp_path)])
        assert command.run_command() == 1
        assert capsys.readouterr().err.splitlines()[-1] == "Error: miniature: no!"

    def test_a_run_of_which_nothing_counts_is_a_failure(self, tmp_path: Path) -> None:
        results = done(tmp_path / "one")
        assert not results.summary()["failure"]
        table = tmp_path / "one" / "runs.csv"
        table.write_text(table.read_text(encoding="utf-8").replace("yes", "no"), encoding="utf-8")
        assert "all runs (2) were rejected" in running.analyse(results).failure
        assert "all runs (2) were rejected" in results.summary()["failure"]
        assert results.summary()["conclusion"].startswith("All runs (2) were rejected by rule")

    def test_a_report_says_how_many_of_its_runs_were_rejected(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        results = done(tmp_path / "one")
        report = running.analyse(results)
        assert report.findings[-1].startswith("1 of 2 runs were rejected by rule")
        assert not report.failure

        def without(results: Results) -> Report:
            raise NothingCounts(f"{results.folder} has no run of the other kind")

        monkeypatch.setattr(
            running, "experiment_of", lambda _: replace(EXPERIMENT, analyse=without)
        )
        report = running.analyse(results)
        assert report.findings[0] == "This result has no run of the other kind."
        assert report.findings[1].startswith("1 of 2 runs were rejected by rule")
        assert report.failure.endswith(" by rule, so this result has no run of the other kind")

    def test_a_table_that_is_lost_is_an_error_whatever_was_rejected(self, tmp_path: Path) -> None:
        results = done(tmp_path / "one")
        report = report_of(results)
        (results.folder / "squares.csv").unlink()
        with pytest.raises(ResultsError, match=r"has no table squares\.csv"):
            running.analyse(results)
        assert report_of(results) == report

    def test_only_a_threshold_decides_the_status_of_a_report_that_is_made_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder, row = done(tmp_path / "one").folder, "one,0,k,0.0,0.0,,0.1,,200,"
        header = "run,index,kind,intended_s,sent_s,server_start_s,done_s,service_s,status,worker"
        (folder / "requests.csv").write_text(f"{header}\n{row}\n{row}\n", encoding="utf-8")
        self.make_runs_open(folder)
        failing = replace(EXPERIMENT, analyse=lambda results: Report(["No."], [], failure="No."))
        monkeypatch.setattr(running, "experiment", lambda name: failing)
        assert running.analyse(Results(folder), ["p99 > 1 ms"]).failure.startswith("No; ")
        page = (folder / "report.html").read_text(encoding="utf-8")
        assert "By --fail-if this fails: one: p99 is 100 ms, and it fails if p99 &gt; 1 ms." in page
        for limit, status in (("p99 > 1 s", 0), ("p99 > 1 ms", 1)):
            words = ["analyse", str(folder), "--fail-if", limit]
            assert CliRunner().invoke(command.main, words).exit_code == status
            results = Results(folder)
            results.write_manifest(results.manifest() | {"fail_if": [limit]})  # as of `run`
            assert CliRunner().invoke(command.main, words[:2]).exit_code == status

    def make_runs_open(self, folder: Path) -> None:
        table = (folder / "runs.csv").read_text(encoding="utf-8").splitlines()
        with_workload = [line + "open" * (",yes," in line) for line in table]
        (folder / "runs.csv").write_text("\n".join([*with_workload, ""]), encoding="utf-8")

    def test_a_threshold_is_a_failure_if_no_load_counts(self, tmp_path: Path) -> None:
        results = done(tmp_path / "one")
        assert running.analyse(results, ["p99 > 9 s"]).failure == running.NO_LOAD
        assert not running.analyse(results).failure
        self.make_runs_open(results.folder)
        assert running.analyse(results, ["p99 > 9 s"]).failure == running.NO_LOAD

    def test_of_all_experiments_those_without_loads_are_not_judged(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(command, "NAMES", ["miniature"])
        monkeypatch.setattr(command.main.commands["run"].params[0], "type", click.STRING)
        for name, status in (("all", 0), ("miniature", 1)):
            words = ["run", name, "--fail-if", "p99 > 9 s", "--out", str(tmp_path / name)]
            assert CliRunner().invoke(command.main, words).exit_code == status
            assert (tmp_path / name).exists() == (name == "all")


def page_of(*sections: Section) -> str:
    manifest = {"mode": "real", "scale": None, "state": "complete", "quick": False}
    return report_page(EXPERIMENT, manifest, Report([], sections), [])


class TestFolding:
    def test_a_table_of_many_rows_is_opened_by_who_wants_it(self) -> None:
        def page(rows: int) -> str:
            table = Table("Squares", ("x",), [[row] for row in range(rows)])
            return page_of(Section("s", parts=[table]))

        assert "<details>" not in page(FOLDED_ROWS)
        assert f"Squares ({FOLDED_ROWS + 1} rows)</summary>" in page(FOLDED_ROWS + 1)


def test_a_section_of_nothing_but_the_first_figure_has_no_heading_of_its_own() -> None:
    first = Figure("f", "<svg></svg>", "It is drawn.", Table("Numbers", ("x",), ()))
    sections = [Section("Alone", parts=[first]), Section("With words", ["Words."], [first])]
    page = page_of(*sections)
    assert page.count("<figure>") == 1
    assert ("Alone" in page, "With words" in page) == (False, True)


def test_a_figure_without_a_measurement_has_no_table_of_headings_alone() -> None:
    def page(*rows: list[float]) -> str:
        figure = Figure("f", "<svg></svg>", "It is drawn.", Table("Numbers", ("x",), rows))
        return page_of(Section("s", parts=[figure]))

    assert "The numbers" not in page()
    assert "The numbers" in page([1.0])


@pytest.mark.parametrize(
    ("chosen", "options", "expected"),
    [
        (EMULATED, {}, 100),
        (EMULATED, {"quick": True}, 400),
        (EMULATED, {"scale": 7}, 7),
        (EXPERIMENT, {}, None),
    ],
)
def test_a_scale_that_nobody_chose_is_the_experiments_and_is_told(
    tmp_path: Path, chosen: Experiment, options: dict[str, object], expected: object
) -> None:
    assert done(tmp_path / "one", chosen, **options).manifest()["scale"] == expected


def test_run_says_which_command_measures_a_running_service() -> None:
    words = ["run", "open-workload", "--host", "http://127.0.0.1:1"]
    refused = CliRunner().invoke(command.main, words)
    assert refused.exit_code == 2
    assert "to measure a running service, use scripts/lab pi URL" in refused.output


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_lab_that_is_told_to_end_keeps_what_was_measured(
    tmp_path: Path, number: signal.Signals
) -> None:
    command = [sys.executable, "-m", "loadtests", "run", "open-workload", "--quick", "--out"]
    command.append(str(tmp_path))
    with subprocess.Popen(command, cwd=PROJECT, stderr=subprocess.PIPE, text=True) as lab:
        until(lambda: any(tmp_path.glob(f"*/{REQUESTS}")), within_s=60)
        lab.send_signal(number)
        _, output = lab.communicate(timeout=60)
    assert lab.returncode == 130
    assert "interrupted; what was measured is kept" in output
    (folder,) = tmp_path.iterdir()
    assert Results(folder).manifest()["state"] == "interrupted"
    assert Results(folder).manifest()["ended"]
