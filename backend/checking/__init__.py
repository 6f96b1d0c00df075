"""Finding damage: everything on the disk is read again and compared with what it should be.

`audit` is the command `verify`, which checks all at once and says what it finds. `scrub` does the
same gently in the background, and `scrub_state` tells how far it is.
"""
