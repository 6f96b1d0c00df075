"""A browser at pages over two nodes of a cluster, which remembers one log and raises no alarm."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from frontend.app import create_app
from frontend.settings import Settings
from tests.api.processes import Service, until
from tests.browser.conftest import Visit
from tests.browser.sites import Site
from tests.browser.test_proofs import PROVED, verdict
from tests.cluster.engine import T0, Engine
from tests.http_servers import served_in_a_thread

VISITS = 6  # each page is asked of the next node


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with Engine(tmp_path, 2) as engine:
        engine.decide([node.sent(0, 3) for node in engine.nodes])
        yield engine


@pytest.fixture
def site(engine: Engine) -> Iterator[Site]:
    """Pages over both nodes, as `FLIGHTCHAIN_BACKEND_URL=url,url` shows them."""
    with ExitStack() as stack:
        services = []
        for node in engine.nodes:
            home = str(node.settings.engine_home)
            more: dict[str, Any] = {"FLIGHTCHAIN_WORKERS": 1, "FLIGHTCHAIN_CLUSTER": home}
            services.append(Service(node.settings.folder, "--only-http", **more))
            stack.callback(services[-1].end)
        for service in services:
            until(partial(service.answers, "/health/live"))
        first, *others = (service.url for service in services)
        app = create_app(Settings(backend_url=first, more_backends=tuple(others)))
        yield Site(stack.enter_context(served_in_a_thread(app)), services[0], {})


def remembered(page: Page) -> str:
    """Return what the page says of the log that the browser remembers; no alarm may be shown."""
    assert PROVED in verdict(page)
    line = page.locator("[data-remembered]")
    expect(line).not_to_be_empty()
    expect(page.locator("#alarm")).to_have_count(0)
    return line.inner_text()


@pytest.mark.long
def test_pages_over_two_nodes_raise_no_alarm_even_if_one_is_behind(
    visit: Visit, site: Site, engine: Engine
) -> None:
    visitor = visit(site)
    page = visitor.open("/transactions/0")
    assert "had not seen this log" in remembered(page)
    for _ in range(VISITS):
        visitor.open("/transactions/0", page=page)
        assert "Unchanged since block 1" in remembered(page)
    behind = engine.nodes.pop()
    engine.decide([engine.nodes[0].sent(3, 2, T0 + 1)], T0 + 1)
    messages = []
    for _ in range(VISITS):
        visitor.open("/transactions/0", page=page)
        messages.append(remembered(page))
    engine.nodes.append(behind)
    assert any("a node that is 1 block behind" in message for message in messages), messages
    assert any("Unchanged since block 2" in message for message in messages), messages
