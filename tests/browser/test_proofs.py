"""Proofs checked in a real browser: as scripts/verify.py checks them, and as pages say it.

The alarm is tried on ledgers that take each other's place at one address.
"""

import base64
import hashlib
import html
import json
import random
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import Page, Route, expect

from backend.trust.log.notes import VerifierKey
from backend.trust.log.rotation import rotate
from frontend.app import create_app
from frontend.filters import number
from frontend.settings import Settings
from tests.api.worlds import client_of, generated, seal, settings_for
from tests.browser.conftest import Visit
from tests.browser.sites import LEDGERS, Site, make_ledger
from tests.browser.test_every_page import CONTRAST, WCAG, require_fit, violations
from tests.browser.visits import Visitor
from tests.http_servers import served_in_a_thread
from tests.trust.proofs.forging import lies
from tests.trust.proofs.malformed import malformed
from tests.trust.proofs.proofs import Json, Judge, lines, written
from tests.trust.proofs.test_verify import with_a_change

CHANGED_TRANSACTIONS, CHANGED_ANSWERS = 50, 20
SEED, AT_ONCE = 15, 50
MOST_BYTES_SENT = 2**20  # to the browser at once

HASHES = """async (messages) => {
    const { sha256 } = await import("/static/sha256.js");
    const { hex } = await import("/static/trees.js");
    const bytes = (text) => Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
    return messages.map((one) => hex(sha256(bytes(one))));
}"""
VERDICTS = """async ([key, proofs]) => {
    const { linesOf, proved } = await import("/static/proofs.js");
    const { signatureOf } = await import("/static/signatures.js");
    const bytesOf = (base64) => Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
    const verdicts = [];
    for (const text of proofs) {
        try {
            const found = await proved(linesOf(new Blob([bytesOf(text)]).stream()));
            const { isSigned, isTrusted } = await signatureOf(found, key);
            verdicts.push({ verdict: isSigned && isTrusted ? "verified" : "refused", ...found });
        } catch (error) {
            verdicts.push({ verdict: "refused", reason: error.message });
        }
    }
    return verdicts;
}"""

KEYS = """async (keys) => {
    const { keyOf } = await import("/static/signatures.js");
    return keys.map((key) => {
        try {
            return keyOf(key) && "";
        } catch (error) {
            return error.message;
        }
    });
}"""

DECIMALS = """async (values) => {
    const { decimal } = await import("/static/page.js");
    return values.map(decimal);
}"""

# --- the scripts against other programs


def test_sha_256_is_that_of_python(visit: Visit, site: Site) -> None:
    page = visit(site).open("/about")
    chance = random.Random(SEED)
    messages = [chance.randbytes(length) for length in (*range(201), 10**6)]
    expected = [hashlib.sha256(message).hexdigest() for message in messages]
    assert page.evaluate(HASHES, [message.hex() for message in messages]) == expected


def test_decimals_are_those_of_the_pages(visit: Visit, site: Site) -> None:
    page = visit(site).open("/about")
    shares = [100 * part / whole for whole in range(1, 33) for part in range(whole + 1)]
    values = [*shares, *(part / 16 for part in range(-99, 99)), -0.04, 99.96, 1271.96]
    assert page.evaluate(DECIMALS, values) == [number(value, 1) for value in values]


@pytest.fixture(scope="module")
def proofs(sites: dict[str, Site]) -> dict[str, list[Json]]:
    """A proof of every kind, of the ledger with many flights."""
    site = sites["many"]
    cities = "ORIGIN_CITY_NAME={origin}&DEST_CITY_NAME={destination}"
    days = "INITIAL_DATE={first}&FINAL_DATE={last}"
    addresses = {
        "transaction": "/transactions/{id}/proof",
        "last transaction": "/transactions/0/proof?tip=5",
        "delays": f"/average_delays/proof?OP_CARRIER_AIRLINE_ID={{carrier}}&{days}",
        "count": f"/flight_counter/proof?{cities}&{days}",
        "legs": "/filter_transactions/proof?OP_CARRIER_FL_NUM={number}&FL_DATE={day}",
        "consistency": "/proofs/consistency?from=9",
    }
    return {
        name: lines(requests.get(site.url + site.address(path), timeout=10).content)
        for name, path in addresses.items()
    }


