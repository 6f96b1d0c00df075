"""Whatever happens to a file of the folder: it is written again, or `ready` and `verify` name it.

Each harm comes to each file and folder, before a service starts and while one has the folder open.
The mempool's files have their own matrix.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner

from backend.base.errors import Damage, DamagedMempool, FlightchainError
from backend.chain.placeholder import VOID
from backend.cli.commands import main
from backend.ledger.ledger import Ledger
from backend.mempool import Mempool
from backend.mempool.lost_files import lost_in
from backend.sources.generated import Generated
from backend.storage.layout import MARK_NAME
from backend.verify.audit import verify
from backend.verify.folder_files import LET_IT_BE, kind_of, unusable
from tests.effort import tries
from tests.flights import import_flights, on_disk, transactions_in
from tests.folder_harms import (
    HARMS,
    PENDING,
    Findings,
    Houses,
    add_block,
    copy_for_nobody,
    findings_in,
    findings_while_running,
    folder_of_nobody,
    give_to_nobody,
    harms_of,
    make_houses,
    settings_of,
    signed_wrongly,
)
from tests.trust.log.test_signing import accept_loss

pytestmark = pytest.mark.slow

# What looks right by itself, and is as good as what it replaces. Tokens are a person's to choose.
AS_GOOD = {("tokens.json", "foreign"), ("tokens.json", "older")}
# Blocks below the tip are read by the scrub and by whoever asks for them, not by `ready`.
NOT_READ_BY_READY = "blocks/blocks-"


@pytest.fixture(scope="module")
def houses() -> Iterator[Houses]:
    with folder_of_nobody() as root:
        houses = make_houses(root)
        give_to_nobody(root)
        yield houses


def test_every_file_that_a_ledger_has_is_in_the_table(houses: Houses) -> None:
    assert [name for name in houses.files() if kind_of(name) is None] == []
    assert {"log.successions", "checkpoint", "cosigned", "tokens.json"} <= set(houses.files())
    for name in houses.files():
        kind = kind_of(name)
        assert kind is not None
        assert all((kind.what, kind.writer, kind.if_lost, kind.remedy))


# Each harm comes before a start, or while processes have the folder open; the commonest in both.
AT_REST = ("missing", "truncated", "foreign", "older")
RUNNING = ("missing", "empty", "flipped", "a folder", "unreadable", "foreign")
CASES = [*product(AT_REST, [False]), *product(RUNNING, [True])]
LONG = {("missing", False), ("truncated", False), ("a folder", True), ("unreadable", True)}
A_STEP = tries(2, exploring=1)  # in the usual run a harm comes to every second file, by turns


def test_no_harm_is_left_out() -> None:
    assert {*AT_REST, *RUNNING} == HARMS.keys()


@pytest.mark.parametrize(
    ("harm", "is_running"),
    [pytest.param(*case, marks=[pytest.mark.long] if case in LONG else []) for case in CASES],
)
def test_a_harmed_file_is_written_again_or_named(
    houses: Houses, harm: str, is_running: bool
) -> None:
    wrong = []
    for name in houses.files()[CASES.index((harm, is_running)) % A_STEP :: A_STEP]:
        if harm in harms_of(houses, name):
            with copy_for_nobody(houses) as folder:
                findings = _harmed(houses, folder, name, harm, is_running=is_running)
                problem = _problem(name, harm, findings) or signed_wrongly(houses, folder)
            if problem:
                wrong.append((name, problem, findings))
    assert wrong == []


def _harmed(houses: Houses, folder: Path, name: str, harm: str, *, is_running: bool) -> Findings:
    def act() -> None:
        HARMS[harm](folder / name, houses, name)

    if is_running:
        return findings_while_running(folder, act)
    act()
    return findings_in(folder)


def _problem(name: str, harm: str, findings: Findings) -> str:
    """Returns what is wrong with what was said of a harm; "" if nothing is."""
    kind = kind_of(name)
    assert kind is not None
    if not findings.ready and not findings.verify:
        may_be_whole = kind.remedy == LET_IT_BE or (name, harm) in AS_GOOD
        return "" if may_be_whole else "nobody names it, and it is not derived"
    names = {name, Path(name).name} | ({"block "} if name.startswith("blocks") else set())
    texts = (" ".join(findings.ready), findings.verify)
    is_named = [any(each in text for each in names) for text in texts]
    if name.startswith(NOT_READ_BY_READY) and harm == "flipped":
        is_named[0] = True
    return "" if all(is_named) else f"named by ready, verify: {is_named}"


def test_a_file_that_this_user_may_not_use_is_to_be_given_to_it_and_not_replaced(
    houses: Houses,
) -> None:
    """Its owner would throw away a good key, or all tokens, for want of a chown."""
    kinds = {name: kind_of(name) for name in houses.files() if name != "blocks"}
    kept = {name for name, kind in kinds.items() if kind and kind.remedy != LET_IT_BE}
    for name in {*kept, "checkpoint", "log.vkey", "clock.json"}:
        with copy_for_nobody(houses) as folder:
            path = folder / name
            path.chmod(0)
            remedy = f"run `sudo chmod u+rw {path}`"
            if os.geteuid() != os.getuid():  # the tests are run by root
                user, remedy = os.geteuid(), "run this as root, who owns it, or take it over: "
                remedy += f"`sudo chown nobody {path}`"
                os.seteuid(0)
                os.chown(path, 0, 0)
                os.seteuid(user)
            findings = findings_in(folder)
            reasons = [one for one in (*findings.ready, findings.verify) if str(path) in one]
            assert reasons or name not in kept, name
            for reason in reasons:
                assert f"user nobody may not use it; {remedy}" in reason
                assert not re.search("put back|remove it|new key|new tokens|restart", reason)
            if not name.startswith("blocks"):
                verify(folder, with_index=False, with_accepted=False)


@pytest.mark.parametrize(("name", "mode"), [("index/index.sqlite", 0o444), (MARK_NAME, 0)])
def test_a_file_that_this_user_may_not_write_to_is_named_by_the_writer_with_the_remedy(
    houses: Houses, name: str, mode: int
) -> None:
    with copy_for_nobody(houses) as folder:
        path = (folder / name).resolve()
        path.chmod(mode)
        remedy = f"may not use it; run `sudo chmod u+rw {path}`"
        with pytest.raises(FlightchainError, match=re.escape(remedy)):
            add_block(folder, 8000, 1)


def test_a_folder_in_which_this_user_may_list_files_but_open_none_is_named(houses: Houses) -> None:
    for name in ("blocks", "index"):
        with copy_for_nobody(houses) as folder:
            (folder / name).chmod(0o600)
            words = f"{folder / name} cannot be read: Permission denied"
            assert any(words in reason for reason in unusable(folder))


@pytest.mark.parametrize("is_running", [False, True], ids=["at rest", "running"])
def test_blocks_of_another_ledger_are_not_shown_and_ours_are_beside_another_log(
    houses: Houses, is_running: bool
) -> None:
    for name in ("blocks", "log.key"):
        with copy_for_nobody(houses) as folder, ExitStack() as stack:
            ledger = Ledger(settings_of(folder), print)
            stack.callback(ledger.close)
            if is_running:
                ledger.transactions(0, 1)
            HARMS["foreign"](folder / name, houses, name)
            if name == "log.key":
                assert ledger.transactions(0, 1)
                continue
            for ask in (lambda: ledger.transactions(0, 1), ledger.tip):  # noqa: B023
                with pytest.raises(Damage, match="another ledger"):
                    ask()


def test_a_mempool_of_another_ledger_is_known_though_the_entry_of_block_0_is_damaged(
    houses: Houses,
) -> None:
    with copy_for_nobody(houses) as folder:
        table = folder / "blocks" / "heights.dat"
        table.write_bytes(b"?" + table.read_bytes()[1:])
        HARMS["foreign"](folder / "mempool", houses, "mempool")
        with (
            closing(Mempool(settings_of(folder), lambda: 150, print)) as mempool,
            pytest.raises(DamagedMempool, match="belongs to another ledger"),
        ):
            mempool.pending_count()


def test_a_folder_that_cannot_be_written_to_is_named_with_the_remedy(houses: Houses) -> None:
    with copy_for_nobody(houses) as folder, closing(Ledger(settings_of(folder), print)) as ledger:
        for mode, is_named in ((0o755, False), (0o555, True), (0o755, False)):
            folder.chmod(mode)
            reasons = [one for one in ledger.not_ready() if f"{folder} cannot be written to" in one]
            assert bool(reasons) == is_named
            assert all("neither accepted nor sealed; give it to the user" in one for one in reasons)


@pytest.mark.parametrize("is_marked", [True, False])
def test_a_loss_of_imports_alone_is_named_or_it_is_said_that_nobody_knows(
    tmp_path: Path, is_marked: bool
) -> None:
    """The mempool has never held what was imported: only acknowledged.dat tells how much it was."""
    folder = tmp_path / "chain"
    import_flights(settings_of(folder), Generated(100, seed=1, flights_per_day=100))
    shutil.copytree(folder / "blocks", tmp_path / "older")
    import_flights(settings_of(folder), Generated(50, seed=2, flights_per_day=100))
    shutil.rmtree(folder / "blocks")
    (tmp_path / "older").rename(folder / "blocks")
    if not is_marked:
        (folder / "acknowledged.dat").unlink()
    message = " ".join(accept_loss(folder))
    assert ("acknowledged flights are lost, transactions 100 to 149" in message) == is_marked
    assert ("it is unknown which acknowledged or imported flights" in message) != is_marked
    assert not [line for line in accept_loss(folder) if "lost" in line]


def test_flights_that_others_stand_for_are_named_when_a_person_accepts_a_branch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, other = tmp_path / "ours", tmp_path / "other"
    import_flights(settings_of(ours), Generated(100, seed=1, flights_per_day=100))
    shutil.copytree(ours, other, symlinks=True)
    for seed in (2, 4):
        import_flights(settings_of(ours), Generated(50, seed=seed, flights_per_day=100))
    import_flights(settings_of(other), Generated(50, seed=3, flights_per_day=100))
    shutil.rmtree(ours / "blocks")
    shutil.copytree(other / "blocks", ours / "blocks")
    monkeypatch.setenv("FLIGHTCHAIN_DIR", str(ours))
    done = CliRunner().invoke(main, ["accept-loss"])
    assert (done.exit_code, done.stderr.endswith("are given up\n")) == (0, True)
    assert "from transaction 100 on, ids stand for other flights than before" in done.stderr


def test_after_a_person_accepted_the_loss_of_blocks_ids_go_on_and_the_lost_are_named(
    houses: Houses,
) -> None:
    with copy_for_nobody(houses) as folder:
        before = on_disk(folder).flights
        HARMS["older"](folder / "blocks", houses, "blocks")
        left = transactions_in(folder)
        reasons = findings_in(folder).ready
        assert [one for one in reasons if "acknowledged.dat" not in one and "accept-loss" in one]
        assert any(f"the chain ends at transaction {left - 1}" in reason for reason in reasons)
        message = " ".join(accept_loss(folder))
        assert f"acknowledged flights are lost, transactions {left} to " in message
        assert not [line for line in accept_loss(folder) if "lost" in line]
        add_block(folder, 7000, 1)
        after = on_disk(folder).flights
        assert len(after) == len(before) + PENDING + 1
        lost = {i for i, flight in enumerate(before) if after[i] != flight}
        assert {after[i] for i in lost} == {VOID}
        spans = [range(one.first, one.first + one.flights) for one in lost_in(folder / "mempool")]
        assert sorted(lost) == [i for span in spans for i in span]
        findings = findings_in(folder)
        assert findings.verify == ""
        assert all(
            f"transactions {span[0]} to " in findings.ready[n] for n, span in enumerate(spans)
        )
        assert len(findings.ready) == len(spans)
