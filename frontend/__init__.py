"""The pages for a browser: a Flask app of its own that asks the backend over HTTP.

It has no flights and no files; it never imports `backend`. Every page works without JavaScript,
asks no other host for anything, and has an address that says what is on it:

    settings        where it listens, where the backend is
    backend_client  the only module that talks to the backend
    words           numbers, days, times and states as people read them
    asking          from a form to a question, and from a refusal to a message beside a field
    tables          the `.csv` twin of a page
    intervals       intervals of days: offered as links, cut for charts
    charts          geometry of bars and lines (pure)
    sphere          great circles, and a map around a middle (pure)
    outline         the shape of scattered points (pure)
    maps, places    the map of a route, and where its airports are
    delays          what the page of delays makes of the backend's answers
    pages/          one module for each kind of page: request in, backend asked, template out
"""
