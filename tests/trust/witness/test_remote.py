"""A log over HTTP whose partial tiles are gone, as the specification allows once there are more."""

import pytest

from backend.chain import merkle
from backend.trust.log import tiles
from backend.trust.log.tree import TILE_WIDTH
from backend.trust.witness.following import RemoteLog, Unreachable
from tests.trust.witness.logs import answering

LEAVES = [merkle.leaf_hash(bytes([at % 256, at // 256])) for at in range(700)]


def whole_tiles_alone(path: str, _body: bytes) -> tuple[int, bytes]:
    """Answer with tiles that are full, or that are the last ones of the whole log."""
    tile = tiles.parse(path.removeprefix("/tile/"))
    if tile is None or tile.level > 1:
        return 404, b""
    hashes = LEAVES
    if tile.level == 1:
        whole = len(LEAVES) // TILE_WIDTH
        hashes = [
            merkle.root(LEAVES[TILE_WIDTH * at : TILE_WIDTH * (at + 1)]) for at in range(whole)
        ]
    hashes = hashes[TILE_WIDTH * tile.index : TILE_WIDTH * (tile.index + 1)]
    return (200, b"".join(hashes)) if len(hashes) == tile.width else (404, b"")


def test_the_beginning_of_a_full_tile_serves_for_a_partial_one_that_is_gone() -> None:
    with answering(whole_tiles_alone) as url:
        for old, size in ((3, 200), (200, 300), (1, 511), (300, 700)):
            proof = RemoteLog(url).consistency_proof(old, size)
            roots = merkle.root(LEAVES[:old]), merkle.root(LEAVES[:size])
            merkle.verify_consistency(old, size, *roots, proof)


def test_a_tile_that_is_nowhere_is_named() -> None:
    with answering(lambda path, body: (404, b"")) as url:
        with pytest.raises(Unreachable, match=r"tile/0/000\.p/200 answers with status 404"):
            RemoteLog(url).consistency_proof(3, 200)
        with pytest.raises(Unreachable, match="tile/0/000 answers with status 404"):
            RemoteLog(url).consistency_proof(3, 256)


def test_a_tile_of_another_length_is_refused() -> None:
    short = answering(lambda path, body: (200, bytes(31)))
    with short as url, pytest.raises(Unreachable, match="has 31 bytes"):
        RemoteLog(url).consistency_proof(3, 200)
