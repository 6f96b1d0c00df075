"""A small world of flights, chains of them on disk, and plain loops that answer the questions.

The world is small on purpose: few carriers, numbers, cities and days, so that questions find
something, flights share a number and a day, and an airport shares its city with another one.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import apsw
from hypothesis import strategies as st

from backend.base.words import Report
from backend.chain.block import Block
from backend.chain.columns import columns_of
from backend.chain.fields import FIELD_NAMES, Value
from backend.chain.flight import Flight
from backend.chain.state import content_of
from backend.index.checkpoint_note import note_settled
from backend.index.follower import IndexFollower
from backend.index.index_file import (
    Position,
    index_path,
    is_wrong,
    open_to_read,
    open_to_write,
    position_in,
)
from backend.index.queries import IndexReader
from backend.index.writer import IndexWriter, sealed_block
from backend.questions.answer_types import AsOf
from backend.questions.counts import DelayTotals
from backend.questions.groups import GROUPS, Shown
from backend.questions.values import (
    AverageDelays,
    Departures,
    FilterTransactions,
    FlightCounter,
    Options,
)
from backend.storage.block_store import BlockStore
from backend.storage.block_writer import BlockWriter
from tests.api.worlds import Json, averages_of, with_status
from tests.chain.strategies import flights as valid_flights
from tests.flights import EXAMPLE, changed
from tests.storage.chains import ONE_FILE, writer_for

CARRIERS = (1, 19393, 99999)
NUMBERS = (1, 335, 99999)
AIRPORTS: tuple[tuple[int | None, str, str, str], ...] = (
    (12264, "IAD", "Washington, DC", "Virginia"),
    (11278, "DCA", "Washington, DC", "Virginia"),
    (None, "IAD", "Washington, DC", "Virginia"),
    (12264, "IAD", "washington, dc", "Virginia"),
    (None, "GRU", "São Paulo", "東京 ✈ 🛫"),
    (14000, "0X9Z", "Sao Paulo", "'; DROP TABLE flight; --"),
    (99999, "NRT", "東京", "%"),
)
CODES = tuple(dict.fromkeys(code for _, code, _, _ in AIRPORTS))
CITIES = tuple(dict.fromkeys(city for _, _, city, _ in AIRPORTS))
UNKNOWN_CITIES = ("Nowhere, ZZ", "WASHINGTON, DC", "Washington, D_", "%")
DAYS = tuple(
    date.fromisoformat(day)
    for day in (
        "1900-01-01",
        "1900-02-28",
        "1900-03-01",
        "1969-12-31",
        "1970-01-01",
        "2007-12-31",
        "2008-01-01",
        "2008-01-02",
        "2008-01-31",
        "2008-02-01",
        "2008-02-29",
        "2008-12-31",
        "2009-01-01",
        "2199-12-30",
        "2199-12-31",
    )
)

days = st.sampled_from(DAYS) | st.dates(date(2007, 12, 30), date(2009, 1, 2))
delays = st.sampled_from((-10000, -11, -1, 0, 14, 15, 16, 10000)) | st.integers(-60, 200)
times = st.sampled_from((None, "0000", "0007", "0754", "2359", "2400"))


def flights() -> st.SearchStrategy[Flight]:
    """A valid flight of the world: cancelled, diverted (no ARR_DELAY) or arrived."""
    return valid_flights(
        days=days,
        carriers=st.sampled_from(CARRIERS),
        numbers=st.sampled_from(NUMBERS),
        airports=st.sampled_from(AIRPORTS),
        times=times,
        delays=st.none() | delays,
    )


# What blocks 1, 2, … hold; some hold nothing.
chains = st.lists(st.lists(flights(), max_size=6) | st.just([]), max_size=6)


def plain_flight(**values: Value) -> Flight:
    """A flight of the world that arrived five minutes late, but for `values`."""
    return changed(EXAMPLE, **{"ORIGIN_STATE_NM": "Virginia", "ARR_DELAY": 5, **values})


SMALL: list[list[Flight]] = [
    [plain_flight(), plain_flight(OP_CARRIER_FL_NUM=2, ORIGIN_CITY_NAME="東京")],
    [],
    [plain_flight(FL_DATE="2009-02-28", CANCELLED=1, ARR_TIME=None, ARR_DELAY=None, AIR_TIME=None)],
    [plain_flight(DEST_AIRPORT_ID=None)] * 3,
]


# --- chains on disk --------------------------------------------------------------------------


def append(writer: BlockWriter, rows: Sequence[Flight]) -> Block:
    """Append a block of `rows`; it is not committed yet."""
    timestamp = writer.state.timestamp + 1000
    accepted = [timestamp - len(rows) + i for i in range(len(rows))]
    block = writer.state.build(timestamp, content_of(columns_of(rows, accepted)))
    writer.append(block)
    return block


def make_chain(
    folder: Path,
    contents: Iterable[Sequence[Flight]],
    *,
    block_file_bytes: int = ONE_FILE,
    genesis_ms: int | None = None,
) -> list[Block]:
    """Write genesis and a block for each of `contents` under `folder`, or add to what is there."""
    with closing(writer_for(folder, block_file_bytes=block_file_bytes)) as writer:
        if genesis_ms is not None:
            writer._now_ms = lambda: genesis_ms
        writer.acquire(wait=False)
        blocks = [append(writer, rows) for rows in contents]
        writer.commit()
    return blocks


def rows_of(contents: Sequence[Sequence[Flight]], blocks: Sequence[Block]) -> list[Json]:
    """Returns the mined flights of a chain whose blocks above genesis hold `contents`.

    They are as `filter_transactions` shows them, without their status.
    """
    rows: list[Json] = []
    for block, flown in zip(blocks, contents, strict=True):
        for i, flight in enumerate(flown):
            rows.append({
                "TRANSACTION_ID": len(rows),
                "timestamp": block.header.timestamp - len(flown) + i,
                **dict(zip(FIELD_NAMES, flight, strict=True)),
                "BLOCK_HEIGHT": block.header.height,
            })  # fmt: skip
    return rows


@contextmanager
def following(
    folder: Path, report: Report = lambda line: None
) -> Iterator[tuple[IndexFollower, BlockStore]]:
    """A follower of the chain in `folder`, closed afterwards."""
    with (
        closing(BlockStore(folder)) as store,
        closing(IndexFollower(folder, store, report)) as follower,
    ):
        yield follower, store


def follow(folder: Path) -> None:
    """Bring the index of `folder` to the tip, as a process of its own would."""
    with following(folder) as (follower, _):
        follower.follow()


def index_up_to(folder: Path, chain: Path, height: int) -> None:
    """Index a chain in another folder up to a height, at once."""
    (folder / "blocks").symlink_to(chain / "blocks")
    index_path(folder).parent.mkdir()
    with closing(BlockStore(chain)) as store, closing(IndexWriter(index_path(folder))) as writer:
        writer.apply([sealed_block(store.block(h)) for h in range(height + 1)])


def opened(folder: Path) -> apsw.Connection:
    """The index of `folder`, to be read and changed behind everybody's back.

    Nothing waits for the disk: nobody cuts the power of a test.
    """
    connection = open_to_write(index_path(folder).resolve(strict=True))
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def on_each_statement(connection: apsw.Connection, call: Callable[[str], object]) -> None:
    """Call `call` with each statement that the connection begins."""

    def begun(event: dict[str, Any]) -> None:
        call(event["sql"])

    connection.trace_v2(apsw.SQLITE_TRACE_STMT, begun)


def dump(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Read all rows of all tables of the index, in the order of their columns."""
    with closing(opened(folder)) as connection:
        tables = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table'"
        ).fetchall()
        return {
            str(table): sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
            for (table,) in tables
        }


