"""Folders as the lab leaves them, with a report that the lab's own code makes."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from loadtests.lab.content import Figure, Metric, Report, Section, Table, summary
from loadtests.lab.report.page import report_page
from tests.loadtests.lab.miniature import EMULATED

MANIFEST: dict[str, Any] = {
    "experiment": "open-workload",
    "mode": "emulated",
    "scale": 100,
    "seed": 1,
    "reps": 10,
    "quick": False,
    "state": "complete",
    "started": "2026-10-03T08:15:00+00:00",
    "ended": "2026-10-03T08:34:12+00:00",
    "commit": "5b0f3c1c2f3a",
    "machine": {
        "cpu": "ARM Cortex-A72",
        "cores": 4,
        "ram_mb": 3977,
        "pages that the kernel keeps in memory": 1,
    },
    "versions": {"Flask": "3.1.3", "locust": "2.47.0"},
}
FINDING = "At 0.85 L the mean response time was 3.9 times E[S] & M/G/1 says 3.84."
SVG = '<svg viewBox="0 0 10 10"><path d="M0 0L10 10" stroke="var(--data-1)"/></svg>'
TABLE = Table("Response times", ("Load", "R, s"), [(0.3, 0.49), (0.85, 1.58)])
REPORT = Report(
    findings=[FINDING, "The run was quiet.", "A third finding."],
    sections=[Section("Figures", [], [Figure("Response time", SVG, "It grows.", TABLE)])],
    metrics=[
        Metric("response_time_mean[0.85]", 1.5812345, "s", 1.44, 1.72),
        Metric("rejected_runs", 0.0),
    ],
)


def make_result(folder: Path, **changes: Any) -> Path:
    """A result with the name of `folder`. changes: of its manifest."""
    folder.mkdir(parents=True)
    _write(folder / "manifest.json", MANIFEST | changes)
    _write(folder / "summary.json", summary(REPORT))
    page = report_page(replace(EMULATED, title="Open workload"), MANIFEST, REPORT, [])
    (folder / "report.html").write_text(page, encoding="utf-8")
    (folder / "requests.csv").write_text("run,index\r\none,0\r\n", encoding="utf-8")
    return folder


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
