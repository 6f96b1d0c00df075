"""Turns numbers and places into what templates draw. It asks the backend nothing.

time_axis    an interval, cut into days, months or years
plots        bars and lines
maps         routes on a map, with sphere: great circles
"""
