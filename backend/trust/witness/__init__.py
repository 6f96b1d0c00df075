"""Witnesses: programs that see to it that a log shows everybody the same and forgets nothing.

A witness keeps the newest checkpoint of each log that it knows. It cosigns another one only if that
is proved to extend the one that it keeps, so a log that takes something back, or that shows
different things to different people, gets no more cosignatures (C2SP tlog-witness and
tlog-cosignature). `witness` is the witness itself, with what it knows of logs. `following` looks at
logs over HTTP, and tells somebody what is wrong. `cosign_requests` asks witnesses to cosign the
checkpoints of this ledger.
"""
