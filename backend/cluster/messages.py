"""Names the messages of ABCI 2.0 that the application reads and writes, with their field numbers.

The numbers are those that CometBFT's specification of ABCI gives (docs.cometbft.com/v0.38, "ABCI
Methods"). Only the fields that are used are here; `wire` skips the others.
"""

from backend.cluster.wire import Field, Schema

_TIME = Field(6, {"seconds": Field(1, int), "nanos": Field(2, int)})
_RESULT: Schema = {"code": Field(1, int), "log": Field(3, str)}
_PROPOSED: Schema = {
    "txs": Field(1, bytes, repeated=True),
    "height": Field(5, int),
    "time": _TIME,
    "proposer_address": Field(8, bytes),
}

REQUEST: Schema = {
    "flush": Field(2, {}),
    "info": Field(3, {}),
    "init_chain": Field(5, {"chain_id": Field(2, str)}),
    "query": Field(6, {"path": Field(2, str)}),
    "check_tx": Field(8, {"tx": Field(1, bytes), "type": Field(2, int)}),
    "commit": Field(11, {}),
    "list_snapshots": Field(12, {}),
    "load_snapshot_chunk": Field(14, {}),
    "prepare_proposal": Field(
        16,
        {"max_tx_bytes": Field(1, int), "txs": Field(2, bytes, repeated=True), "time": _TIME},
    ),
    "process_proposal": Field(17, _PROPOSED),
    "finalize_block": Field(20, _PROPOSED),
}

RESPONSE: Schema = {
    "exception": Field(1, {"error": Field(1, str)}),
    "flush": Field(3, {}),
    "info": Field(
        4,
        {
            "data": Field(1, str),
            "version": Field(2, str),
            "last_block_height": Field(4, int),
            "last_block_app_hash": Field(5, bytes),
        },
    ),
    "init_chain": Field(6, {"app_hash": Field(3, bytes)}),
    "query": Field(7, _RESULT),
    "check_tx": Field(9, _RESULT),
    "commit": Field(12, {"retain_height": Field(3, int)}),
    "list_snapshots": Field(13, {}),
    "load_snapshot_chunk": Field(15, {}),
    "prepare_proposal": Field(17, {"txs": Field(1, bytes, repeated=True)}),
    "process_proposal": Field(18, {"status": Field(1, int)}),
    "finalize_block": Field(
        21, {"tx_results": Field(2, _RESULT, repeated=True), "app_hash": Field(5, bytes)}
    ),
}

RECHECK = 1  # the `type` of check_tx for a transaction that was checked before
ACCEPT, REJECT = 1, 2  # the `status` of process_proposal
