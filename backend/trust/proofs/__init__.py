"""Proofs that need no trust: from a transaction, an answer or the chain to a signed checkpoint.

`scripts/verify.py` checks them, and is written to be read beside this text. A proof is a file of
lines of JSON. The first says what is proved:

    flightchain_proof   1, the number of this form
    kind                "transaction", "answer", "chain" or "consistency"
    size                up to which block it goes: it covers blocks 0 to size - 1
    consistency         proof that the tree of `size` blocks is a beginning of the checkpoint's tree
    checkpoint          the signed checkpoint, with the signatures of witnesses that it has
    key                 the verifier key of the log: for comparison, as a proof cannot vouch for it
    successions         signed notes with which older keys of the log name the ones that followed

Hashes in proofs are in Base64. Their order is that of RFC 6962 section 2.1: from the leaf up.

*A transaction* has one line, with `transaction` (its canonical bytes, as a text), `path` (to
`transactions_root` of its block), `header` (canonical), and `history` (the path of the block's hash
in the tree of `size` blocks).

*An answer* has `question` (its name and parameters) and `answer` in the first line, and a line for
each block from 0 on. So no block is left out. Each line has the block's `header`, and either its
`cells`, or its whole `body`, compressed with zlib, where flights must be looked at. The cells that
are shown begin at number `first` of `count`, and `hashes` (see `merkle.range_path`) lead to
`summary_root`. If a carrier is asked for, they are its cells of the days in question and one
neighbour on each side: cells are sorted by carrier and day, so that nothing can be missing between
neighbours. Otherwise all cells are shown. A block whose cells name none of the carriers and days in
question holds no flight that counts. For that the cells must be those of the block's flights, and
sorted. The proof of an answer does not show this, the proof of the chain does: a log that signs
blocks with wrong cells can hide flights from answers, and is found out by whoever checks the chain.

*The chain* has a line with `header` and `body` for each block.

*Consistency* has one line, with `from` and `size` (numbers of blocks), `from_root`, `root`, and
`path`.

No line follows those that are named here.
"""