@pytest.fixture(scope="module")
def key(sites: dict[str, Site]) -> str:
    return requests.get(f"{sites['many'].url}/log/key", timeout=10).text.strip()


def verdicts(page: Page, key: str, proofs: Iterable[bytes]) -> list[Json]:
    """Return the verdicts of a page's scripts on proofs."""
    files = [base64.b64encode(proof).decode() for proof in proofs]
    verdicts: list[Json] = []
    for start in range(0, len(files), AT_ONCE):
        verdicts += page.evaluate(VERDICTS, [key, files[start : start + AT_ONCE]])
    return verdicts


def some_changed(
    proofs: dict[str, list[Json]], kinds: list[str], count: int, chance: random.Random
) -> Iterator[list[Json]]:
    """Yield `count` proofs of these kinds, each with another value at one place."""
    changed = 0
    while changed < count:
        kind = chance.choice(kinds)
        proof = with_a_change(proofs[kind], chance)[0]
        if proof != proofs[kind]:
            changed += 1
            yield proof


def test_the_verdicts_are_those_of_verify_py(
    visit: Visit, site: Site, proofs: dict[str, list[Json]], key: str, tmp_path: Path
) -> None:
    """Of proofs as they are, changed ones, and those that are wrong though the log signed them."""
    chance = random.Random(SEED)
    of_transactions = ["transaction", "last transaction", "consistency"]
    changed = [
        *some_changed(proofs, of_transactions[:2], CHANGED_TRANSACTIONS, chance),
        *some_changed(proofs, of_transactions[2:], 10, chance),
        *some_changed(proofs, ["delays", "count", "legs"], CHANGED_ANSWERS, chance),
    ]
    false = [proof for _, proof in lies(site.service.folder, proofs)]
    tried = [*proofs.values(), *changed, *false]
    ours = verdicts(visit(site).open("/about"), key, map(written, tried))
    judge = Judge(tmp_path, key)
    outcomes = [mine["verdict"] for mine in ours]
    assert outcomes == [judge.of(proof)["verdict"] for proof in tried]
    right, first_lie = len(proofs), len(proofs) + len(changed)
    assert outcomes[:right] == ["verified"] * right
    assert outcomes[right:first_lie].count("refused") >= len(changed) * 0.9
    assert {*outcomes[first_lie:]} == {"refused"}
    for proof, mine in zip(proofs.values(), ours, strict=False):
        assert mine.get("answer") == proof[0].get("answer")


@pytest.mark.long
def test_malformed_proofs_are_refused_as_verify_py_refuses_them(
    visit: Visit, site: Site, proofs: dict[str, list[Json]], key: str
) -> None:
    """tests/trust/proofs/test_malformed.py gives verify.py the same ones."""
    some = [case for case in malformed(proofs) if len(case[1]) < MOST_BYTES_SENT]
    ours = verdicts(visit(site).open("/about"), key, (proof for _, proof in some))
    named = zip(some, ours, strict=True)
    assert [what for (what, _), mine in named if mine["verdict"] != "refused"] == []


def test_another_key_a_cut_proof_and_no_proof_are_refused(
    visit: Visit, site: Site, sites: dict[str, Site], proofs: dict[str, list[Json]], key: str
) -> None:
    page = visit(site).open("/about")
    answer = requests.get(f"{sites['empty'].url}/log/key", timeout=10)
    other = answer.text.strip()
    assert answer.ok
    assert other != key
    files = {name: written(proof) for name, proof in proofs.items()}
    cut = [files["delays"].rsplit(b"\n", 2)[0], files["legs"][:-9], b"", b"[]", b"null", b"{}"]
    ours = verdicts(page, key, cut) + verdicts(page, other, [files["transaction"]])
    assert [mine["verdict"] for mine in ours] == ["refused"] * 7


def test_a_key_that_is_none_is_refused_in_words(visit: Visit, site: Site, key: str) -> None:
    page = visit(site).open("/about")
    other_type = str(VerifierKey("log", bytes(32), b"\x09"))
    keys = ["", "log", "log+01234567+AA==", key.replace("+", "x", 1), other_type]
    reasons = page.evaluate(KEYS, [*keys, key])
    assert reasons.pop() == ""
    for reason in reasons:
        assert re.search(r"or is not a key|Base64", reason), reason