def assert_as_rebuilt(folder: Path, flights: int | None = None) -> None:
    """A rebuild leaves the index as it is. flights: how many it has, if that matters."""
    followed = dump(folder)
    assert flights is None or len(followed["flight"]) == flights
    with following(folder) as (follower, _):
        follower.rebuild()
    assert dump(folder) == followed


def page_of(folder: Path, name: str) -> tuple[int, int]:
    """Offset and size of the root page of a table or index in the index file."""
    with closing(opened(folder)) as connection:
        size = connection.execute("PRAGMA page_size").get
        sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?"
        page = connection.execute(sql, (name,)).get
    return size * (page - 1), size


def totals_of(
    reader: IndexReader, question: AverageDelays | FlightCounter
) -> tuple[DelayTotals, AsOf]:
    """Read the counts behind an answer, and the block that they stand for."""
    counts, as_of = reader.counts(question, Options())
    return counts.totals, as_of


def count_of(reader: IndexReader, question: FlightCounter) -> tuple[int, AsOf]:
    """Read how many flights went, and the block that this stands for."""
    totals, as_of = totals_of(reader, question)
    return totals.flights, as_of


def execute(folder: Path, *statements: str) -> None:
    """Change the index of `folder`, as a writer would that had got it wrong."""
    with closing(opened(folder)) as connection:
        for statement in statements:
            connection.execute(statement)
    settle(folder)


