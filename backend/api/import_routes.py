"""`/imports`: a file of flights that is sent in parts, checked whole, and then added.

It is checked by the reader of `python -m backend import`, in a process of its own. `GET
/imports/ID` says how far it is, and what the file was taken for, before anything is added.
"""

from flask import Response

from backend.api.batch import EXAMPLES, FILE, ON_ERROR
from backend.api.conditions import NO_STORE
from backend.api.json_answers import answer
from backend.api.operation import ADDING, Answer, Media, Operation, in_json
from backend.api.reading import body
from backend.api.responses import nothing
from backend.api.routes import Row
from backend.api.writing import Writing
from backend.base.day_orders import MONTH_FIRST, ORDERS
from backend.base.errors import InvalidQuery
from backend.ledger.file_imports import MOST_NAME_CHARACTERS, FileImports
from backend.ledger.ledger import Ledger
from backend.questions.parameters import Choice, Given, Number, Text
from backend.serving.environs import Environ
from backend.serving.host_policy import is_from_other_page

PART = {"application/octet-stream": Media(FILE, EXAMPLES["csv"])}
SAYS = "`GET /imports/ID` shows the progress."

IMPORT_ID = Text("IMPORT_ID", "The id that `POST /imports` answered.", "0f" * 16)
NAME = Text(
    "NAME",
    "The file's name, for messages.",
    "flights.csv",
    required=True,
    most_characters=MOST_NAME_CHARACTERS,
)
SIZE = Number("SIZE", "The file's size in bytes.", "25000000", required=True, least=1)
OFFSET = Number("OFFSET", "Where the part begins in the file, in bytes.", "0", required=True)
DATES = Choice(
    "dates",
    "How days are written, if the file leaves that open.",
    MONTH_FIRST,
    choices=ORDERS,
)

BEGIN_IMPORT = Operation(
    "begin_import",
    ADDING,
    "Announce a file of flights, to be sent in parts",
    {201: in_json("The file, with its `IMPORT_ID`.", "FileImport", headers=("Location",))},
    parameters=(NAME, SIZE),
    writes=True,
)
SEND_PART = Operation(
    "send_part",
    ADDING,
    "Send the part of the file that begins at byte OFFSET; it may be sent again",
    {200: in_json("`received` says how many bytes have arrived.", "FileImport")},
    parameters=(OFFSET,),
    in_path=(IMPORT_ID,),
    errors=(404,),
    body=PART,
    writes=True,
)
CHECK_IMPORT = Operation(
    "check_import",
    ADDING,
    "Check the whole file; nothing is added",
    {202: in_json(f"The check has begun; {SAYS}", "FileImport")},
    parameters=(DATES,),
    in_path=(IMPORT_ID,),
    errors=(404,),
    writes=True,
)
ADD_IMPORT = Operation(
    "add_import",
    ADDING,
    "Add the flights of a checked file",
    {202: in_json(f"Adding has begun; {SAYS}", "FileImport")},
    parameters=(ON_ERROR,),
    in_path=(IMPORT_ID,),
    errors=(404,),
    writes=True,
)
SHOW_IMPORT = Operation(
    "show_import",
    ADDING,
    "Show the progress of a file, and what it was taken for",
    {200: in_json("The file.", "FileImport")},
    in_path=(IMPORT_ID,),
    errors=(404,),
)
REMOVE_IMPORT = Operation(
    "remove_import",
    ADDING,
    "Remove a file that was sent; flights that were added stay",
    {204: Answer("The file is removed.")},
    in_path=(IMPORT_ID,),
    errors=(404,),
    writes=True,
)


def rows(ledger: Ledger, writing: Writing) -> list[Row]:
    """Return the routes that import files into `ledger`."""
    imports, most_bytes = FileImports(ledger.settings), ledger.settings.max_body_bytes

    def begin(environ: Environ, given: Given) -> Response:
        writing.require_token(environ)
        _require_no_other_page(environ)
        sent = imports.begin(NAME.of(given), SIZE.of(given))
        return answer(sent, 201, ("Location", f"/imports/{sent.IMPORT_ID}"))

    def send(environ: Environ, given: Given, import_id: str) -> Response:
        writing.require_token(environ)
        offset = OFFSET.of(given)
        imports.of(import_id)  # raises NotFound before the part is read
        return answer(imports.append(import_id, offset, body(environ, most_bytes)))

    def check(environ: Environ, given: Given, import_id: str) -> Response:
        writing.require_token(environ)
        return answer(imports.check(import_id, DATES.find(given) or ""), 202)

    def add(environ: Environ, given: Given, import_id: str) -> Response:
        writing.require_token(environ)
        return answer(imports.add(import_id, skips=ON_ERROR.of(given) == "skip"), 202)

    def show(_: Environ, __: Given, import_id: str) -> Response:
        return answer(imports.of(import_id))

    def remove(environ: Environ, _: Given, import_id: str) -> Response:
        writing.require_token(environ)
        imports.remove(import_id)
        return nothing(204, ("Cache-Control", NO_STORE))

    return [
        Row("POST", "/imports", BEGIN_IMPORT, begin),
        Row("GET", "/imports/<import_id>", SHOW_IMPORT, show),
        Row("POST", "/imports/<import_id>", SEND_PART, send),
        Row("DELETE", "/imports/<import_id>", REMOVE_IMPORT, remove),
        Row("POST", "/imports/<import_id>/check", CHECK_IMPORT, check),
        Row("POST", "/imports/<import_id>/add", ADD_IMPORT, add),
    ]


def _require_no_other_page(environ: Environ) -> None:
    """Raise InvalidQuery for a request that a page elsewhere made a browser send.

    A browser asks first before it sends a flight for such a page, or a batch, because of their
    types; it asks nothing before a POST without a body. The page cannot read the id, without which
    nothing more can be done with the file.
    """
    if is_from_other_page(environ):
        reason = "is not the address of this service; a page elsewhere cannot announce a file here"
        raise InvalidQuery("Origin", environ.get("HTTP_ORIGIN"), reason)
