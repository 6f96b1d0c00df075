"""The web server of both ports: connections, lanes, and the front that answers requests.

gunicorn (`gunicorn_app`) starts and replaces workers; uvicorn parses requests and answers them.
This package adds what both lack: deadlines for slow clients (`connection`), bounds on the
connections and the memory of one address and of all clients (`client_bounds`), workers that take
turns with connections (`worker`), threads for requests that have to wait, with a bounded queue
before them (`lanes`), and the ASGI application that hands each request to its lane (`front`) and
takes long answers piece by piece (`body_stream`). `environs` makes WSGI environs of requests,
`body_files` keeps their long bodies on a disk, `host_policy` tells which requests may be answered
at all, `ports` whether a port is free. A front serves a `front.Site`: the REST service is one, the
pages for a browser are another. Nothing here knows either of them.
"""
