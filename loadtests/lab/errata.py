"""The errors that are printed in the five studies, with corrections.

They were found by computing every number again: formulas by hand, networks by exact mean value
analysis, published tables from the authors' own files. A slip does not make a study worse, but a
reader who repeats it needs to know.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loadtests.lab.content import Section, Table


class Erratum(NamedTuple):
    """A printed error. where: its place in the study. why: how it is known to be wrong."""

    where: str
    printed: str
    correct: str
    why: str


ERRATA: Mapping[str, Sequence[Erratum]] = {
    "000": [
        Erratum(
            "Demand of the CPU station",
            "D₂ = 0.422 s",
            "D₂ = 0.4184 s",
            "523 visits of 0.0008 s; figure 7 has it right.",
        ),
        Erratum(
            "Bound of the throughput",
            "1/D_b = 0.0417 1/s, N_opt = 49.422/24 ≈ 2.06",
            "1/D_b = 0.0424 1/s, N_opt = 2.077",
            "D_b is 23.598 s and was rounded to 24 before dividing.",
        ),
        Erratum(
            "Throughput at N = 18 in the authors' derived table",
            "the value of N = 17",
            "0.042015869577 1/s",
            "A copy error: the authors' own JMVA file and a fresh MVA agree at every population.",
        ),
        Erratum(
            "Reads of a scan",
            "27 × 19 = 513, which the text itself calls an assumption",
            "503 distinct blocks",
            "The last refill finds ten of its blocks in the cache, as the text says; the authors' "
            "profile counts 502.9 reads a query. The demands are 2 % too high by that.",
        ),
        Erratum(
            "Model and measurement of one customer",
            "44.02 s and 40.50 s side by side",
            "the model is 8.7 % above",
            "The two were never reconciled. The profiler that gave 46 ms and 39 ms slows what it "
            "measures.",
        ),
        Erratum(
            "Queueing network against the server",
            "a network of three stations, N_opt = 2.08",
            "for their server X ≤ 1/D = 0.0227 1/s, N_opt = 1.11",
            "The server ran with threaded=False, one request at a time. The network describes a "
            "server with several threads, and exponential service.",
        ),
        Erratum(
            "“Better than M/G/1 at high load”",
            "95.0 and 102.1 s against 121.6 and 155.3 s",
            "an M/G/1 queue measured in the same way has a mean of 97.8 and 110.8 s",
            "Runs began empty and lasted 44 service times. All four published means lie in the "
            "range that simulation gives for such runs. This suffices as an explanation; it is no "
            "proof.",
        ),
        Erratum(
            "“Disk, 46 ms”",
            "the disk takes 46 ms a block",
            "about 17 ms of file reading; the rest is JSON and objects",
            "The authors' profile splits it so. An SSD would save at most 9 of 44 s, not 23.6.",
        ),
        Erratum(
            "What the models leave out",
            "open and closed models of the requests alone",
            "a /mine request a minute goes through the same one-at-a-time server",
            "This request is in the load scripts and in no model.",
        ),
        Erratum(
            "Runs of the service-time test", "15 runs", "16 runs", "The script loops over {0..15}."
        ),
    ],
    "001": [
        Erratum(
            "Equation (1)",
            "(1 − χ)^{2m!}",
            "(1 − χ)² m!",
            "Three derivations agree; as printed, λ = 5, μ = 2, m = 3 gives 2.5·10⁸ s, not 1.202 "
            "s.",
        ),
        Erratum(
            "Footnote 2, response time of M/G/m",
            "E[R] = E[S] + λE[S²]/(2(1 − ρ)), with ρ the mean number of customers in the station",
            "this is M/G/1, and ρ = λE[S] is the mean number in service",
            "The Pollaczek–Khinchine formula is of one server. With m > 1 no exact formula is "
            "known; Allen and Cunneen approximate it.",
        ),
        Erratum(
            "Assumption of the model",
            "χ ≪ 1",
            "χ < 1, and runs long enough",
            "Runs near χ = 1 ended before the queue was long.",
        ),
    ],
    "002": [
        Erratum(
            "Sum of the validation shares",
            "41.75 %",
            "41.76 %",
            "7.90 + 7.31 + 6.61 + 6.35 + 5.62 + 3.75 + 4.22 %.",
        ),
        Erratum(
            "Schema validation in Go",
            "0.578 s",
            "5.07 s, if “15 times faster” is right",
            "The printed time is that of the serialisation, to the millisecond; 0.578 s would be "
            "131 times faster.",
        ),
    ],
    "003": [
        Erratum(
            "Rejected experiments",
            "unsuccessful less than 1 %",
            "unsuccessful more than 1 %",
            "A run with few failures is the one to keep.",
        ),
        Erratum(
            "Growth of latency",
            "exponentially with the clients",
            "linearly beyond saturation: N·D_b − Z",
            "In a closed system latency cannot grow faster.",
        ),
    ],
    "004": [
        Erratum(
            "Onset of saturation",
            "“more than 100 tx/s”",
            "more than 1000 tx/s",
            "The text around it and the figure say so.",
        ),
        Erratum(
            "Highest target rates",
            "2000 to 8000 tx/s by 2 to 8 clients, one transaction a millisecond by each",
            "at most 199 (one manager) or 106 (several) by each",
            "A client that waits 5.02 or 9.425 ms for each transaction cannot send more; those "
            "points are closed runs, back to back.",
        ),
        Erratum(
            "Sum of the parts of table 1",
            "5.02 and 9.425 ms",
            "5.0076 and 9.41 ms",
            "Begin + 4 queries + 3 reservations + commit: 0.25 % and 0.16 % less than the whole.",
        ),
    ],
}
"""By study."""


def errata_section(study: str = "") -> Section:
    """A section with the errors of one study, or of all if `study` is empty."""
    title = f"Errata of study {study}" if study else "Errata of the five studies"
    columns = ("Study", "Where", "Printed", "Correct", "How it is known")
    rows = [(of, *one) for of, those in ERRATA.items() if study in {"", of} for one in those]
    return Section("Errata", parts=[Table(title, columns, rows)])