def of_earlier_schema(folder: Path) -> None:
    """Make the index of `folder` say that it has an earlier layout."""
    with closing(opened(folder)) as connection:
        connection.execute("UPDATE position SET schema_version = schema_version - 1")


def settle(folder: Path) -> None:
    """Note that the index of `folder` is as its writer left it, whatever it holds."""
    note_settled(in_use(folder), 0)


def in_use(folder: Path) -> Path:
    """Returns the index file that the link names."""
    return index_path(folder).resolve(strict=True)


def position_of(folder: Path) -> Position | None:
    """Returns where the index of `folder` stands; None if there is no usable one."""
    if not index_path(folder).exists():
        return None
    try:
        with closing(open_to_read(index_path(folder))) as connection:
            return position_in(connection)
    except apsw.Error as error:
        assert is_wrong(error)
        return None


# --- plain loops over the source flights -------------------------------------------------------


CONDITIONS = (
    *("OP_CARRIER_FL_NUM", "OP_CARRIER_AIRLINE_ID"),
    *("ORIGIN_CITY_NAME", "DEST_CITY_NAME", "ORIGIN", "DEST"),
)


def some(rows: Sequence[Json], question: Any) -> list[Json]:
    """Returns the flights that a question is about."""
    given = {name: getattr(question, name, None) for name in CONDITIONS}
    wanted = [(name, value) for name, value in given.items() if value is not None]
    first = getattr(question, "FL_DATE", None) or question.INITIAL_DATE
    last = getattr(question, "FINAL_DATE", None) or first
    return [
        row
        for row in rows
        if all(row[name] == value for name, value in wanted) and first <= row["FL_DATE"] <= last
    ]


def scheduled(flight: Mapping[str, Value]) -> str:
    """When a flight was to leave, hhmm of its day, however many days it is away; "" if unknown."""
    if flight["DEP_TIME"] is None or flight["DEP_DELAY"] is None:
        return ""
    time = str(flight["DEP_TIME"])
    left = timedelta(hours=int(time[:2]), minutes=int(time[2:]))
    minutes = (left - timedelta(minutes=int(flight["DEP_DELAY"]))).seconds // 60
    return f"{minutes // 60:02}{minutes % 60:02}"


def group_of(flight: Json, by: str) -> dict[str, Value]:
    """Returns the members that name the group of a flight; {} if it is not known."""
    when = date.fromisoformat(flight["FL_DATE"])
    if by == "hour":
        time = scheduled(flight)
        return {"hour": int(time[:2])} if time else {}
    if by == "weekday_hour":
        hour = group_of(flight, "hour")
        return hour and {"DAY_OF_WEEK": when.isoweekday(), **hour}
    if by == "departure":
        names = ("OP_CARRIER_AIRLINE_ID", "OP_CARRIER_FL_NUM", "ORIGIN", "DEST")
        return {**{name: flight[name] for name in names}, "departure": scheduled(flight)}
    by_time: dict[str, dict[str, Value]] = {
        "day": {"FL_DATE": when.isoformat()},
        "weekday": {"DAY_OF_WEEK": when.isoweekday()},
        "month": {"month": when.isoformat()[:7]},
        "year": {"YEAR": when.year},
    }
    others = {
        "carrier": ("OP_CARRIER_AIRLINE_ID",),
        "origin": ("ORIGIN", "ORIGIN_CITY_NAME"),
        "destination": ("DEST", "DEST_CITY_NAME"),
        "route": ("ORIGIN", "ORIGIN_CITY_NAME", "DEST", "DEST_CITY_NAME"),
    }
    return by_time[by] if by in by_time else {name: flight[name] for name in others[by]}


