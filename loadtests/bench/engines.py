"""Asks the service, DuckDB and Spark the same questions about one ledger, and compares times.

    .venv/bin/python -m backend export parquet EXPORT
    .venv/bin/pip install duckdb==2.0.1 pyspark==4.3.0        # Spark needs Java, too
    .venv/bin/python -m loadtests.bench.engines LEDGER EXPORT

The engines read the export with their defaults, on all cores: DuckDB in this process, Spark in
local mode, which is left out where it is not installed. Each question is asked about several
flights, and the median time counts; no answer is cached. Answers that differ are an error.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from urllib.parse import quote

import duckdb

from loadtests.bench.session import SEED, timed
from loadtests.processes import ProgramFailed, Service, answer, running
from loadtests.questions import drawn, sample

FLIGHTS = 5
Answer = tuple[Any, ...]
Facts = Mapping[str, str]  # of a flight, by the names of fields, and of days around it


class Question(NamedTuple):
    """Asks all engines. path: for the service; "": it cannot be asked. pick: takes its answer."""

    what: str
    sql: str
    path: str = ""
    pick: Callable[[Any], Answer] = tuple


Ask = Callable[[Question, Facts], Answer]

QUESTIONS = (
    Question(
        "what happened to a flight",
        "SELECT count(*) FROM flights WHERE OP_CARRIER_FL_NUM = {OP_CARRIER_FL_NUM} "
        "AND FL_DATE = DATE '{FL_DATE}'",
        "/filter_transactions?OP_CARRIER_FL_NUM={OP_CARRIER_FL_NUM}&FL_DATE={FL_DATE}",
        lambda content: (content["count"],),
    ),
    Question(
        "how late a carrier was, in days of a month",
        "SELECT count(*), avg(ARR_DELAY) FROM flights "
        "WHERE OP_CARRIER_AIRLINE_ID = {OP_CARRIER_AIRLINE_ID} AND {THESE_DAYS}",
        "/average_delays?OP_CARRIER_AIRLINE_ID={OP_CARRIER_AIRLINE_ID}&INITIAL_DATE={INITIAL_DATE}"
        "&FINAL_DATE={FINAL_DATE}",
        lambda content: (content["flights"], content["average_delay"]),
    ),
    Question(
        "how many flights a route had, in days of a month",
        "SELECT count(*) FROM flights WHERE ORIGIN_CITY_NAME = '{ORIGIN_CITY_NAME}' "
        "AND DEST_CITY_NAME = '{DEST_CITY_NAME}' AND {THESE_DAYS}",
        "/flight_counter?ORIGIN_CITY_NAME={ORIGIN_CITY_NAME}&DEST_CITY_NAME={DEST_CITY_NAME}"
        "&INITIAL_DATE={INITIAL_DATE}&FINAL_DATE={FINAL_DATE}",
        lambda content: (content["count"],),
    ),
    Question(
        "the airport with the worst delays, in a year",
        "SELECT count(*), avg(ARR_DELAY) AS late FROM flights WHERE {THIS_YEAR} "
        "GROUP BY ORIGIN HAVING count(*) >= 1000 ORDER BY late DESC LIMIT 1",
        "/average_delays?INITIAL_DATE={YEAR}-01-01&FINAL_DATE={YEAR}-12-31&group_by=origin"
        "&least_flights=1000&sort=average_delay&order=descending&limit=1",
        lambda content: tuple(
            content["by_origin"][0][name] for name in ("flights", "average_delay")
        ),
    ),
    Question(
        "the distribution of a carrier's delays, in a year",
        "SELECT count(ARR_DELAY), percentile_disc(0.9) WITHIN GROUP (ORDER BY ARR_DELAY) "
        "FROM flights WHERE OP_CARRIER_AIRLINE_ID = {OP_CARRIER_AIRLINE_ID} AND {THIS_YEAR}",
        "/average_delays?OP_CARRIER_AIRLINE_ID={OP_CARRIER_AIRLINE_ID}&INITIAL_DATE={YEAR}-01-01"
        "&FINAL_DATE={YEAR}-12-31&distribution=true",
        lambda content: (content["arrived"], content["distribution"]["p90"]),
    ),
    Question(
        "which carrier makes up time on its way most often, in all years",
        "SELECT OP_CARRIER_AIRLINE_ID, avg(CASE WHEN ARR_DELAY < DEP_DELAY THEN 1 ELSE 0 END) "
        "AS share FROM flights GROUP BY OP_CARRIER_AIRLINE_ID ORDER BY share DESC LIMIT 1",
    ),
)


def duckdb_asker(export: Path) -> Ask:
    """Return what asks DuckDB about the files of an export."""
    duck = duckdb.connect()
    files = duck.read_parquet(f"{export}/flights/**/*.parquet", hive_partitioning=True)
    files.create_view("flights")

    def ask(question: Question, facts: Facts) -> Answer:
        rows: list[Answer] = duck.sql(question.sql.format(**facts)).fetchall()
        return rows[0]

    return ask


def spark_asker(export: Path) -> Ask:
    """Return what asks Spark, in local mode, about the files of an export."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[*]").getOrCreate()
    spark.read.parquet(f"{export}/flights").createOrReplaceTempView("flights")
    return lambda question, facts: tuple(spark.sql(question.sql.format(**facts)).first())


