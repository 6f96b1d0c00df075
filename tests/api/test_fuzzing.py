"""Schemathesis against a running service: good and bad requests made from /openapi.json, all of
which must be answered as it says. The same requests every time.

Run as a program: its plugin does not work with this pytest, and over HTTP the worker's own answers
are tried, too. Not among the checks is `positive_data_acceptance`: that YEAR and DAY_OF_WEEK agree
with FL_DATE, or that one date is not after another, cannot be said in a schema.
"""

import sys
from pathlib import Path

import pytest

from tests.api.processes import ROOT, environment, ran, serving
from tests.api.worlds import Json, world_in
from tests.effort import tries

pytestmark = pytest.mark.slow

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
    "unsupported_method",
    "allow_header_conformance",
    "negative_data_rejection",
)
# For each operation, besides those of the document.
EXAMPLES = tries(5, exploring=150)
# Each bound of each parameter with the others is tried where faults are looked for: it takes a
# third of the processor time of all tests here, and `test_specification` tries each bound alone.
PHASES = ("examples,fuzzing", "examples,coverage,fuzzing")[tries(0, exploring=1)]
MOST_S = 900  # a tenth of it on a machine that does nothing else


def operations_in(document: Json) -> int:
    """Returns how many operations an OpenAPI document describes, besides that which answers it."""
    paths = document["paths"]
    return sum(len(operations) for path, operations in paths.items() if path != "/openapi.json")


@pytest.mark.long
def test_requests_made_from_the_document_are_answered_as_it_says(tmp_path: Path) -> None:
    folder = tmp_path / "chain"
    world_in(folder)
    with serving(folder, FLIGHTCHAIN_COMMIT_WAIT_S=0.05) as service:
        operations = operations_in(service.json("/openapi.json"))
        run = ran(
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{service.url}/openapi.json"),
            *("--checks", ",".join(CHECKS), "--phases", PHASES),
            *("--max-examples", str(EXAMPLES), "--generation-deterministic"),
            "--no-color",
            cwd=tmp_path,
            env=environment(
                folder, PYTHONPATH=ROOT, SCHEMATHESIS_HOOKS="tests.api.fuzzing", NO_PROXY="*"
            ),
            timeout_s=MOST_S,
        )
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"Tested: {operations}" in run.stdout
