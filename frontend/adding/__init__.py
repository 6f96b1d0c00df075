"""Turns forms and files into posts to the backend, and its refusals into messages beside fields.

flight_form         the form for one flight
uploads, samples    files of flights, and some to start from
understanding       what a file was taken for
submitted_form      a form that is shown again
"""
