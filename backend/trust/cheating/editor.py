"""Writes a chain as a cheat would: any block may be changed, mined again, moved or left out."""

import shutil
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from backend.base import files
from backend.chain.block import Block, block_of, mined
from backend.chain.block_content import content_of
from backend.chain.columns import COLUMN_NAMES, columns_from, decode_body, encode_body
from backend.chain.fields import Value
from backend.chain.state import empty_state
from backend.storage import layout
from backend.storage.block_store import BlockStore
from backend.storage.codec import compress, frame_of
from backend.trust.log import CHECKPOINT_NAME
from backend.trust.log.checkpoints import Checkpoint
from backend.trust.log.secret_keys import LOG, log_key, secret_key, write_checkpoint
from backend.trust.log.tree import HistoryTree

FOLLOWING = ("index", "mempool")  # folders that follow from the blocks


class Editor:
    """The chain in `folder`. blocks: what `save` writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with closing(BlockStore(folder)) as store:
            self.blocks = [store.block(height) for height in range(store.height() + 1)]

    def change(self, height: int, row: int, name: str, value: Value) -> None:
        """Change a value of a flight in a block, and nothing else: its header stays as it is."""
        block = self.blocks[height]
        columns = decode_body(block.body, block.header.transaction_count)
        rows = [columns[column_name].expanded() for column_name in COLUMN_NAMES]
        rows[COLUMN_NAMES.index(name)][row] = value
        self.blocks[height] = replace(block, body=encode_body(columns_from(rows)))

    def mine_again(self, first: int, last: int) -> None:
        """Let headers say what their blocks and those below are, with new proofs of work."""
        state = empty_state(self.blocks[0].header.difficulty_bits)
        for height, block in enumerate(self.blocks[: last + 1]):
            if height >= first:
                content = content_of(decode_body(block.body, block.header.transaction_count))
                self.blocks[height] = state.build(block.header.timestamp, content)
            state = state.applied(self.blocks[height])

    def renumber(self) -> None:
        """Give each block its height and the ids that follow, with a new proof of work only."""
        first = 0
        for height, block in enumerate(self.blocks):
            header = replace(block.header, height=height, first_transaction=first)
            if header != block.header:
                self.blocks[height] = block_of(mined(header), block.body)
            first += block.header.transaction_count

    def save(self) -> None:
        """Write the blocks, with right checksums and a right table of heights.

        What follows from the blocks is removed, so that the service would make it again.
        """
        for name in FOLLOWING:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        blocks = self.folder / layout.BLOCKS_FOLDER
        shutil.rmtree(blocks)
        files.make_folder(blocks)
        data, table = _written(self.blocks)
        files.write_new(blocks / layout.block_file_name(0), data)
        files.write_new(blocks / layout.TABLE_NAME, table)

    def replace_key(self) -> None:
        """Do what the service does by itself where neither key nor checkpoint is left."""
        name = log_key(self.folder).verifier.name
        for file_name in (LOG.secret, LOG.public, CHECKPOINT_NAME):
            (self.folder / file_name).unlink()
        secret_key(self.folder, LOG, name)

    def sign(self) -> None:
        """Sign a checkpoint of the blocks that are saved, as whoever has the log's key can."""
        key = log_key(self.folder)
        with closing(BlockStore(self.folder)) as store:
            tree = HistoryTree(store)
            size = tree.size()
            signed = Checkpoint(key.verifier.name, size, tree.root(size))
        write_checkpoint(self.folder, key, signed)


def _written(blocks: Sequence[Block]) -> tuple[bytes, bytes]:
    """Return a block file with all blocks, and the table of heights."""
    data, table = bytearray(), bytearray()
    for block in blocks:
        frame = frame_of(block.header_bytes, block.body, compress(block.body))
        table += layout.place_of(block, 0, len(data), len(frame)).packed()
        data += frame
    return bytes(data), bytes(table)
