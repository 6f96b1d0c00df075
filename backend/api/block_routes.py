"""`GET /blocks`, `/blocks/HEIGHT` and `/tip`.

A whole block is compressed once and the result is kept, by the block's hash and the encoding. So it
is sent again without being read, decoded or compressed.
"""

from functools import partial

from flask import Response

from backend.api.conditions import REVALIDATE, SETTLED, known_encoding, tag_of, unchanged
from backend.api.encodings import compressed, encoding_for
from backend.api.json_answers import encode, versioned, whole
from backend.api.operation import BLOCKS, Operation, in_json
from backend.api.reading import query_string
from backend.api.routes import Lane, Row
from backend.base.lru import LruCache
from backend.chain.block import MAX_TRANSACTIONS
from backend.ledger.ledger import Ledger
from backend.questions.parameters import Given, Hash, Number
from backend.serving.environs import Environ

SHORT = 50  # a page of at most so many transactions is made in a fraction of a millisecond
ENTRY_BYTES = 300  # about what a kept body takes besides its bytes
FEW = 10  # headers of so many newest blocks are made in a millisecond

Bodies = LruCache[tuple[str, str], bytes]  # by the block's hash, and the encoding or the query

HEIGHT = Number("HEIGHT", "The block's height; genesis has 0.", "337")
OFFSET = Number(
    "offset",
    "How many of the first transactions to leave out.",
    "0",
    default=0,
    most=MAX_TRANSACTIONS,
)
LIMIT = Number(
    "limit",
    "Largest number of transactions.",
    "10",
    default=MAX_TRANSACTIONS,
    most=MAX_TRANSACTIONS,
)
BEFORE = Number("before", "Only headers of blocks below this height; by default all.", "300")
HEADERS = Number("limit", "Largest number of headers.", "5", default=20, least=1, most=100)
WITH_HASH = Hash("hash", "Only headers of blocks whose hash is this, or begins with it.", "0" * 64)

TIP = Operation(
    "tip",
    BLOCKS,
    "Show the state of the ledger",
    {200: in_json("The newest block, and the number of pending flights.", "Tip")},
    has_etag=True,
)
GET_BLOCK = Operation(
    "get_block",
    BLOCKS,
    "Show a block with its transactions",
    {200: in_json("The block.", "BlockFound")},
    parameters=(OFFSET, LIMIT),
    in_path=(HEIGHT,),
    errors=(404,),
    has_etag=True,
)
LIST_BLOCKS = Operation(
    "list_blocks",
    BLOCKS,
    "List headers of blocks, newest first",
    {
        200: in_json(
            "Headers; `next` is the address of the next page. `damaged`, if present, lists blocks "
            "of this page that cannot be read.",
            "Headers",
            may_have=("Link",),
        )
    },
    parameters=(BEFORE, HEADERS, WITH_HASH),
    has_etag=True,
)


def rows(ledger: Ledger) -> list[Row]:
    """Return the routes for the blocks of `ledger`."""
    bodies = Bodies(ledger.settings.block_bodies_bytes, lambda body: len(body) + ENTRY_BYTES)

    def tip(environ: Environ, _: Given) -> Response:
        return versioned(environ, encode(ledger.tip()))

    def block(environ: Environ, given: Given, height: str) -> Response:
        query = query_string(environ)
        offset, limit = OFFSET.of(given), LIMIT.of(given)
        number = HEIGHT.parse(height)
        block_hash = ledger.cached_blocks.where(number).hash
        tag = tag_of_block(block_hash, query)
        if known := unchanged(environ, tag, SETTLED):
            return known
        encoding = encoding_for(environ)
        if not query and encoding and (body := bodies.find((block_hash, encoding))):
            return whole(body, encoding, tag, SETTLED)
        body = bodies.find((block_hash, query)) if limit <= SHORT else None
        if body is None:
            encoded_block = ledger.encoded_block(number, offset, limit)
            block_hash, body = encoded_block.hash, b'{"block":%b}' % encoded_block.json
            if limit <= SHORT:
                bodies.keep((block_hash, query), body)
        compress = partial(_compressed_block, bodies, "" if query else block_hash)
        return versioned(environ, body, SETTLED, tag_of_block(block_hash, query), compress)

    def blocks(environ: Environ, given: Given) -> Response:
        beginning, before, limit = WITH_HASH.find(given), BEFORE.find(given), HEADERS.of(given)
        block_list = ledger.blocks(before, limit, beginning)
        lowest = block_list.lowest if beginning is None else 0
        following = f"/blocks?before={lowest}&limit={limit}" if lowest > 0 else None
        headers, damaged = block_list.headers, block_list.damaged
        more = {"damaged": damaged} if damaged else {}
        body = encode({"blocks": headers, "next": following, **more})
        is_settled = (  # new blocks do not change it
            bool(headers) and not damaged and headers[0]["height"] + 1 == before
        )
        cache_control = SETTLED if is_settled else REVALIDATE
        response = versioned(environ, body, cache_control)
        if following:
            response.headers["Link"] = f'<{following}>; rel="next"'
        return response

    return [
        Row("GET", "/tip", TIP, tip),
        Row("GET", "/blocks/<height>", GET_BLOCK, block, partial(_lane_of_block, ledger)),
        Row("GET", "/blocks", LIST_BLOCKS, blocks, _lane_of_list),
    ]


def _lane_of_block(ledger: Ledger, environ: Environ, given: Given, height: str) -> Lane:
    """Return INLINE for a short page of a cached block, and for a block that the client has."""
    number = HEIGHT.parse(height)
    if not ledger.cached_blocks.has(number):
        return Lane.READ
    if given:
        return Lane.INLINE if LIMIT.of(given) <= SHORT else Lane.READ
    tag = tag_of_block(ledger.cached_blocks.where(number).hash, "")
    return Lane.READ if known_encoding(environ, tag) is None else Lane.INLINE


def _lane_of_list(_: Environ, given: Given) -> Lane:
    """Return THREAD for a few of the newest blocks, which are cached: pages and watchers ask."""
    is_newest = WITH_HASH.find(given) is None and BEFORE.find(given) is None
    return Lane.THREAD if is_newest and HEADERS.of(given) <= FEW else Lane.READ


def tag_of_block(block_hash: str, query: str) -> str:
    """Return the tag of a block, or of the part of it that `query` chooses."""
    return tag_of(block_hash, "block", query)


def _compressed_block(bodies: Bodies, block_hash: str, encoding: str, body: bytes) -> bytes:
    """Return the encoded body; it is kept if it is a whole block (`block_hash` is not empty)."""
    data = compressed(encoding, body)
    if block_hash:
        bodies.keep((block_hash, encoding), data)
    return data