def grouped(
    rows: Sequence[Json], options: Options, count: str, about: Callable[[Sequence[Json]], Any]
) -> dict[str, Any]:
    """Returns what `group_by` adds. about: gives the figures of a group's flights."""
    by, shown = str(options.group_by), options.shown
    members: dict[tuple[Value, ...], list[Json]] = {}
    for row in rows:
        key = tuple(group_of(row, by).values())
        members.setdefault(key, []).append(row)
    unknown = members.pop((), [])
    groups = [{**group_of(group[0], by), **about(group)} for _, group in sorted(members.items())]
    groups = [group for group in groups if group[count] >= shown.least_flights]
    sort = shown.sort
    if sort is not None:
        known = [group for group in groups if group[sort] is not None]
        is_descending = shown.order == "descending"
        known.sort(key=lambda group: -group[sort] if is_descending else group[sort])
        groups = known + [group for group in groups if group[sort] is None]
    elif by not in {"day", "weekday", "hour", "weekday_hour", "month", "year"}:
        groups.sort(key=lambda group: group[count], reverse=shown.order != "ascending")
    elif shown.order == "descending":
        groups = groups[::-1]
    limit = len(groups) if shown.limit is None else shown.limit
    answer = {f"by_{by}": groups[shown.offset :][:limit], "groups": len(groups)}
    return {**answer, "without_hour": len(unknown)} if by.endswith("hour") else answer


def distribution(some: Iterable[Value]) -> dict[str, Any]:
    """Returns what `distribution=true` adds, from all ARR_DELAYs; None is none."""
    delays = sorted(int(delay) for delay in some if delay is not None)
    edges = [None, *range(-60, 181, 15), None]
    bins = [
        {
            "from": low,
            "to": high,
            "flights": sum(
                (low is None or low <= delay) and (high is None or delay < high) for delay in delays
            ),
        }
        for low, high in pairwise(edges)
    ]
    while bins and not bins[0]["flights"]:
        bins.pop(0)
    while bins and not bins[-1]["flights"]:
        bins.pop()
    return {
        "median": median(delays) if delays else None,
        "p90": next(
            (d for d in delays if sum(e <= d for e in delays) * 10 >= len(delays) * 9), None
        ),
        "histogram": bins,
    }


def counted(rows: Sequence[Json]) -> dict[str, Any]:
    """Returns what `flight_counter` says about flights."""
    return {"count": len(rows)}


def is_in_hour(time: str, hour: int | None) -> bool:
    """Whether a flight scheduled at hhmm, or nobody knows when, may be one of an hour."""
    return hour is None or not time or int(time[:2]) == hour


def plain(rows: Sequence[Json], question: Any, options: Options) -> dict[str, Any]:
    """Returns the right answer to any of the three questions, without `as_of` and `query`."""
    wanted = some(rows, question)
    if isinstance(question, FilterTransactions | Departures):
        matches = list(map(with_status, wanted))
        if isinstance(question, Departures):
            matches = [leg for leg in matches if is_in_hour(scheduled(leg), question.hour)]
            matches.sort(key=lambda leg: scheduled(leg) or "unknown")
        offset, limit = options.shown.offset, options.shown.limit
        shown = matches[offset:] if limit is None else matches[offset:][:limit]
        return {"count": len(matches), "flights": shown}
    about, count = (
        (averages_of, "flights") if isinstance(question, AverageDelays) else (counted, "count")
    )
    answer: dict[str, Any] = about(wanted)
    if options.group_by is not None:
        answer |= grouped(wanted, options, count, about)
    if options.distribution:
        answer["distribution"] = distribution(row["ARR_DELAY"] for row in wanted)
    return answer


