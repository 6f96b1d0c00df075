"""`/cluster`: the machines that keep the ledger together, as those that can be asked see it."""

from flask import Blueprint, abort, render_template

from frontend.backend_client import Backend, Json
from frontend.twins import JSON_ALONE, Twin, twins


def blueprint(backend: Backend) -> Blueprint:
    """The page, the part of it that changes, and its twin."""
    routes = Blueprint("cluster", __name__)

    def found() -> Json:
        tip = backend.get("/tip")
        seen = backend.of_each("/tip")
        nodes = [{"address": url, "tip": told} for url, told in seen]
        highest = max((told["height"] for _, told in seen if told), default=0)
        return {"cluster": tip.get("cluster"), "height": highest, "nodes": nodes}

    @routes.get("/cluster")
    def page() -> str:
        """The members, and how each node does that can be asked."""
        return render_template("cluster.html", **found())

    @routes.get("/cluster/state")
    def state() -> str:
        """The part of the page that changes; `refresh.js` puts it in its place."""
        seen = found()
        if not seen["cluster"]:
            abort(404)
        return render_template("nodes.html", **seen)

    @twins(routes, "/cluster", JSON_ALONE)
    def twin() -> Twin:
        """What the page shows."""
        return Twin(found())

    return routes
