"""The modules behind the pages of the performance lab. Formulas are those of `loadtests.models`.

result_folders   folders that the lab left, read by their types; report_figures: drawings in them
inputs           turns a form into numbers within limits, or into messages beside fields
study            numbers of the study that Flightchain goes back to
open_queue_form  the calculator's open queue; closed_network_form: its closed network
presets          forms to start from, and to compare with
curves           geometry of curves over numbers (pure); network_charts: those of a network
quantities       numbers with units as people read them
"""
