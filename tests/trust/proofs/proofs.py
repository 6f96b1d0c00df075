"""Proofs of a small world, as the service gives them, and what `scripts/verify.py` says of them."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

import verify

Json = dict[str, Any]
Proofs = dict[str, list[Json]]  # a proof of each kind: its lines
DAYS = {"INITIAL_DATE": "2015-01-02", "FINAL_DATE": "2015-01-05"}


def lines(data: bytes) -> list[Json]:
    """The lines of a proof."""
    return [json.loads(line) for line in data.splitlines()]


def written(proof: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in proof)


def fetched(client: FlaskClient, path: str, **query: Any) -> list[Json]:
    """A proof."""
    with client.get(path, query_string=query) as response:
        assert response.status_code == 200, response.get_data(as_text=True)
        return lines(response.get_data())


is_signed = cache(verify.is_signed)  # most proofs of a test have the checkpoint of another


class Judge:
    """Runs `verify.py` on proofs. key: the key that it trusts."""

    def __init__(self, folder: Path, key: str) -> None:
        self._folder = folder
        self.key = key

    def file(self, proof: "Iterable[Mapping[str, Any]] | bytes", name: str = "proof.json") -> Path:
        path = self._folder / name
        path.write_bytes(proof if isinstance(proof, bytes) else written(proof))
        return path

    def says(self, *files: Path, **options: Any) -> Json:
        """The verdict, and with it the reason or what was proved."""
        command = ["--json"]
        for name, values in options.items():
            for value in values if isinstance(values, list) else [values]:
                command += [f"--{name}", str(value)]
        verdict: Json = json.loads(self.prints(*files, *command))
        return {**verdict["files"][-1], "verdict": verdict["verdict"]}

    def prints(self, *arguments: "Path | str") -> str:
        """What `verify.py` prints. Its exit status must be that of its verdict."""
        with pytest.MonkeyPatch.context() as patch, printed(patch) as out:
            patch.setattr("sys.argv", ["verify.py", "--key", self.key, *map(str, arguments)])
            patch.setattr(verify, "is_signed", is_signed)
            status = verify.main()
        text = "".join(out)
        assert status == ("verified" not in text[:30].lower())
        return text

    def of(self, proof: "Iterable[Mapping[str, Any]] | bytes", **options: Any) -> Json:
        return self.says(self.file(proof), **options)


@contextmanager
def printed(patch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    out: list[str] = []
    patch.setattr("builtins.print", out.append)
    yield out
