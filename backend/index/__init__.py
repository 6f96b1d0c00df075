"""What the three questions need, derived from the chain and never the truth about it.

    schema.sql   the tables
    periods      days, months and years: how an interval is covered by few totals
    totals       what a batch of flights adds to the totals
    delays       how a distribution of delays is stored
    follower     the one that writes: follows the chain block by block, or makes the index anew
    queries      the ones that read: one snapshot for each answer
    breakdowns   … by day, by carrier, by delay
    completions  … what occurs, for completions
    checks       comparing an index with the chain

The index names the block up to which it stands. It may be deleted at any time.
"""
