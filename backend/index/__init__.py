"""Holds what the three questions need. It is derived from the chain and never the truth about it.

    schema.sql           the tables
    views                views of the tables, for people who ask in SQL
    periods              days, months and years: how an interval is covered by few totals
    totals               what a batch of flights adds to the totals
    delay_distributions  how a distribution of delays is stored
    index_file           how index files are named and opened, and where an index stands
    checkpoint_note      whether a file holds pages of one moment: the note that its writer leaves
    damage_mark          how whoever finds an index to be wrong has it rebuilt
    connections          connections to an index that is trusted
    writer               writes blocks into one file
    follower             writes: follows the chain block by block, or rebuilds the index
    queries              read: one snapshot for each answer
    group_counts         answers by day, by carrier, by delay
    ranked_groups        the first groups of a ranking
    completions          which cities, airports, carriers, days and flight numbers occur
    suggestions          completions of what somebody types
    unknown_values       values of a question that no flight has, and what may be meant
    table_checks         whether an index says the same as the chain

The index names the block up to which it stands. It may be deleted at any time.
"""
