"""The ledger as a service sees it: flights are submitted to it, and it answers questions.

`ledger` joins the chain, the index and the mempool; every route goes through it. `submission` takes
new flights, and compares them with those that are there (`known_flights`); `answers` asks the index
or scans the blocks. A service also keeps files that are sent in parts (`file_imports`), and fetches
months of BTS (`month_fetch`, `bts_months`).
"""
