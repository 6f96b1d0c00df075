"""The search: what a text means, which pages answer that, and what of it the ledger has.

Without files, network or clock: `vocabulary` has the English words, `names` the ledger's, `times`
the days. `sentences` reads a text with them: `scanning` takes what it names, and `gathering` makes
readings of that, whose form is in `reading`. `answers` says which pages answer a reading, and
`hints` how a field of a form is filled in; `completing` makes texts that name something from texts
that do not. `finding`, which also knows ids, heights and hashes, `fields`, which says what a field
of a form means, and `examples` ask the backend.
"""
