"""What a ledger covers, against a plain loop over its flights."""

from collections import Counter
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from hypothesis import given, settings

from backend.base.settings import Settings
from backend.chain.flight import Flight
from backend.ledger.ledger import Ledger
from backend.questions.carriers import CARRIER
from tests.effort import examples
from tests.index.worlds import Row, chains, follow, make_chain, rows_of


def expected(rows: list[Row]) -> dict[str, object]:
    flights = [row.flight for row in rows]
    days = [str(flight["FL_DATE"]) for flight in flights]
    carriers = Counter(int(flight["OP_CARRIER_AIRLINE_ID"] or 0) for flight in flights)
    airports = Counter(
        tuple(str(flight[name]) for name in (end, f"{end}_CITY_NAME", f"{end}_STATE_NM"))
        for flight in flights
        for end in ("ORIGIN", "DEST")
    )
    return {
        "flights": len(flights),
        "first_date": min(days, default=None),
        "last_date": max(days, default=None),
        "carriers": [
            {
                "OP_CARRIER_AIRLINE_ID": number,
                "code": CARRIER[number].code if number in CARRIER else None,
                "name": CARRIER[number].name if number in CARRIER else None,
                "flights": carriers[number],
            }
            for number in sorted(carriers, key=lambda number: (-carriers[number], number))
        ],
        "airports": [
            {"code": code, "city": city, "state": state, "flights": count}
            for (code, city, state), count in sorted(
                airports.items(), key=lambda item: (-item[1], item[0])
            )
        ],
    }


@given(chains)
@settings(max_examples=examples(15))
def test_it_is_what_a_plain_loop_finds(contents: list[list[Flight]]) -> None:
    with TemporaryDirectory() as folder:
        blocks = make_chain(Path(folder), contents)
        follow(Path(folder))
        with closing(Ledger(Settings(dir=folder), print)) as ledger:
            answer, tip = msgspec.to_builtins(ledger.answers.coverage()), ledger.tip()
        assert answer.pop("as_of") == {"height": tip.height, "tip_hash": tip.hash}
        assert answer == expected(rows_of(contents, blocks))
