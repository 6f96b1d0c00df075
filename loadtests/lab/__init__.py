"""Describes, runs, keeps and reports experiments, in code that all of them share.

An experiment has two halves that meet only in a folder of files. `measure` runs load against a
server and writes what it saw; `analyse` reads those files and nothing else, so a report can be made
again, anywhere, byte for byte. Later readers of a result have the same files.

    experiment        what an experiment is; `loadtests.experiments.running` runs it
    results           the folder: tables whose lines are dataclasses, the manifest, the summary
    ledgers           chains to measure on, a fresh copy for each run
    one_customer      service times; other loads are `loadtests.generation`'s, as are the rules
    repeated          runs and whether they count; a cell of them, its means, how they are drawn
    sentences         what reports say, from templates
    content           what a report holds: tables of items and columns, metrics, words
    report            figures, and the page of a report
    response_times    percentiles and their thresholds (`--fail-if`)
    generator_check   what the load generator adds
    service_facts     what a running service says of itself; stacks: what its worker works on
    published         the studies' numbers; studies: `scripts/lab studies`
    tool_outputs      files of other load generators; tool_runs: the runs in them
    network_file      the networks of `scripts/lab solve`
"""
