"""Proofs of the answers and blocks of the small chain."""

import pytest
from flask.testing import FlaskClient

from tests.api.worlds import World
from tests.trust.proofs.proofs import DAYS, Judge, Proofs, fetched


@pytest.fixture(scope="module")
def judge(world: World, tmp_path_factory: pytest.TempPathFactory) -> Judge:
    key = (world.settings.folder / "log.vkey").read_text().strip()
    return Judge(tmp_path_factory.mktemp("proofs"), key)


@pytest.fixture(scope="module")
def proofs(client: FlaskClient, world: World) -> Proofs:
    """A proof of every kind."""
    some = world.transactions[700]
    legs = {name: some[name] for name in ("OP_CARRIER_FL_NUM", "FL_DATE")}
    cities = {name: some[name] for name in ("ORIGIN_CITY_NAME", "DEST_CITY_NAME")}
    carrier = {"OP_CARRIER_AIRLINE_ID": some["OP_CARRIER_AIRLINE_ID"]}
    return {
        "transaction": fetched(client, f"/transactions/{some['TRANSACTION_ID']}/proof"),
        "older": fetched(client, f"/transactions/{some['TRANSACTION_ID']}/proof", tip=20),
        "consistency": fetched(client, "/proofs/consistency", **{"from": 9}),
        "delays": fetched(client, "/average_delays/proof", **carrier, **DAYS),
        "legs": fetched(client, "/filter_transactions/proof", **legs),
        "legs of a carrier": fetched(client, "/filter_transactions/proof", **legs, **carrier),
        "count": fetched(client, "/flight_counter/proof", **cities, **DAYS),
        "chain": fetched(client, "/proofs/chain"),
    }
