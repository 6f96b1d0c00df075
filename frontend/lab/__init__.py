"""The modules behind the pages of the performance lab. Formulas are those of `loadtests.models`.

results      folders that the lab left; it reads them with care, and imports nothing of `loadtests`
inputs       turns a form into numbers within limits, or into messages beside fields
study        numbers of the study that Flightchain goes back to
open_queue   the calculator's open queue; closed_network: its closed network
presets      forms to start from, and to compare with
curves       geometry of curves over numbers (pure)
quantities   numbers with units as people read them
"""
