"""Completions and coverage: the order of matches, and what a plain loop finds in the ledger."""

import random
import unicodedata
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.base.settings import Settings
from backend.chain.flight import Flight
from backend.chain.placeholder import VOID, VOID_NUMBER
from backend.index.completions import airports_in
from backend.index.queries import IndexReader
from backend.index.suggestions import best, folded
from backend.ledger.ledger import Ledger
from backend.questions.answer_types import CitySuggestion
from backend.questions.carriers import CARRIER
from backend.sources.airports import Airport
from tests.api.worlds import Json
from tests.effort import examples
from tests.index.worlds import chains, follow, make_chain, plain_flight, rows_of

# --- the order -------------------------------------------------------------------------------


def offered(*labels: str, q: str, limit: int = 50) -> list[str]:
    """The labels that match, each of one flight."""
    candidates = [CitySuggestion(label, label, 1) for label in labels]
    return [shown.label for shown in best(candidates, q, limit)]


def test_the_start_comes_before_a_word_and_a_word_before_the_middle() -> None:
    names = ("Savannah, GA", "Vail, CO", "Las Vegas, NV", "Eva, AL", "Reno")
    assert offered(*names, q="va") == ["Vail, CO", "Eva, AL", "Savannah, GA"]
    assert offered("Comfort, TX", "Dallas/Fort Worth, TX", q="fort")[0] == "Dallas/Fort Worth, TX"
    assert offered(*names, q="v") == ["Vail, CO", "Las Vegas, NV", "Eva, AL", "Savannah, GA"]


def test_the_middle_of_one_word_does_not_hide_the_start_of_a_later_one() -> None:
    names = ["Cana an", "Base 7an", "Canaan"]
    assert offered(*names, q="an") == names


@pytest.mark.parametrize(
    ("name", "q"),
    [
        ("São Paulo", "SAO P"),
        ("Sao Paulo", "são"),
        ("ÅLESUND", "ale"),
        ("Straße", "STRASSE"),
        ("İstanbul", "ist"),
        ("東京", "東"),
        ("Dallas/Fort Worth, TX", "fort"),
        ("O'Hare", "hare"),
    ],
)
def test_neither_case_nor_accents_matter(name: str, q: str) -> None:
    assert offered(name, q=q) == [name]


def test_what_is_more_common_comes_first_and_then_the_alphabet() -> None:
    flights = {"Aspen": 3, "Akron": 9, "Ábilene": 3, "Atlanta": 9, "Alton": 1}
    candidates = [CitySuggestion(n, n, f) for n, f in flights.items()]
    order = [shown.label for shown in best(candidates, "a", 50)]
    assert order == ["Akron", "Atlanta", "Ábilene", "Aspen", "Alton"]
    assert [shown.label for shown in best(candidates, "", 2)] == ["Akron", "Atlanta"]


@given(st.text(max_size=12))
def test_an_accent_is_the_same_as_a_letter_with_it_or_after_it(text: str) -> None:
    assert folded(unicodedata.normalize("NFD", text)) == folded(unicodedata.normalize("NFC", text))


# --- against a plain loop --------------------------------------------------------------------


