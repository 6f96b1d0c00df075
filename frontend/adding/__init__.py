"""From forms and files to what the backend is asked to add, and from its refusal back to them.

flight_form         one flight
uploads, columns    files of flights, and what is in them
filled              a form that comes back
"""
