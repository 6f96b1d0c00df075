"""What would write past the cluster, or read numbers of a node as ids, is refused."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from backend.base.errors import FlightchainError, InvalidSetting
from backend.base.settings import Settings
from backend.ledger.ledger import Ledger
from backend.verify.backup import back_up
from tests.cluster.engine import Engine, quiet
from tests.submitting import sealing


def mine(settings: Settings, folder: Path) -> None:
    with sealing(settings, quiet) as sealer:
        sealer.seal_pending()


def copy(settings: Settings, folder: Path) -> None:
    back_up(settings, folder / "copy", full=False, report=quiet, progress=lambda done, to_do: None)


@pytest.mark.parametrize("act", [mine, copy])
def test_only_the_cluster_writes_the_ledger_of_a_node(
    act: Callable[[Settings, Path], None], tmp_path: Path
) -> None:
    with Engine(tmp_path, 1) as engine, pytest.raises(FlightchainError, match="cluster"):
        act(engine.nodes[0].settings, tmp_path)


def test_a_service_that_does_not_know_of_the_cluster_does_not_start(tmp_path: Path) -> None:
    with Engine(tmp_path, 1) as engine:
        alone = Settings(dir=engine.nodes[0].settings.dir)
        with pytest.raises(InvalidSetting, match="FLIGHTCHAIN_CLUSTER"):
            Ledger(alone, quiet)


def test_nothing_is_accepted_while_the_node_does_not_run(tmp_path: Path) -> None:
    engine = Engine(tmp_path, 1)
    with engine, closing(Ledger(engine.nodes[0].settings, quiet)) as ledger:
        reasons = " ".join(ledger.not_ready())
        assert "nothing is accepted" in reasons
        assert getattr(ledger.tip().cluster, "accepts", None) is False
