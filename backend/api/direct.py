"""What is asked most often, answered by a look into a table instead of by Flask.

A rule of the application can be marked `@direct(find)`. Then a GET or HEAD that fits it is answered
by `find`, before Flask makes the contexts and the adapter in which it looks for the view. That is
a third of what a quick request costs, and more than a 304 takes for itself.

Flask's routes stay the truth. Whatever is out of the ordinary goes on to them, and to the view:
other methods and addresses, what `find` leaves to it (None), and all that is wrong, so that every
error is answered in one place. View and `find` share the code that answers.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

from flask import Flask, Response

from backend.api.observing import ROUTE
from backend.errors import FlightchainError

Environ = dict[str, Any]
Find = Callable[[Environ, str], Response | None]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]
View = TypeVar("View", bound=Callable[..., Any])

_METHODS = frozenset({"GET", "HEAD"})
_MARK = "found_directly"


class _Route(NamedTuple):
    rule: str
    find: Find


def direct(find: Find) -> Callable[[View], View]:
    """Mark a view: `find` answers instead of it when it can.

    find: takes the environ and what stands in the path where the rule has its one parameter, which
    is the rule's end; "" if it has none. The text is what the client sent: anything but a slash.
    May raise FlightchainError, or OSError: the view will meet that again.
    """

    def marked(view: View) -> View:
        vars(view)[_MARK] = find
        return view

    return marked


def install(app: Flask) -> None:
    """Put the table of the marked rules in front of `app`, which has all of them by now."""
    routes: dict[str, _Route] = {}
    for rule in app.url_map.iter_rules():
        find = vars(app.view_functions[rule.endpoint]).get(_MARK)
        if find is not None:
            routes[rule.rule.partition("<")[0]] = _Route(rule.rule, find)
    answering: Any = _answering(app.wsgi_app, routes)
    app.wsgi_app = answering  # type: ignore[method-assign]


def _answering(application: Application, routes: dict[str, _Route]) -> Application:
    def answer(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        path: str = environ["PATH_INFO"]
        at = path.find("/", 1) + 1
        route = routes.get(path[:at] if at else path)
        if route is None or environ["REQUEST_METHOD"] not in _METHODS:
            return application(environ, start_response)
        found = _found(route, environ, path[at:] if at else "")
        if found is None:
            return application(environ, start_response)
        environ[ROUTE] = route.rule
        return found(environ, start_response)

    return answer


def _found(route: _Route, environ: Environ, rest: str) -> Response | None:
    if "/" in rest:
        return None
    try:
        return route.find(environ, rest)
    except (FlightchainError, OSError):
        return None
