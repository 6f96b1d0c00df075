"""Makes sample files that show the columns of a file of flights."""

import csv
import io
import json
from typing import Any

from frontend.texts import texts


def _samples() -> list[dict[str, Any]]:
    names, _, _, examples = zip(*texts("columns"), strict=True)
    return [dict(zip(names, flight, strict=True)) for flight in zip(*examples, strict=True)]


def sample_csv() -> str:
    samples, text = _samples(), io.StringIO(newline="")
    writer = csv.DictWriter(text, [*samples[0]])
    writer.writeheader()
    writer.writerows(samples)
    return text.getvalue()


def sample_ndjson() -> str:
    return "".join(json.dumps(flight) + "\n" for flight in _samples())
