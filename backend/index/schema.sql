-- The index of the three questions. Derived: raise SCHEMA_VERSION in index_file.py with any change.
-- People who ask in SQL use the views of views.py, whose columns stay.

-- Where the index stands: one row.
CREATE TABLE position (
    only            INTEGER PRIMARY KEY CHECK (only = 1),
    schema_version  INTEGER NOT NULL,
    genesis_hash    TEXT NOT NULL,
    height          INTEGER NOT NULL,
    tip_hash        TEXT NOT NULL,
    transactions    INTEGER NOT NULL
);

CREATE TABLE city (
    city  INTEGER PRIMARY KEY,
    name  TEXT NOT NULL UNIQUE
);

-- An airport as a flight names it: the four fields together. Answers tell airports apart by code and
-- city alone: `airport` is the first place with these, and stands for all of them.
CREATE TABLE place (
    place       INTEGER PRIMARY KEY,
    airport_id  INTEGER,
    code        TEXT NOT NULL,
    city        INTEGER NOT NULL REFERENCES city (city),
    state       TEXT NOT NULL,
    airport     INTEGER NOT NULL REFERENCES place (place),
    flights     INTEGER NOT NULL  -- that leave plus those that arrive
);

CREATE INDEX place_by_code ON place (code);
CREATE INDEX place_by_city ON place (city);

-- From which place to which. Routes are numbered from 1. `pair` is the first route between the same
-- two airports, and stands for all of these.
CREATE TABLE route (
    route   INTEGER PRIMARY KEY,
    origin  INTEGER NOT NULL REFERENCES place (place),
    dest    INTEGER NOT NULL REFERENCES place (place),
    pair    INTEGER NOT NULL REFERENCES route (route),
    UNIQUE (origin, dest)
);

-- The blocks that hold transactions, with the timestamp of the first of these (Unix time in ms).
CREATE TABLE block (
    first_transaction  INTEGER PRIMARY KEY,
    height             INTEGER NOT NULL,
    timestamp          INTEGER NOT NULL
);

-- One row a flight; those of a route lie together, so that they are counted without reading others.
-- Days are counted from 1970-01-01, times are hhmm as numbers, `id` is that of the transaction, and
-- `later` is by how many ms its timestamp is later than that of the first one in its block.
CREATE TABLE flight (
    route      INTEGER NOT NULL REFERENCES route (route),
    day        INTEGER NOT NULL,
    id         INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    carrier    INTEGER NOT NULL,
    dep_time   INTEGER,
    dep_delay  INTEGER,
    arr_time   INTEGER,
    arr_delay  INTEGER,
    cancelled  INTEGER NOT NULL,
    air_time   INTEGER,
    later      INTEGER NOT NULL,
    PRIMARY KEY (route, day, id)
) WITHOUT ROWID;

-- For the question "flight N on day D".
CREATE INDEX flight_by_number ON flight (day, number);

-- Totals by day (span 0), month (1) and year (2), so that an interval needs a few dozen rows however
-- long it is: see periods.py. The seven counts are those of `chain.summary.Cell`.
CREATE TABLE carrier_total (
    carrier        INTEGER NOT NULL,
    span           INTEGER NOT NULL,
    period         INTEGER NOT NULL,
    flights        INTEGER NOT NULL,
    cancelled      INTEGER NOT NULL,
    arrived        INTEGER NOT NULL,
    departed       INTEGER NOT NULL,
    on_time        INTEGER NOT NULL,
    sum_arr_delay  INTEGER NOT NULL,
    sum_dep_delay  INTEGER NOT NULL,
    PRIMARY KEY (carrier, span, period)
) WITHOUT ROWID;

-- Without those of days: the flights of a route on a few days are counted themselves.
CREATE TABLE route_total (
    route          INTEGER NOT NULL,
    span           INTEGER NOT NULL,
    period         INTEGER NOT NULL,
    carrier        INTEGER NOT NULL,
    flights        INTEGER NOT NULL,
    cancelled      INTEGER NOT NULL,
    arrived        INTEGER NOT NULL,
    departed       INTEGER NOT NULL,
    on_time        INTEGER NOT NULL,
    sum_arr_delay  INTEGER NOT NULL,
    sum_dep_delay  INTEGER NOT NULL,
    PRIMARY KEY (route, span, period, carrier)
) WITHOUT ROWID;

-- Totals by hour and by weekday. Slots 0 to 23 are hours of scheduled departure (DEP_TIME less
-- DEP_DELAY; flights without these have none), 24 to 30 are the weekdays from Monday on. There are
-- those of days by hour, and those of months by both. Carrier 0 stands for all carriers together.
CREATE TABLE carrier_slot (
    carrier        INTEGER NOT NULL,
    span           INTEGER NOT NULL,
    period         INTEGER NOT NULL,
    slot           INTEGER NOT NULL,
    flights        INTEGER NOT NULL,
    cancelled      INTEGER NOT NULL,
    arrived        INTEGER NOT NULL,
    departed       INTEGER NOT NULL,
    on_time        INTEGER NOT NULL,
    sum_arr_delay  INTEGER NOT NULL,
    sum_dep_delay  INTEGER NOT NULL,
    PRIMARY KEY (carrier, span, period, slot)
) WITHOUT ROWID;

-- The same of routes, by month (a period of span 1) alone. The month comes first, so that what is
-- added to a month changes few pages, however many months there are.
CREATE TABLE route_slot (
    month          INTEGER NOT NULL,
    route          INTEGER NOT NULL,
    slot           INTEGER NOT NULL,
    carrier        INTEGER NOT NULL,
    flights        INTEGER NOT NULL,
    cancelled      INTEGER NOT NULL,
    arrived        INTEGER NOT NULL,
    departed       INTEGER NOT NULL,
    on_time        INTEGER NOT NULL,
    sum_arr_delay  INTEGER NOT NULL,
    sum_dep_delay  INTEGER NOT NULL,
    PRIMARY KEY (month, route, slot, carrier)
) WITHOUT ROWID;

-- Totals of months and years in the order in which rankings are read: all airports of departure
-- (kind 0) or of arrival (kind 1), or all pairs of these (kind 2, see table route), that a carrier
-- has in a period. Carrier 0, too, stands for all carriers together.
CREATE TABLE ranking (
    kind           INTEGER NOT NULL,
    carrier        INTEGER NOT NULL,
    span           INTEGER NOT NULL,
    period         INTEGER NOT NULL,
    item           INTEGER NOT NULL,
    flights        INTEGER NOT NULL,
    cancelled      INTEGER NOT NULL,
    arrived        INTEGER NOT NULL,
    departed       INTEGER NOT NULL,
    on_time        INTEGER NOT NULL,
    sum_arr_delay  INTEGER NOT NULL,
    sum_dep_delay  INTEGER NOT NULL,
    PRIMARY KEY (kind, carrier, span, period, item)
) WITHOUT ROWID;

-- How often each ARR_DELAY occurred, as a map of MessagePack {delay: flights} in ascending order: a distribution over
-- any interval needs a few dozen rows, too.
CREATE TABLE carrier_delays (
    carrier  INTEGER NOT NULL,
    span     INTEGER NOT NULL,
    period   INTEGER NOT NULL,
    counts   BLOB NOT NULL,
    PRIMARY KEY (carrier, span, period)
) WITHOUT ROWID;

-- Which carriers use a flight number, for completions.
CREATE TABLE number_total (
    number   INTEGER NOT NULL,
    carrier  INTEGER NOT NULL,
    flights  INTEGER NOT NULL,
    PRIMARY KEY (number, carrier)
) WITHOUT ROWID;
