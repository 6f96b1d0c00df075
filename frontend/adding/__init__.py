"""Turns forms and files into posts to the backend, and its refusals into messages beside fields.

flight_form      the form for one flight
uploads          files of flights, and what one was taken for
submitted_form   a form that is shown again
"""
