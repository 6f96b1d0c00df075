"""A cluster of real nodes, and what it has acknowledged; held against what all nodes hold then."""

import shutil
import tempfile
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from backend.base.http_requests import NoAnswer
from backend.chain.flight import as_mapping
from backend.cluster.configuration import CHAIN, ENGINE, Host
from backend.cluster.local import LocalCluster, hosts_on_loopback
from backend.cluster.membership import membership_in
from tests.cluster.engine import make_base
from tests.cluster.networks import Networks, networks
from tests.cluster.processes import SETTINGS, post
from tests.flights import flight, on_disk

WITHIN_S = 90.0
INTERVAL_S = 1.0


class World:
    """A cluster, and what it has acknowledged: the serial number of a flight -> its receipt."""

    def __init__(
        self, cluster: LocalCluster, settings: Mapping[str, str], networks: Networks | None
    ) -> None:
        """settings: of all nodes. networks: those of the engines, if they can be cut."""
        self.cluster = cluster
        self.settings = settings
        self.networks = networks
        self.hosts = cluster.hosts
        self.acknowledged: dict[int, str] = {}
        self._serial = 0

    def post(self, host: Host) -> int:
        """Post a new flight to a node. Returns the status of the answer; 0 if there was none."""
        serial, self._serial = self._serial, self._serial + 1
        try:
            status, body = post(host.url + "/transactions", as_mapping(flight(serial)))
        except OSError:
            return 0
        if status in {201, 202}:
            self.acknowledged[serial] = body["receipt"]
        return status

    def post_everywhere(self, rounds: int = 3) -> None:
        for _ in range(rounds):
            for host in self.hosts:
                self.post(host)

    def new_folder(self) -> Path:
        """Make an empty folder beside those of the nodes."""
        return Path(tempfile.mkdtemp(dir=self.cluster.folder))

    def in_network_of(self, host: Host) -> list[str]:
        """Return how a command begins that runs where the engine of a node does."""
        return [] if self.networks is None else self.networks.entering(host)

    def peer_address(self, host: Host) -> tuple[str, str]:
        """Return the name of the cluster, and where the engine of a node is reached by its id."""
        home = self.cluster.folder / host.name / ENGINE
        membership = membership_in(home)
        p2p = tomllib.loads((home / "config" / "config.toml").read_text())["p2p"]
        member = membership.members[self.hosts.index(host)]
        return membership.cluster, f"{member.peer_id}@{p2p['external_address']}"

    def settle(self) -> None:
        """Wait until all run, nothing is pending and all tips are equal, and audit that."""
        for host in self.hosts:
            self.cluster.start(host)
        self.cluster.wait_until_ready(self.hosts, WITHIN_S)
        until(self._is_settled, "nothing is pending and all tips are equal")
        self._audit()

    def _is_settled(self) -> bool:
        tips = [tip_of(self.cluster, host) for host in self.hosts]
        return all(tip.get("pending") == 0 for tip in tips) and len({t["hash"] for t in tips}) == 1

    def _audit(self) -> None:
        wanted = {flight(serial) for serial in self.acknowledged}
        for host in self.hosts:
            mined = on_disk(self.cluster.folder / host.name / CHAIN).flights
            assert len(set(mined)) == len(mined), "a flight was mined twice"
            assert wanted <= set(mined), "an acknowledged flight was lost"
        ids = set()
        for serial, receipt in self.acknowledged.items():
            answer = self._shown(self.hosts[serial % len(self.hosts)], receipt)
            assert answer["state"] == "mined"
            shown = answer["transaction"]
            assert {name: shown[name] for name in as_mapping(flight(serial))} == as_mapping(
                flight(serial)
            )
            ids.add(shown["TRANSACTION_ID"])
        assert len(ids) == len(self.acknowledged)

    def _shown(self, host: Host, receipt: str) -> dict[str, Any]:
        """Return what a node shows for a receipt, however busy the machine is."""
        answer: dict[str, Any] = {}

        def is_answered() -> bool:
            with suppress(NoAnswer):
                answer.update(self.cluster.answer(host, receipt))
            return bool(answer)

        until(is_answered, f"{receipt} is shown")
        return answer


def tip_of(cluster: LocalCluster, host: Host) -> dict[str, Any]:
    try:
        return cluster.answer(host)
    except (NoAnswer, ValueError):
        return {"hash": host.name}


def until(is_so: Any, what: str) -> None:
    end = time.monotonic() + WITHIN_S
    while not is_so():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.2)


@contextmanager
def cluster_in(folder: Path, nodes: int = 4, disk: Path | None = None) -> Iterator[World]:
    """A cluster that begins with genesis, ready; its processes are ended at the end.

    disk: where the last node is, if not with the others.
    """
    make_base(folder)
    hosts = hosts_on_loopback(nodes, 0, 0)
    with networks(folder, hosts) as between:
        settings = SETTINGS if between is None else {**SETTINGS, **between.environment}
        cluster = LocalCluster(folder, settings)
        cluster.make(hosts, INTERVAL_S, empty=False)
        if between is not None:
            between.configure(folder)
        if disk is not None:
            last = hosts[-1].name
            shutil.move(folder / last, disk / last)
            (folder / last).symlink_to(disk / last)
        world = World(cluster, settings, between)
        try:
            world.settle()
            yield world
        finally:
            for host in hosts:
                cluster.kill(host)
