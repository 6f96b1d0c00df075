"""Lets several machines keep one ledger, whose blocks are ordered by CometBFT (ABCI 2.0).

A node is a service as ever, in which `node.Node` takes the place of the miner: it runs the engine,
CometBFT, as a child process, and answers it as its application. Blocks, files, index, questions and
proofs are the same code. A ledger that belongs to no cluster runs nothing of this package.

How a flight comes into the ledger. A post is acknowledged when the flight is in the mempool of the
node that was asked, on its disk, under a number that counts what this node accepted (`outbox`).
Every interval, or when a block is full, the node sends what is pending to the engine in signed
transactions (`signed_transactions`), again and again until it is mined. The engine's voters agree
on an order. Each node makes the same block of it: `transaction_selection` keeps a transaction only
if it goes on where its node's mined flights end, so a number is mined once, however often and by
whomever it is sent. For that, a count for each member is all that must be remembered. Ids are
positions in the ledger, as ever, and are given when the block is made. A receipt (node, number,
tag) leads to the id.

How a block is made. Its content is the flights of the engine's block in the order of acceptance,
its time the header's, raised to the acceptance times; `ChainState.build` makes the same bytes of
these on every node, so the block's hash is the engine's `app_hash`: nodes that disagree find out at
the next block. A block of the engine without flights makes none.

What is on the disk when. The engine has a block on its disk before it asks the application to
`FinalizeBlock`, which builds and writes nothing. `Commit` writes, each step synced before the next:

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

The clock of a node counts in two places: the time of acceptance, which a transaction carries, and
the votes for a block, of whose times the engine takes the median for the next header. A flight that
was accepted long after the header's time waits until that has come (`transaction_selection`), so
one wrong clock does not move the ledger's.
"""
