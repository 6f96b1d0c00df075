"""`scripts/screenshots`: the documents' pictures, from real flights. A new one is a new row."""

import base64
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser

from tests.api.processes import ROOT, backend, free_port, serving, until
from tests.browser.chromium import launched

FOLDER = ROOT / "scripts" / "screenshots.d"
QUALITY = 75  # of WebP, 0 to 100
MOST_BYTES = 60_000
WIDTH = 1200


@dataclass(frozen=True, slots=True)
class Shot:
    """name: of the file. address: of the page. height: of the picture, px."""

    name: str
    address: str
    height: int = 800


SHOTS = (
    Shot("home", "/"),
    Shot("flight_status", "/filter_transactions?OP_CARRIER_FL_NUM=1&FL_DATE=2013-07-01"),
    Shot(
        "average_delays",
        "/average_delays?OP_CARRIER_AIRLINE_ID=19977&INITIAL_DATE=2013-07-01&FINAL_DATE=2013-07-31",
        1140,
    ),
    Shot(
        "flight_counter",
        "/flight_counter?ORIGIN_CITY_NAME=New+York,+NY&DEST_CITY_NAME=San+Francisco,+CA"
        "&INITIAL_DATE=2013-07-01&FINAL_DATE=2013-07-31",
        1120,
    ),
    Shot("ranking", "/rankings?by=route&INITIAL_DATE=2013-07-01&FINAL_DATE=2013-07-31", 760),
    Shot("report", "/report?OP_CARRIER_FL_NUM=UA1545", 900),
    Shot("route", "/route?ORIGIN=JFK&DEST=LAX", 800),
)


def main() -> None:
    """Import the flights, serve them, and take every picture of the table."""
    FOLDER.mkdir(exist_ok=True)
    port = free_port()
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "chain"
        done = backend(folder, "import", "--nycflights", timeout_s=600)
        if done.returncode:
            sys.exit(done.stderr)
        settings = {"FLIGHTCHAIN_FRONTEND_PORT": port, "FLIGHTCHAIN_MINE_INTERVAL_S": 60}
        with serving(folder, "--frontend", **settings) as service, launched() as browser:
            until(lambda: "open http" in service.said())
            for shot in SHOTS:
                _take(browser, f"http://127.0.0.1:{port}", shot)


def _take(browser: Browser, url: str, shot: Shot) -> None:
    page = browser.new_page(viewport={"width": WIDTH, "height": shot.height})
    answer = page.goto(url + shot.address)
    assert answer is not None
    assert answer.ok, f"{shot.address} answers with status {answer.status}"
    how = {"format": "webp", "quality": QUALITY}
    taken = page.context.new_cdp_session(page).send("Page.captureScreenshot", how)
    picture = base64.b64decode(taken["data"])
    assert len(picture) <= MOST_BYTES, f"{shot.name} has {len(picture):,} bytes"
    path = FOLDER / f"{shot.name}.webp"
    path.write_bytes(picture)
    print(f"{path.relative_to(ROOT)}: {len(picture):,} bytes")
    page.close()


if __name__ == "__main__":
    main()
