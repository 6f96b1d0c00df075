"""The web server of both ports: connections, lanes, and the front that answers requests.

gunicorn serves, with its own asgi worker. This package adds what gunicorn lacks: deadlines for slow
clients and bounds on the memory of all clients together (`connection`, `worker`), threads for
requests that have to wait, with a bounded queue before them (`lanes`), and the ASGI application
that hands each request to its lane (`front`). It parses and answers what gunicorn would, as
gunicorn would, in less time (`parsing`, `sending`). `visitors` tells which requests may be answered
at all. A front serves a `front.Site`: the REST service is one, the pages for a browser are another.
Nothing here knows either of them.
"""
