"""What a kill has to be followed by, besides nothing being lost."""

from pathlib import Path

from tests.api.processes import until
from tests.faults.clients import memories, posting
from tests.faults.house import WEB, WORKER, house_in, kill, roles_of

BACK_WITHIN_S = 15.0


def test_a_killed_web_server_is_back_soon_though_clients_keep_asking(tmp_path: Path) -> None:
    house, remembered = house_in(tmp_path), memories(4)
    try:
        house.serve()
        with posting(house.port, remembered, pause_s=0.001):
            until(lambda: all(memory.acknowledged for memory in remembered))
            before = roles_of(house.folder)
            kill(before[WEB])
            until(
                lambda: bool(set(roles_of(house.folder).get(WORKER, [])) - set(before[WORKER])),
                BACK_WITHIN_S,
            )
    finally:
        house.kill_all()