def naive_fold(text: str) -> str:
    letters = (c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return "".join(letters).casefold()


def naive_rank(texts: Sequence[str], q: str) -> int | None:
    """Returns 0 if `q` starts a text, 1 if a word, 2 if it is elsewhere, None if nowhere."""
    ranks = []
    for text in map(naive_fold, texts):
        for at in range(len(text) + 1):
            if text[at : at + len(q)] == q:
                is_word = at == 0 or not text[at - 1].isalnum()
                ranks.append(0 if at == 0 else 1 if is_word else 2)
    return min(ranks, default=None)


def naive_carrier(number: int, count: int) -> tuple[Sequence[str], Json]:
    if number not in CARRIER:
        shown = {"value": number, "label": str(number), "code": None, "name": None}
        return (str(number),), {**shown, "flights": count}
    code, name = CARRIER[number].code, CARRIER[number].name
    shown = {"value": number, "label": f"{name} ({code})", "code": code, "name": name}
    return (str(number), code, name), {**shown, "flights": count}


def naive(flights: Sequence[Json], field: str, q: str) -> list[Json]:
    """Returns all completions, best first."""
    ends = [
        tuple(flight[name] for name in (end, f"{end}_CITY_NAME", f"{end}_STATE_NM"))
        for flight in flights
        for end in ("ORIGIN", "DEST")
    ]
    carriers = [flight["OP_CARRIER_AIRLINE_ID"] for flight in flights]
    numbers = [flight["OP_CARRIER_FL_NUM"] for flight in flights]
    completions: list[tuple[Sequence[str], Json]] = []
    if field == "city":
        for city, count in Counter(city for _, city, _ in ends).items():
            completions.append(((city,), {"value": city, "label": city, "flights": count}))
    elif field == "airport":
        for (code, city, state), count in Counter(ends).items():
            named = {"value": code, "label": f"{city} ({code})", "city": city, "state": state}
            completions.append(((code, city, state), {**named, "flights": count}))
    elif field == "carrier":
        completions += [naive_carrier(number, count) for number, count in Counter(carriers).items()]
    else:
        for number, count in Counter(numbers).items():
            used = Counter(c for c, n in zip(carriers, numbers, strict=True) if n == number)
            by = [
                {
                    "OP_CARRIER_AIRLINE_ID": carrier,
                    "code": CARRIER[carrier].code if carrier in CARRIER else str(carrier),
                    "flights": used[carrier],
                }
                for carrier in sorted(used, key=lambda carrier: (-used[carrier], carrier))
            ]
            completion: Json = {"value": number, "label": str(number), "carriers": by}
            completions.append(((str(number),), {**completion, "flights": count}))
    keyed = []
    for texts, shown in completions:
        rank = naive_rank(texts, naive_fold(q))
        if rank is None or (field == "flight_number" and rank > 0):
            continue
        label = shown["label"]
        keyed.append(((rank, -shown["flights"], naive_fold(label), label, tuple(texts)), shown))
    return [shown for _, shown in sorted(keyed, key=lambda pair: pair[0])]


def naive_coverage(rows: Sequence[Json]) -> Json:
    """Returns what the flights cover, without the block up to which they count."""
    days = [row["FL_DATE"] for row in rows]
    airports = [
        {"code": one["value"], **{name: one[name] for name in ("city", "state", "flights")}}
        for one in naive(rows, "airport", "")
    ]
    carriers = [
        {"OP_CARRIER_AIRLINE_ID": one["value"]}
        | {name: one[name] for name in ("code", "name", "flights")}
        for one in naive(rows, "carrier", "")
    ]
    return {
        "flights": len(days),
        "first_date": min(days, default=None),
        "last_date": max(days, default=None),
        "carriers": sorted(carriers, key=lambda c: (-c["flights"], c["OP_CARRIER_AIRLINE_ID"])),
        "airports": sorted(airports, key=lambda a: (-a["flights"], *a.values())),
    }


def assert_completions(ledger: Ledger, rows: Sequence[Json], field: str, q: str) -> None:
    expected = naive(rows, field, q)
    for limit in (1, 2, 50):
        answer = ledger.answers.suggest(field, q, limit)
        assert msgspec.to_builtins(answer.suggestions) == expected[:limit], (field, q)
        assert (answer.field, answer.q) == (field, q)


texts = st.sampled_from(
    [
        *("", "w", "WASH", "dc", "sao", "São P", "東", "i", "ia", "0x9", "1", "19", "193", "99999"),
        *("wn", "south", "air", "v", "gin", "%", "_", "'", "table", "zz"),
    ]
)
digits = st.sampled_from(("", "0", "1", "3", "33", "335", "9", "99", "99999", "999999", "03"))


@given(chains, st.lists(st.sampled_from(("city", "airport", "carrier")) | st.none()), st.data())
@settings(max_examples=examples(12))
def test_completions_and_the_coverage_equal_a_plain_loop(
    contents: list[list[Flight]], fields: list[str | None], data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder:
        blocks = make_chain(Path(folder), contents)
        follow(Path(folder))
        rows = rows_of(contents, blocks)
        with closing(Ledger(Settings(dir=folder), print)) as ledger:
            tip, coverage = ledger.tip(), msgspec.to_builtins(ledger.answers.coverage())
            as_of = {"height": tip.height, "tip_hash": tip.hash}
            assert coverage == {**naive_coverage(rows), "as_of": as_of}
            for field in [*fields, None]:
                if field is None:
                    assert_completions(ledger, rows, "flight_number", data.draw(digits))
                else:
                    assert_completions(ledger, rows, field, data.draw(texts))


def test_void_entries_are_in_no_completion_and_not_in_the_coverage(tmp_path: Path) -> None:
    carrier = plain_flight(OP_CARRIER_AIRLINE_ID=VOID_NUMBER)
    contents = [[VOID, carrier, VOID], [VOID, plain_flight(OP_CARRIER_FL_NUM=VOID_NUMBER)]]
    rows = [row for row in rows_of(contents, make_chain(tmp_path, contents)) if row["YEAR"] > 1900]
    follow(tmp_path)
    with closing(Ledger(Settings(dir=str(tmp_path)), print)) as ledger:
        coverage = msgspec.to_builtins(ledger.answers.coverage())
        assert coverage == {**naive_coverage(rows), "as_of": coverage["as_of"]}
        for field in ("city", "airport", "carrier", "flight_number"):
            assert_completions(ledger, rows, field, "")


def test_an_airport_has_the_name_that_most_flights_give_it(tmp_path: Path) -> None:
    flights = [plain_flight(ORIGIN="XNA", ORIGIN_CITY_NAME=name) for name in ("A", "B", "B", "C")]
    make_chain(tmp_path, [flights])
    with closing(IndexReader(tmp_path)) as index:
        assert airports_in(index)("XNA") is None
        follow(tmp_path)
        assert airports_in(index)("XNA") == Airport("XNA", "B", "Virginia")


def test_flight_numbers_of_every_length_are_completed(tmp_path: Path) -> None:
    """Many numbers of several carriers."""
    chance = random.Random(7)
    contents = [
        [
            plain_flight(
                OP_CARRIER_FL_NUM=min(99999, int(chance.paretovariate(0.4))),
                OP_CARRIER_AIRLINE_ID=chance.choice((19393, 19805, 20398, 7)),
            )
            for _ in range(300)
        ]
        for _ in range(4)
    ]
    rows = rows_of(contents, make_chain(tmp_path, contents))
    follow(tmp_path)
    with closing(Ledger(Settings(dir=str(tmp_path)), print)) as ledger:
        for q in ("", *"0129", "10", "12", "123", "9999", "99999", "123456"):
            assert_completions(ledger, rows, "flight_number", q)