def comparison(ledger: Path, export: Path, log: Path) -> list[str]:
    """Return the median times in ms as lines of a table. log: of the service.

    Raises ProgramFailed if answers differ.
    """
    settings = {"answer_cache_bytes": 0}
    with running(ledger, log, settings=settings) as service, service.connection() as connection:

        def by_service(question: Question, facts: Facts) -> Answer:
            quoted = {name: quote(value) for name, value in facts.items()}
            return question.pick(answer(connection, question.path.format(**quoted)))

        askers = {"service": by_service, "DuckDB": duckdb_asker(export)}
        if find_spec("pyspark"):
            askers["Spark"] = spark_asker(export)
        flights = _flights(service)
        rows = [[question.what, *_times(question, flights, askers)] for question in QUESTIONS]
    title = ["Question, ms", *askers]
    return [f"| {' | '.join(cells)} |" for cells in (title, ["---"] * len(title), *rows)]


def _times(question: Question, flights: Sequence[Facts], askers: Mapping[str, Ask]) -> list[str]:
    cells: list[str] = []
    expected: list[Answer] = []
    for name, ask in askers.items():
        if name == "service" and not question.path:
            cells.append("cannot be asked")
            continue
        answers = [timed(partial(ask, question, facts)) for facts in flights]
        for (values, _), others in zip(answers, expected, strict=False):
            if not _agree(values, others):
                raise ProgramFailed(f"{question.what}: {name} says {values}, another {others}")
        expected = expected or [values for values, _ in answers]
        cells.append(f"{1000 * median(took_s for _, took_s in answers):,.3g}")
    return cells


def _agree(values: Answer, others: Answer) -> bool:
    pairs = zip(values, others, strict=True)
    return all(abs(float(value) - float(other)) < 1e-6 for value, other in pairs)


def _flights(service: Service) -> list[Facts]:
    """Return the facts of some flights, as questions about them have them."""
    by_flight = zip(*drawn(sample(service), FLIGHTS, SEED).values(), strict=True)
    return [
        _with_days({k: v for question in questions for k, v in question.parameters.items()})
        for questions in by_flight
    ]


def _with_days(facts: Facts) -> Facts:
    """Add the days around a flight, and its year, as conditions in SQL."""
    year = facts["FL_DATE"][:4]
    days = "FL_DATE BETWEEN DATE '{}' AND DATE '{}'".format
    return {
        **facts,
        "YEAR": year,
        "THIS_YEAR": days(f"{year}-01-01", f"{year}-12-31"),
        "THESE_DAYS": days(facts["INITIAL_DATE"], facts["FINAL_DATE"]),
    }


if __name__ == "__main__":
    print("\n".join(comparison(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[2] + ".log"))))
