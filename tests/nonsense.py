"""A server that answers everything but what was asked for, as strangers' servers do."""

from contextlib import AbstractContextManager

from tests.http_servers import answering, saying

HTML = b"<!DOCTYPE html><html><title>Sign in to the network</title></html>"


def answer(
    body: bytes, kind: str = "application/json", status: str = "200 OK", more: str = ""
) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}"
    return f"{head}Connection: close\r\n\r\n".encode() + body


def problem(body: bytes, status: str = "400 Bad Request") -> bytes:
    return answer(body, "application/problem+json", status)


# what it is -> every byte that it sends
KINDS: dict[str, bytes] = {
    "HTML": answer(HTML, "text/html"),
    "HTML that is not found": answer(HTML, "text/html", "404 Not Found"),
    "HTML that calls itself JSON": answer(HTML),
    "a captive portal": answer(b"", "text/html", "302 Found", "Location: http://portal/in\r\n"),
    "a redirect without a target": answer(b"", "text/html", "302 Found"),
    "an empty body": answer(b""),
    "no content": b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
    "null": answer(b"null"),
    "a number": answer(b"7"),
    "a list": answer(b"[1]"),
    "another object": answer(b'{"hello":"world"}'),
    "texts for numbers": answer(
        b'{"height":"x","hash":1,"timestamp":[],"transactions":{},"pending":null,'
        b'"next_block_at":"now","as_of":7,"block":"x","blocks":"xy","next":"x","count":"many",'
        b'"flights":7,"TRANSACTION_ID":[],"state":7,"errors":7,"accepted":"all","query":1}'
    ),
    "nulls for members": answer(
        b'{"height":null,"hash":null,"timestamp":null,"transactions":null,"pending":null,'
        b'"as_of":null,"block":null,"blocks":null,"next":null,"errors":null,"accepted":null,'
        b'"TRANSACTION_ID":null,"rejected":null,"first_transaction":null}'
    ),
    "lists of other things": answer(b'{"blocks":[7,null],"damaged":[[]],"next":1,"errors":[7]}'),
    "deep JSON": answer(b"[" * 100_000),
    "a number of many digits": answer(b'{"height":' + b"9" * 10_000 + b"}"),
    "no UTF-8": answer(b'{"height":"\xff\xfe"}'),
    "half an object": answer(b'{"height":'),
    "half a line": answer(b'{"block":{"header":{}}}\n{"bl', "application/x-ndjson"),
    "a body that is cut off": answer(b'{"height":1}').replace(b"Length: 12", b"Length: 99"),
    "a problem without members": problem(b"{}"),
    "a problem with other members": problem(b'{"title":[],"detail":7,"errors":7,"field":{}}'),
    "a problem with other rows": problem(b'{"errors":[7,null,{"row":"x"}]}'),
    "a list as a problem": problem(b"[]"),
    "a problem without an end": problem(b'{"detail":"' + b"x" * 200_000 + b'"}'),
    "an odd time to wait": answer(b"{}", status="400 Bad Request", more="Retry-After: soon\r\n"),
    "no HTTP": b"220 mail.example ESMTP\r\n",
    "bytes": bytes(range(256)),
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Le",
    "an odd status": b"HTTP/1.1 999 What\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
    "a bad length": b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}",
    "a bad chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "packed bytes that are not": answer(b"{}", more="Content-Encoding: gzip\r\n"),
    "a TLS port": b"\x15\x03\x01\x00\x02\x02\x46",
    "nothing": b"",
}


def nonsense(data: bytes) -> AbstractContextManager[str]:
    """Answer every request with these bytes, until the `with` block ends. Gives the URL."""
    return answering(saying(data))
