"""What is asked most often, answered by a look into a table instead of by Flask.

A rule of the application can be marked `@direct(find)`. Then a GET or HEAD that fits it is answered
by `find`, before Flask makes the contexts and the adapter in which it looks for the view. That is
a third of what a quick request costs, and more than a 304 takes for itself. A rule for POST is
marked `@direct(find, "POST")`; there `find` looks at what was sent, and returns what to do with it.

Flask's routes stay the truth. Whatever is out of the ordinary goes on to them, and to the view:
other methods and addresses, what `find` leaves to it (None), and all that is wrong, so that every
error is answered in one place. View and `find` share the code that answers. What has been begun is
not begun again: if it fails, Flask makes the answer to the error alone.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from flask import Flask, Response

from backend.api.conditions import Environ
from backend.api.observing import ROUTE

Act = Callable[[], Response]
Find = Callable[[Environ, str], Response | Act | None]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]
View = TypeVar("View", bound=Callable[..., Any])

_READING = ("GET", "HEAD")
_MARK = "found_directly"


class _Route(NamedTuple):
    rule: str
    find: Find


def direct(find: Find, *methods: str) -> Callable[[View], View]:
    """Mark a view: `find` answers instead of it when it can.

    find: takes the environ and what stands in the path where the rule has its one parameter, which
    is the rule's end; "" if it has none. The text is what the client sent: anything but a slash.
    Whatever it raises, the view will meet again. methods: GET and HEAD if none are given.
    """

    def marked(view: View) -> View:
        vars(view)[_MARK] = (find, methods or _READING)
        return view

    return marked


def install(app: Flask) -> None:
    """Put the table of the marked rules in front of `app`, which has all of them by now."""
    routes: dict[tuple[str, str], _Route] = {}
    for rule in app.url_map.iter_rules():
        find, methods = vars(app.view_functions[rule.endpoint]).get(_MARK, (None, ()))
        for method in methods:
            routes[method, rule.rule.partition("<")[0]] = _Route(rule.rule, find)
    answering: Any = _answering(app, app.wsgi_app, routes)
    app.wsgi_app = answering  # type: ignore[method-assign]


def _answering(
    app: Flask, application: Application, routes: dict[tuple[str, str], _Route]
) -> Application:
    def answer(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        path: str = environ["PATH_INFO"]
        at = path.find("/", 1) + 1
        route = routes.get((environ["REQUEST_METHOD"], path[:at] if at else path))
        if route is None:
            return application(environ, start_response)
        found = _found(route, environ, path[at:] if at else "")
        if found is None:
            return application(environ, start_response)
        environ[ROUTE] = route.rule
        response = found if isinstance(found, Response) else _done(app, environ, found)
        return response(environ, start_response)

    return answer


def _found(route: _Route, environ: Environ, rest: str) -> Response | Act | None:
    if "/" in rest:
        return None
    try:
        return route.find(environ, rest)
    except Exception:  # noqa: BLE001  the view meets it again, and Flask knows what to answer
        return None


def _done(app: Flask, environ: Environ, act: Act) -> Response:
    try:
        return act()
    except Exception as error:  # noqa: BLE001  Flask knows what to answer
        with app.request_context(environ):
            return app.make_response(app.handle_user_exception(error))
