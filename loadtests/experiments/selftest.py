"""Checks the load generator on this machine, and whether the rules would reject what it measures.

It is the check with which each session begins that sends open arrivals (`lab.generator_check`),
judged by the rules as a run of questions that take SERVICE_TIME_S.
"""

from dataclasses import replace

from loadtests.generation.run import judge_run
from loadtests.lab import generator_check
from loadtests.lab.content import Metric, Report, format_time
from loadtests.lab.experiment import Experiment, Run
from loadtests.lab.repeated import reasons_by_run
from loadtests.lab.results import Results, ResultsError
from loadtests.lab.sentences import Sentences

SERVICE_TIME_S = 0.04


def measure(run: Run) -> None:
    """Check the generator, and judge that; it is near its own saturation there on purpose."""
    record, facts = generator_check.check(run)
    facts = replace(facts, before_s=SERVICE_TIME_S, client_cpu=None)
    judge_run(run.results.folder, record, facts)


def analyse(results: Results) -> Report:
    """Make the report. Its `failure` says why this machine is too noisy, if it is.

    Raises ResultsError if the check did not come to its end.
    """
    lines, rejections = generator_check.last_check(results), reasons_by_run(results)
    if not lines or lines[-1].run not in rejections:
        raise ResultsError(f"{results.folder} has no check that came to its end")
    findings = Sentences("selftest")(
        "findings",
        reasons=list(filter(None, rejections[lines[-1].run].split("; "))),
        is_shared=results.manifest().get("shared", False),
        service_time=format_time(SERVICE_TIME_S),
        limit_per_s=generator_check.limit_per_s(lines),
    )
    return Report(
        findings,
        [],
        [Metric(f"generator_error[{n.rate_per_s:g}]", n.error_s, "s") for n in lines],
        failure=findings[0] if rejections[lines[-1].run] else "",
    )


EXPERIMENT = Experiment(
    name="selftest",
    study="",
    title="Selftest: is this machine good for measurements?",
    reproduces="our own check: what the load generator adds, up to which rate, and the rules",
    about=(
        "The load generator, at 50 to 800 requests a second, and an independent client ask a "
        "server that answers at once. Then the rules that reject runs judge the generator's "
        f"requests, as for questions of {format_time(SERVICE_TIME_S)}."
    ),
    measure=measure,
    analyse=analyse,
)
