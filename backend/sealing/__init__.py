"""Makes blocks where no cluster does: the miner, the import, and the clock that both trust.

Only one process at a time seals blocks, the one that holds the writer lock.

    sealer         puts transactions into blocks, and blocks into the index
    miner          seals what is pending; miner_status says how it does
    importer       imports sources, all or nothing
    source_check   reads sources to their end first; spool keeps what was read
    repeats        finds flights that the sources list twice
    newcomers      leaves out flights that the ledger has
    block_builder  builds blocks of an import in a process of its own, by child
    trusted_clock  doubts a clock that leapt ahead
"""
