"""What a scenario is given, and what it reports."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

KINDS = {
    "lost": "acknowledged flights that are not there",
    "doubled": "flights that are there twice",
    "wrong": "answers that are not true",
    "signed": "what the log signed and must not sign",
    "silent": "flights forgotten, or damage passed over, without a word",
    "refused": "answers that are neither right nor a refusal that says what to do",
    "crashed": "processes that ended by themselves",
    "memory": "more memory than is promised",
    "slow": "promises about time that were not kept",
}
MOST_SHOWN = 5  # findings of a kind that are printed in full


@dataclass
class Task:
    """What a scenario is to do: how often, in which folder, with which luck.

    says: takes lines about progress.
    """

    count: int
    folder: Path
    chance: random.Random
    says: Callable[[str], None] = print


@dataclass
class Outcome:
    """What a scenario did and found. findings: kind, and what was found, in words."""

    done: int = 0
    acknowledged: int = 0
    restart_s: float = 0.0  # the longest time from a start to the first answer
    findings: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    skipped: str = ""  # why nothing could be done here

    def add(self, kind: str, what: str) -> None:
        """Take down something that must not be, and say so at once: a soak takes hours."""
        assert kind in KINDS, kind
        print(f"    {kind}: {what}", flush=True)
        self.findings.append((kind, what))

    def of_kind(self, kind: str) -> list[str]:
        """Returns what was found of a kind."""
        return [what for name, what in self.findings if name == kind]


def table(outcomes: Sequence[tuple[str, Outcome]]) -> str:
    """The outcomes by the names of their scenarios, as a table in Markdown."""
    heads = ["What was done", "How often", "Acknowledged", *KINDS, "Restart at most"]
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)]]
    for name, outcome in outcomes:
        counts = [str(len(outcome.of_kind(kind))) for kind in KINDS]
        restart = f"{outcome.restart_s:.2f} s" if outcome.restart_s else ""
        cells = [f"{outcome.done:,}", f"{outcome.acknowledged:,}", *counts, restart]
        lines.append([name, *(["skipped"] + [""] * (len(cells) - 1) if outcome.skipped else cells)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def details(outcomes: Sequence[tuple[str, Outcome]]) -> str:
    """Returns what was found, kind by kind, with the first of each in words."""
    lines = []
    for name, outcome in outcomes:
        lines += [f"{name}: skipped, {outcome.skipped}"] if outcome.skipped else []
        lines += [f"{name}: {note}" for note in outcome.notes]
        for kind, meaning in KINDS.items():
            findings = outcome.of_kind(kind)
            if findings:
                lines.append(f"{name}: {len(findings)} {kind} ({meaning})")
                lines += [f"    {what}" for what in findings[:MOST_SHOWN]]
    return "\n".join(lines)
