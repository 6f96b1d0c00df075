"""Turns forms and files into posts to the backend, and its refusals into messages beside fields.

flight_form         the form for one flight
uploads, columns    files of flights, and what is in them
understanding       what a file was taken for
kinds_of_files      which kinds there are, and what to tick at BTS
submitted_form      a form that is shown again
"""