# --- what pages say

PROVED = "Verified in this browser, from the proof:"
DELAYS = "/average_delays?OP_CARRIER_AIRLINE_ID={carrier}&INITIAL_DATE={first}&FINAL_DATE={last}"
ANSWERS = (
    DELAYS,
    f"{DELAYS}&OP_CARRIER_AIRLINE_ID=19805",
    "/flight_counter?ORIGIN_CITY_NAME={origin}&DEST_CITY_NAME={destination}",
    "/filter_transactions?OP_CARRIER_FL_NUM={number}&FL_DATE={day}",
)
BY_THEMSELVES = ("/transactions/{id}", "/blocks/{tip}", "/blocks/0", "/blocks/9")


def verdict(page: Page) -> str:
    """What a page says of its proof, as soon as it says something."""
    place = page.locator("[data-verdict]")
    expect(place).not_to_contain_text("This browser has not checked it", timeout=15_000)
    return place.inner_text()


def checked(page: Page) -> str:
    button = page.get_by_role("button", name="Check this answer here")
    button.click()
    message = verdict(page)
    expect(button).to_be_focused()
    return message


def test_pages_verify_what_they_show(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    page = visitor.open("/about")
    for address in (*BY_THEMSELVES, "/blocks/4?check=transactions", *ANSWERS):
        visitor.open(address, page=page)
        message = checked(page) if address in ANSWERS else verdict(page)
        assert PROVED in message, (address, message)
        limits = page.locator("[data-verdict] details").text_content() or ""
        assert ("relies on the sums in the blocks" in limits) == (address in ANSWERS)
        assert "That checkpoint is signed" in message or "that checkpoint is signed with" in message
        expect(page.locator("[data-remembered]")).to_contain_text(
            "Unchanged since block 30" if address != BY_THEMSELVES[0] else "not seen this log"
        )
    visitor.open("/blocks/4?check=transactions", page=page)
    assert "Its 59 transactions, fetched once more, are those" in verdict(page)


@pytest.mark.long
def test_a_verdict_fits_is_readable_and_can_be_used_by_everybody(visit: Visit, site: Site) -> None:
    visitor = visit(site, reduced_motion="reduce")
    for address in ("/transactions/{id}", "/blocks/{tip}", DELAYS):
        page = visitor.open(address)
        assert PROVED in (checked(page) if address == DELAYS else verdict(page))
        for summary in page.locator(".evidence summary").all():
            summary.click()
        assert violations(page, WCAG) == ""
        page.emulate_media(color_scheme="dark")
        assert violations(page, CONTRAST) == ""
        require_fit(page)


@contextmanager
def passing(page: Page, pattern: str, change: Callable[[str], str]) -> Iterator[None]:
    """What the service sends from there is changed on its way."""

    def changed(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=change(answer.text()))

    page.route(pattern, changed)
    yield
    page.unroute(pattern)


def test_what_the_proof_does_not_show_is_refused(visit: Visit, site: Site) -> None:
    visitor = visit(site, java_script_enabled=True)
    page = visitor.open("/about")
    transaction, block = site.address("/transactions/{id}"), site.address("/blocks/{tip}")
    cases = (
        (transaction, "**/proof", ('\\"ARR_TIME\\":', '\\"ARR_TIMES\\":'), "not in block"),
        (
            transaction,
            f"**{transaction}",
            ("&#34;YEAR&#34;:", "&#34;YEARS&#34;:"),
            "about a different transaction",
        ),
        (
            block,
            f"**{block}",
            ("&#34;nonce&#34;:", "&#34;nonce&#34;:1"),
            "does not lead to the signed",
        ),
        (block, f"**{block}", ('data-hash="', 'data-hash="0'), "not that of its header"),
        (block, f"**{block}", ('class="lead"><code>', 'class="lead"><code>0'), "not that of its"),
        (block, "**/consistency*", ('"consistency":[]', '"consistency":["x"]'), "is not Base64"),
        (DELAYS, "**/proof?*", ('"arrived":', '"arrived":1'), "the answer is wrong: arrived"),
        (
            DELAYS,
            "**/average_delays?*",
            ("&#34;flights&#34;: ", "&#34;flights&#34;: 1"),
            "answer differs",
        ),
        (
            DELAYS,
            "**/average_delays?*",
            (f"&amp;as_of={site.values['tip']}", "&amp;as_of=3"),
            "different question",
        ),
    )
    for address, pattern, (old, new), reason in cases:
        with passing(page, pattern, lambda text, old=old, new=new: text.replace(old, new)):  # type: ignore[misc]
            visitor.open(address, None, page)
            message = checked(page) if address == DELAYS else verdict(page)
        assert "The proof is wrong." in message, (address, pattern, message)
        assert reason in message, (address, pattern, message)
        assert "What this page shows is not proved." in message
        assert "Verified in this browser, from" not in message
    assert page.evaluate("localStorage.length") == 0


def test_all_proofs_of_a_page_must_be_of_the_same_blocks(
    visit: Visit, site: Site, tmp_path: Path
) -> None:
    """The first is of a chain that somebody made up, the second is right, and is signed."""
    make_ledger(tmp_path / "chain", [41, *LEDGERS["many"][1:]])
    with client_of(settings_for(tmp_path / "chain")) as client:
        asked = f"{site.address(DELAYS)}&as_of={site.values['tip']}".replace("?", "/proof?")
        made_up = client.get(asked).get_data(as_text=True)
    answer = html.escape(json.dumps(json.loads(made_up.partition("\n")[0])["answer"]))

    def answered(text: str) -> str:
        return re.sub(r'data-answer="[^"]*"', f'data-answer="{answer}"', text, count=1)

    visitor = visit(site)
    page = visitor.open("/about")
    first = f"**/average_delays/proof?OP_CARRIER_AIRLINE_ID={site.values['carrier']}&*"
    with (
        passing(page, "**/average_delays?*", answered),
        passing(page, first, lambda text: made_up),
    ):
        visitor.open(f"{DELAYS}&OP_CARRIER_AIRLINE_ID=19805", None, page)
        message = checked(page)
    assert "The proof is wrong." in message
    assert "are about different blocks" in message
    assert page.evaluate("localStorage.length") == 0


def test_a_proof_that_does_not_come_is_no_refusal(visit: Visit, site: Site) -> None:
    visitor = visit(site, "Failed to load resource", "net::ERR")
    page = visitor.open("/about")
    page.route("**/proof", lambda route: route.abort())
    visitor.open("/transactions/{id}", page=page)
    expect(page.locator("[data-verdict]")).to_contain_text("it got no proof:")
    page.route("**/proof?*", lambda route: route.fulfill(status=503, body="later"))
    visitor.open(DELAYS, page=page)
    page.get_by_role("button", name="Check this answer here").click()
    expect(page.locator("[data-verdict]")).to_contain_text("answered with status 503")
    page.unroute("**/proof?*")
    page.get_by_role("button", name="Check this answer here").click()
    expect(page.locator("[data-verdict]")).to_contain_text(PROVED)


def test_what_a_browser_lacks_is_told(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    visitor.context.add_init_script(
        "Object.defineProperty(Crypto.prototype, 'subtle', {get: () => undefined});"
        "delete window.DecompressionStream;"
    )
    page = visitor.open("/transactions/{id}")
    message = verdict(page)
    assert PROVED in message
    assert "the signature of that checkpoint was not checked here" in message
    assert "is signed with" not in message
    visitor.open(ANSWERS[-1], page=page)
    page.get_by_role("button", name="Check this answer here").click()
    expect(page.locator("[data-verdict]")).to_contain_text("cannot unpack the blocks")
    assert PROVED in checked(visitor.open(DELAYS))


# --- the log that a browser remembers


NO_MEMORIES = (
    "",
    "{",
    "null",
    "7",
    "[]",
    '{"kept": {}}',
    '{"kept": {"size": 9}, "alarm": {"kind": "fork"}}',
)


def test_a_memory_that_is_none_is_no_alarm_and_no_refusal(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    page = visitor.open("/about")
    for memory in NO_MEMORIES:
        page.evaluate("memory => { localStorage.flightchain = memory; }", memory)
        visitor.open("/transactions/{id}", page=page)
        expect(page.locator("[data-remembered]")).to_contain_text("not seen this log before")
        assert PROVED in verdict(page)
        assert page.locator("#alarm").count() == 0


def test_a_browser_that_keeps_nothing_says_so(visit: Visit, site: Site) -> None:
    visitor = visit(site)
    visitor.context.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get: () => { throw new Error('no'); }});"
    )
    page = visitor.open("/transactions/{id}")
    expect(page.locator("[data-remembered]")).to_contain_text(
        "does not let these pages store anything"
    )
    assert PROVED in verdict(page)


