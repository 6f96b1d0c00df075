"""Lets several machines keep one ledger, whose blocks are ordered by CometBFT (ABCI 2.0).

`docs/explanation/cluster.md` says what a cluster promises. A node is a service as ever, in which
`node.Node` takes the place of the miner: it runs the engine, CometBFT, as a child process, and
answers it as its application. A ledger that belongs to no cluster runs nothing of this package.

A node accepts a flight under a number that counts what it accepted (`outbox`), and sends it to the
engine in signed transactions (`signed_transactions`) until it is mined. The engine's voters agree
on an order, of which every node makes the same block (`transaction_selection`): its content is the
flights of the engine's block in the order of acceptance, its time the header's, raised to the
acceptance times. The block's hash is the engine's `app_hash`, so nodes that disagree find out at
the next block. A block of the engine without flights makes none.

Around these: `engine` runs CometBFT, `engine_files` checks its files and `engine_watch` whether it
goes on; `application` answers it, over `socket_server`, `messages` and `wire`; `block_appender`
writes blocks. `membership` reads who belongs to the cluster, `node_status` and `view` tell the
service of it, `put_back` notices an older copy. `configuration`, `log_key` and `local` make and run
clusters for `scripts/cluster`.

The engine has a block on its disk before it asks the application to `FinalizeBlock`, which builds
and writes nothing. `Commit` writes, each step synced before the next:

    1  the receipts of the block, its hash and the engine's height     (`receipt_store`)
    2  the block in its block file, then its entry in the table of heights
    3  the index, and the signed checkpoint

Blocks that the table names count, and receipts count up to the tip. A crash

    before 1             the chain stands at the block before; `Info` says so, the engine replays
    between 1 and 2      the receipts above the tip are dropped, then as above
    within 2             a whole block without an entry is taken in, as its receipts are there;
                         a torn one is cut off, and the engine replays it
    between 2 and 3      `Info` names the block, and the index follows the chain as ever
    after 3              the engine knows from `Info` that it need not ask again

The engine keeps all blocks, so a node that lost its chain is given everything again from the block
that the cluster began with, of which it needs a copy.
"""
