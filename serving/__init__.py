"""The web server of both ports: connections, lanes, and the front that answers requests.

gunicorn serves, with its own asgi worker. What it lacks stands here: deadlines for slow clients and
bounds on what all clients together may keep in memory (`connection`, `worker`), threads for what
has to wait, with a bounded queue before them (`lanes`), and the ASGI application that hands each
request to its lane (`front`). `visitors` tells who may ask at all. What is served is a
`front.Site`: the REST service is one, the pages for a browser are another. Nothing here knows
either of them.
"""