class Ledgers:
    """Pages at `url`, over the ledger that is `chosen`; each of the others can take its place."""

    def __init__(self) -> None:
        self.chosen = ""
        self.pages: dict[str, Any] = {}
        self.url = ""

    def __call__(self, environ: Any, start_response: Any) -> Any:
        return self.pages[self.chosen](environ, start_response)


def make_chains(root: Path) -> list[str]:
    """Make the chain `now`, and others: earlier, later, or put back and continued differently, …"""
    flights = generated(60)

    def make(name: str, above: str, *parts: slice, without: tuple[str, ...] = ()) -> str:
        if above:
            shutil.copytree(root / above, root / name)
        for file in without:
            (root / name / file).unlink()
        seal(settings_for(root / name), [flights[part] for part in parts])
        return name

    def rotated(name: str) -> str:
        rotate(root / name)
        return name

    return [
        make("before", "", slice(0, 5), slice(5, 9)),
        make("now", "before", slice(9, 14), slice(14, 17)),
        make("later", "now", slice(17, 20)),
        make("as long", "before", slice(20, 25), slice(25, 28)),
        make("longer", "as long", slice(28, 31)),
        make("signed anew", "now", without=("log.key", "log.vkey", "checkpoint")),
        rotated(make("rotated", "later")),
        make("another", "", slice(0, 5), slice(5, 9), slice(9, 14), slice(14, 17)),
    ]


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledgers]:
    root = tmp_path_factory.mktemp("ledgers")
    ledgers = Ledgers()
    with ExitStack() as stack:
        for name in make_chains(root):
            client = stack.enter_context(client_of(settings_for(root / name)))
            url = stack.enter_context(served_in_a_thread(client.application))
            ledgers.pages[name] = create_app(Settings(backend_url=url))
        ledgers.url = stack.enter_context(served_in_a_thread(ledgers))
        yield ledgers


