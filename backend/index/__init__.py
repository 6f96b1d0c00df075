"""What the three questions need, derived from the chain and never the truth about it.

    schema.sql   the tables
    periods      days, months and years: how an interval is covered by few totals
    follower     the one that writes: follows the chain block by block, or makes the index anew
    queries      the ones that read: one snapshot for each answer

The index names the block up to which it stands. It may be deleted at any time.
"""
