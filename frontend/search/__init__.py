"""The search: what a text means, which pages answer that, and what of it the ledger has.

Without files, network or clock: `vocabulary` has the English words, `names` the ledger's, `times`
the days; `sentences` reads a text with them, and `answers` says which pages answer a reading;
`meanings` knows ids, heights and hashes; `completing` makes texts that name something from texts
that do not. `finding` and `examples` ask the backend.
"""