@pytest.fixture
def witness(visit: Visit, site: Site, ledgers: Ledgers) -> Visitor:
    """A visitor whose browser has seen the chain `now`, of 5 blocks.

    It asks for the proof that blocks are still there which a chain with fewer does not know.
    """
    ledgers.chosen = "now"
    visitor = visit(replace(site, url=ledgers.url), "404 (NOT FOUND)", reduced_motion="reduce")
    page = visitor.open("/transactions/3")
    expect(page.locator("[data-remembered]")).to_contain_text("5 blocks")
    visitor.context.clock.install()
    return visitor


def look(witness: Visitor, ledgers: Ledgers, name: str, address: str = "/transactions/3") -> Page:
    """Have the visitor look at the chain of this name."""
    ledgers.chosen = name
    return witness.open(address, page=witness.context.pages[0])


ALARMS = {
    "before": "had 5 blocks then, and has 3 blocks now: blocks are gone",
    "as long": "The 5 blocks that it shows now do not begin with those",
    "longer": "The 6 blocks that it shows now do not begin with those",
    "signed anew": "the old key has not signed the new one",
    "another": "a different chain",
}


def test_a_log_that_has_grown_is_unchanged(witness: Visitor, ledgers: Ledgers) -> None:
    witness.context.pages[0].clock.fast_forward(3 * 86400 * 1000)
    page = look(witness, ledgers, "later")
    remembered = page.locator("[data-remembered]")
    expect(remembered).to_contain_text("Unchanged since block 4, which this browser saw 3 day")
    page.clock.fast_forward(3600 * 1000)
    witness.open("/blocks/5", page=page)
    expect(remembered).to_contain_text("Unchanged since block 5, which this browser saw 1 hou")
    expect(remembered).to_contain_text("watched since block 4, 3 days ago")
    assert page.locator("#alarm").count() == 0


