"""The way in: connections, request groups and lanes of threads before the application.

`asgi_worker` runs in each process that gunicorn starts, `http_connection` is one client's
connection in it, and `front` is the application that both serve: it answers a request itself or
hands it to a thread of a lane. Nothing here knows what a flight is.
"""
