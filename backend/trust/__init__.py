"""Lets others check this ledger without trusting whoever runs it.

`log` is the chain as a transparency log, `proofs` leads from an answer to a signed checkpoint,
`witness` sees to it that a log shows everybody the same, and `cheating` shows that cheats are
noticed.
"""