def test_a_new_key_that_the_old_one_has_signed_is_followed(
    witness: Visitor, ledgers: Ledgers
) -> None:
    page = witness.context.pages[0]
    keys = [json.loads(page.evaluate("localStorage.flightchain"))["kept"]["key"]]
    for block in (4, 5):
        look(witness, ledgers, "rotated")
        expect(page.locator("[data-remembered]")).to_contain_text(f"Unchanged since block {block}")
        keys.append(json.loads(page.evaluate("localStorage.flightchain"))["kept"]["key"])
    assert keys[0] != keys[1] == keys[2]
    assert page.locator("#alarm").count() == 0
    look(witness, ledgers, "later")  # nobody has signed that the old key may come back
    expect(page.locator("#alarm")).to_contain_text("the old key has not signed the new one")


def test_a_browser_that_cannot_check_signatures_follows_no_new_key(
    witness: Visitor, ledgers: Ledgers
) -> None:
    """Over plain HTTP anybody can make up a note in which the old key signs a new one."""
    page = witness.context.pages[0]
    page.add_init_script(
        "Object.defineProperty(Crypto.prototype, 'subtle', {get: () => undefined});"
    )
    remembered = page.locator("[data-remembered]")

    def kept() -> Json:
        record: Json = json.loads(page.evaluate("localStorage.flightchain"))["kept"]
        return record

    before = kept()
    for size in (5, 6):
        look(witness, ledgers, "rotated")
        expect(remembered).to_contain_text(f"Unchanged since block {size - 1}")
        expect(remembered).to_contain_text("The key of the log has changed since")
        expect(remembered).to_contain_text("it still uses the old key")
        expect(remembered).to_have_class("notice warn")
        assert (kept()["key"], kept()["size"]) == (before["key"], 6)
    assert page.locator("#alarm").count() == 0
    look(witness, ledgers, "before")
    expect(page.locator("#alarm")).to_contain_text(ALARMS["before"].replace("5 b", "6 b"))


@pytest.mark.parametrize(
    "other",
    [*ALARMS][:3] + [pytest.param(other, marks=[pytest.mark.long]) for other in [*ALARMS][3:]],
)
def test_another_log_raises_an_alarm_that_stays(
    witness: Visitor, ledgers: Ledgers, other: str
) -> None:
    page = look(witness, ledgers, other)
    alarm = page.locator("#alarm")
    expect(alarm).to_contain_text(ALARMS[other])
    expect(page.locator("[data-remembered]")).to_contain_text("see the alarm above")
    for address in ("/transactions/3", "/about"):
        look(witness, ledgers, "now", address)  # it does not go away because all is as it was
        expect(alarm).to_contain_text(ALARMS[other])


def test_an_alarm_can_be_ended_by_somebody_who_knows_why(
    witness: Visitor, ledgers: Ledgers
) -> None:
    page = look(witness, ledgers, "before")
    alarm = page.locator("#alarm")
    ask = page.get_by_role("button", name="Forget what this browser remembers")
    expect(ask).to_be_visible()
    assert violations(page, WCAG) == ""
    ask.click()
    expect(alarm).to_contain_text("can no longer tell that the ledger has changed")
    assert violations(page, WCAG) == ""
    page.emulate_media(color_scheme="dark")
    assert violations(page, CONTRAST) == ""
    require_fit(page)
    page.get_by_role("button", name="No, keep the alarm").click()
    expect(ask).to_be_focused()
    ask.click()
    page.get_by_role("button", name="Yes, forget it").click()
    expect(page.locator("[data-remembered]")).to_contain_text(
        "It keeps the current checkpoint (3 b"
    )
    assert alarm.count() == 0


def test_a_service_that_does_not_prove_consistency_is_told_about(
    witness: Visitor, ledgers: Ledgers
) -> None:
    ledgers.chosen = "later"
    page = witness.context.pages[0]
    before = page.evaluate("localStorage.flightchain")
    wrong = json.dumps({"path": [], "from_root": "x"})
    page.route("**/consistency*", lambda route: route.fulfill(status=200, body=wrong))
    witness.open("/transactions/3", page=page)
    expect(page.locator("[data-remembered]")).to_contain_text(
        "This browser cannot tell whether the log is still the one that it saw"
    )
    assert page.evaluate("localStorage.flightchain") == before
    assert page.locator("#alarm").count() == 0
    page.unroute("**/consistency*")
    look(witness, ledgers, "later")
    expect(page.locator("[data-remembered]")).to_contain_text("Unchanged since block 4")
