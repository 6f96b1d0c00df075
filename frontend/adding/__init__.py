"""Turns forms and files into posts to the backend, and its refusals into messages beside fields.

flight_form         the form for one flight
uploads, columns    files of flights, and what is in them
submitted_form      a form that is shown again
"""
