"""What a text in the search field may mean (`meanings`, pure), and what of that the ledger has."""