WORST_FIRST = Shown("average_delay", order="descending", least_flights=2, limit=3)
RANKINGS = (
    ("origin", Shown("average_delay", limit=2)),
    ("destination", Shown("on_time_share_of_scheduled", order="descending", offset=1, limit=1)),
    ("route", Shown("cancelled", order="descending", limit=1)),
    ("origin", Shown(limit=3)),
)
BREAKDOWNS: dict[type, list[dict[str, Any]]] = {
    FilterTransactions: [{}, {"shown": Shown(offset=1, limit=1)}],
    Departures: [{}, {"shown": Shown(offset=1, limit=2)}],
    AverageDelays: [
        {},
        {"distribution": True},
        {"group_by": "day", "distribution": True},
        *({"group_by": by} for by in GROUPS),
        {"group_by": "route", "shown": WORST_FIRST},
        *({"group_by": by, "shown": shown} for by, shown in RANKINGS),
        {"group_by": "hour", "shown": Shown(order="descending", offset=1)},
        {"group_by": "carrier", "shown": Shown("on_time_share_of_arrived")},
    ],
    FlightCounter: [
        {},
        *({"group_by": by} for by in GROUPS),
        {"group_by": "route", "shown": Shown(order="ascending")},
        {"group_by": "route", "shown": Shown(order="ascending", limit=2)},
        {"group_by": "origin", "shown": Shown(least_flights=2, offset=1, limit=1)},
        {"group_by": "month", "shown": Shown("count", order="descending", limit=2)},
    ],
}


# --- questions of the world --------------------------------------------------------------------

_iso_days = days.map(date.isoformat)
_intervals = st.tuples(_iso_days, _iso_days).map(sorted)
_numbers = st.sampled_from((*NUMBERS, 2))
_carriers = st.none() | st.sampled_from((*CARRIERS, 2))
_cities = st.sampled_from((*CITIES, *UNKNOWN_CITIES))
_codes = st.sampled_from((*CODES, "ZZZ"))
_places: dict[str, Any] = {
    **dict.fromkeys(("ORIGIN_CITY_NAME", "DEST_CITY_NAME"), st.none() | st.none() | _cities),
    **dict.fromkeys(("ORIGIN", "DEST"), st.none() | st.none() | _codes),
}


def _over_days(
    kind: Callable[..., Any], first: str = "INITIAL_DATE", **values: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    """Questions about an interval. first: the field of its first day."""
    ends = (first, "FINAL_DATE")
    return st.builds(
        lambda interval, **values: kind(**dict(zip(ends, interval, strict=True)), **values),
        _intervals,
        **values,
    )


questions: st.SearchStrategy[Any] = (
    st.builds(FilterTransactions, _numbers, _iso_days, _carriers)
    | _over_days(
        FilterTransactions, "FL_DATE", OP_CARRIER_FL_NUM=_numbers, OP_CARRIER_AIRLINE_ID=_carriers
    )
    | st.builds(
        Departures,
        _iso_days,
        **_places,
        OP_CARRIER_AIRLINE_ID=_carriers,
        hour=st.none() | st.integers(0, 23),
    )
    | _over_days(AverageDelays, OP_CARRIER_AIRLINE_ID=_carriers, **_places)
    | _over_days(FlightCounter, **_places)
    | _over_days(FlightCounter, ORIGIN_CITY_NAME=_cities, DEST_CITY_NAME=_cities)
)


def questions_about(rows: Sequence[Json]) -> list[Any]:
    """Questions about each flight, its day, and all days up to, before, from and after it."""
    questions: list[Any] = []
    for flight in rows:
        day: str = flight["FL_DATE"]
        number = flight["OP_CARRIER_FL_NUM"]
        cities = (flight["ORIGIN_CITY_NAME"], flight["DEST_CITY_NAME"])
        codes = (flight["ORIGIN"], flight["DEST"])
        questions.append(FilterTransactions(number, day))
        for interval in ((day, day), ("1900-01-01", day), (day, "2199-12-31")):
            questions.append(AverageDelays(flight["OP_CARRIER_AIRLINE_ID"], *interval))
            questions.append(FlightCounter(*cities, *interval))
            questions.append(AverageDelays(None, *interval, None, cities[1], codes[0]))
            questions.append(FlightCounter(None, cities[1], *interval, *codes))
        questions.append(FilterTransactions(number, "1900-01-01", None, day))
        before, after = (str(date.fromisoformat(day) + timedelta(days=n)) for n in (-1, 1))
        for interval in (("1900-01-01", before), (after, "2199-12-31")):
            questions.append(FilterTransactions(number, interval[0], None, interval[1]))
            questions.append(AverageDelays(None, *interval))
        questions += [
            Departures(day),
            Departures(day, ORIGIN=codes[0], hour=int(scheduled(flight)[:2] or 8)),
        ]
    return list(dict.fromkeys(questions))
