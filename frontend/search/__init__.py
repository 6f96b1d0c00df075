"""The search: what a text may mean (`meanings`, pure), and what of that the ledger has."""
