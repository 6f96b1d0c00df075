"""Makes what a log can sign that lies: other trees, other blocks, other answers."""

import base64
import hashlib
import zlib
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from backend.chain import merkle
from backend.chain.block import Block, block_of, mined
from backend.storage.block_store import BlockStore
from backend.transparency.checkpoints import Checkpoint
from backend.transparency.secret_keys import log_key
from tests.proofs.proofs import Json


class Forger:
    """Has the key of the log in `folder`, and so can sign whatever it likes."""

    def __init__(self, folder: Path) -> None:
        self.key = log_key(folder)
        with closing(BlockStore(folder)) as store:
            self.blocks = [store.block(height) for height in range(store.height() + 1)]

    @property
    def origin(self) -> str:
        return self.key.verifier.name

    def note(self, size: int, root: bytes) -> str:
        """A signed checkpoint."""
        return str(self.key.note(str(Checkpoint(self.origin, size, root))))

    def head(self, leaves: Sequence[bytes], **members: Any) -> Json:
        """The first line of a proof under a checkpoint of the tree of leaf hashes."""
        return {
            "flightchain_proof": 1,
            "size": len(leaves),
            "consistency": [],
            "checkpoint": self.note(len(leaves), merkle.root(leaves)),
            "key": str(self.key.verifier),
            "successions": [],
            **members,
        }

    def consistency(self, leaves: Sequence[bytes], old: int) -> Json:
        """The proof that the tree of these leaf hashes begins with the tree of the first ones."""
        return self.head(
            leaves,
            kind="consistency",
            **{"from": old},
            from_root=text(merkle.root(leaves[:old])),
            root=text(merkle.root(leaves)),
            path=[text(one) for one in merkle.consistency_proof(leaves, old)],
        )

    def leaves(self) -> list[bytes]:
        return merkle.leaf_hashes(bytes.fromhex(block.hash) for block in self.blocks)

    def chain(self, **members: Any) -> list[Json]:
        """A proof with all blocks; by default of the chain."""
        return [self.head(self.leaves(), **{"kind": "chain", **members}), *map(whole, self.blocks)]

    def mine(self, height: int, body: bytes, **changes: Any) -> None:
        """Give a block another body and header, and mine what is above it again."""
        digest = hashlib.sha256(body).hexdigest()
        header = replace(self.blocks[height].header, body_hash=digest, **changes)
        self.blocks[height] = block_of(mined(header), body)
        for above in range(height + 1, len(self.blocks)):
            hashes = [bytes.fromhex(block.hash) for block in self.blocks[:above]]
            root = merkle.root(merkle.leaf_hashes(hashes)).hex()
            old = self.blocks[above]
            header = replace(old.header, previous_hash=hashes[-1].hex(), history_root=root)
            self.blocks[above] = block_of(mined(header), old.body)


def whole(block: Block) -> Json:
    """The line of a block with its body."""
    return {"header": block.header_bytes.decode(), "body": text(zlib.compress(block.body))}


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()
