"""What the pages of the performance lab work with. The formulas are those of `loadtests.models`.

results      folders that the lab left, read with care: it imports nothing else of `loadtests`
inputs       from a form to numbers within limits, or messages beside fields
study        numbers of the study that Flightchain goes back to
open_queue   the calculator's open queue; closed_network: its closed network
presets      what one may start from, and compare with
curves       geometry of curves over numbers (pure)
quantities   numbers with units as people read them
"""
