"""The folder of a ledger that the last release left, and how it was made."""
