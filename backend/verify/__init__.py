"""Finds damage: reads everything on the disk again and compares it with what it should be.

`audit` is the command `verify`, which checks all at once and says what it finds; `chain_check`
checks the blocks for it. `scrub` looks gently for damage in the background, and `scrub_state` tells
how far it is. `folder_files` is the table of all files of a folder, and `folder_check` compares
them: whoever writes blocks asks it, and `ready` does. `repeated` is `verify --since`. `backup`
makes and restores backups.
"""
