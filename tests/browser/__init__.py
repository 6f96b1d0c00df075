"""The pages in a real browser: headless Chromium against real processes of backend and frontend.

table     the pages, as rows: whoever makes a page adds it there
sites     backend and frontend as processes, over a ledger with many, few or no flights
chromium  the browser
visits    a visitor, in whose context nothing may go wrong unnoticed
"""
