"""Others answer as the service does, from an export or its index, by the recipes of the pages."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from backend.base.settings import Settings
from backend.export.parquet import export
from tests.api.processes import ROOT
from tests.api.worlds import Json, client_of
from tests.duckdb_judge import LEG, require_agreement
from tests.index.sql_reader import Reader

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "how-to" / "export.md"
FOLDER = "/mnt/usb/export"
QUESTIONS = 100
Ask = Callable[..., Json]
Answers = tuple[list[tuple[Any, ...]], tuple[int, float, float], int]


@pytest.fixture(scope="module")
def exported(default_chain: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of the flights that scripts/run imports."""
    folder = tmp_path_factory.mktemp("export") / "export"
    export(default_chain.folder, folder, lambda done, to_do: None)
    return folder


@pytest.fixture(scope="module")
def ask(default_chain: Settings) -> Iterator[Ask]:
    with client_of(default_chain) as client:

        def asked(question: str, **given: Any) -> Json:
            answer: Json = client.get(f"/{question}", query_string=given).get_json()
            return answer

        yield asked


@pytest.fixture(scope="module")
def expected(ask: Ask) -> Answers:
    """What the service answers to the questions of the page."""
    july = {"INITIAL_DATE": "2013-07-01", "FINAL_DATE": "2013-07-31"}
    legs = ask("filter_transactions", OP_CARRIER_FL_NUM=1545, FL_DATE="2013-01-01")["flights"]
    late = ask("average_delays", OP_CARRIER_AIRLINE_ID=20366, **july)
    cities = {"ORIGIN_CITY_NAME": "New York, NY", "DEST_CITY_NAME": "Chicago, IL"}
    return (
        [tuple(leg[name] for name in LEG) for leg in legs],
        (late["flights"], late["average_delay"], late["on_time_share_of_scheduled"]),
        ask("flight_counter", **cities, **july)["count"],
    )


def recipe(title: str, folder: Path) -> str:
    """The code below a title of the page, with the folder in the place of that of the page."""
    section = PAGE.read_text(encoding="utf-8").partition(f"### {title}\n")[2]
    (code,) = re.findall(r"```\w+\n(.*?)```", section.partition("\n### ")[0], re.DOTALL)
    return str(code).replace(FOLDER, str(folder))


def test_the_recipe_for_duckdb_answers_as_the_service_does(
    exported: Path, expected: Answers
) -> None:
    view, *questions = recipe("DuckDB", exported).strip().rstrip(";").split(";")
    database = duckdb.connect()
    database.execute(view)
    legs, (late,), ((count,),) = (database.execute(sql).fetchall() for sql in questions)
    assert (legs, late, count) == _about(expected)
    assert len(legs) == 1
    cancelled = re.sub(r"2013-07-\d\d", "2013-12-10", questions[1].replace("20366", "20378"))
    assert database.execute(cancelled).fetchall() == [(2, None, 0)]


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_the_recipe_for_python_answers_as_the_service_does(
    exported: Path, expected: Answers, name: str
) -> None:
    pytest.importorskip(name)  # which come with tests/requirements.txt
    values: dict[str, Any] = {}
    exec(recipe(name, exported), values)
    late = values["late"]
    rows = values["legs"].itertuples(index=False) if name == "pandas" else values["legs"].rows()
    on_time = (late < 15).sum() / len(late)
    answers = (list(map(tuple, rows)), (len(late), late.mean(), on_time), values["count"])
    assert answers == _about(expected)


def test_pandas_has_dates_and_integers_as_the_page_says(exported: Path) -> None:
    pandas = pytest.importorskip("pandas")
    (option,) = re.findall(r'dtype_backend="(\w+)"', PAGE.read_text(encoding="utf-8"))
    table = pandas.read_parquet(exported / "flights", dtype_backend=option)
    assert table["ARR_DELAY"].dtype.kind == "i"
    assert set(table["FL_DATE"].dt.month) == set(range(1, 13))


def test_the_recipe_for_spark_answers_as_the_service_does(
    exported: Path, expected: Answers
) -> None:
    pytest.importorskip("pyspark")  # 450 MB, and Java; no requirements file has it
    values: dict[str, Any] = {}
    exec(recipe("Spark", exported), values)
    answers = (list(map(tuple, values["legs"])), tuple(values["late"]), values["count"])
    assert answers == _about(expected)


def test_the_questions_in_sql_are_answered_as_the_service_does(
    default_chain: Settings, expected: Answers
) -> None:
    page = (ROOT / "docs" / "how-to" / "sql.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    reader = Reader(default_chain.folder)
    (leg,), ((late,),), ((count,),) = map(reader.ask, code.strip().rstrip(";").split(";"))
    reader.close()
    legs, (_, average, _), flights = expected
    assert [leg] == [list(row[1:]) for row in legs]
    assert (late, count) == (pytest.approx(average), flights)


def _about(expected: Answers) -> tuple[object, ...]:
    legs, late, count = expected
    return legs, pytest.approx(late), count


def test_duckdb_and_the_service_agree_on_300_random_questions(exported: Path, ask: Ask) -> None:
    database = duckdb.connect(config={"threads": 1})
    database.execute(
        "CREATE TABLE flights AS SELECT * FROM read_parquet(?, hive_partitioning = true)",
        [f"{exported}/flights/**/*.parquet"],
    )
    names = (*LEG, "DEP_TIME", "TRANSACTION_ID", "BLOCK_HEIGHT")
    ends = ("ORIGIN_CITY_NAME", "DEST_CITY_NAME")
    require_agreement(database, ask, QUESTIONS, leg=names, ends=ends)
