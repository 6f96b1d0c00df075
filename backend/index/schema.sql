-- The index of the three questions. Derived: raise SCHEMA_VERSION in database.py with any change.

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

-- An airport as a flight names it: the four fields together.
CREATE TABLE place (
    place       INTEGER PRIMARY KEY,
    airport_id  INTEGER,
    code        TEXT NOT NULL,
    city        INTEGER NOT NULL REFERENCES city,
    state       TEXT NOT NULL,
    flights     INTEGER NOT NULL  -- that leave plus those that arrive
);

CREATE INDEX place_by_code ON place (code);
CREATE INDEX place_by_city ON place (city);

-- From which airport to which. Routes are numbered from 1.
CREATE TABLE route (
    route   INTEGER PRIMARY KEY,
    origin  INTEGER NOT NULL REFERENCES place,
    dest    INTEGER NOT NULL REFERENCES place,
    UNIQUE (origin, dest)
);

-- One row a flight, in the order of the question "flight N on day D". Days are proleptic Gregorian
-- ordinals (day 1 is 0001-01-01), times are hhmm as numbers.
CREATE TABLE flight (
    day        INTEGER NOT NULL,
    number     INTEGER NOT NULL,
    id         INTEGER NOT NULL,
    carrier    INTEGER NOT NULL,
    route      INTEGER NOT NULL REFERENCES route,
    dep_time   INTEGER,
    dep_delay  INTEGER,
    arr_time   INTEGER,
    arr_delay  INTEGER,
    cancelled  INTEGER NOT NULL,
    air_time   INTEGER,
    height     INTEGER NOT NULL,
    timestamp  INTEGER NOT NULL,
    PRIMARY KEY (day, number, id)
) WITHOUT ROWID;
CREATE INDEX flight_by_route ON flight (route, day);

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

-- Totals of whole months by hour and by weekday. Slots 0 to 23 are hours of scheduled departure
-- (DEP_TIME less DEP_DELAY; flights without these have none), 24 to 30 are the weekdays from Monday
-- on. A month is a period of span 1. Route 0 stands for all routes together.
CREATE TABLE slot_total (
    route          INTEGER NOT NULL,
    month          INTEGER NOT NULL,
    slot           INTEGER NOT NULL,
    carrier        INTEGER NOT NULL,
    flights        INTEGER NOT NULL,
    cancelled      INTEGER NOT NULL,
    arrived        INTEGER NOT NULL,
    departed       INTEGER NOT NULL,
    on_time        INTEGER NOT NULL,
    sum_arr_delay  INTEGER NOT NULL,
    sum_dep_delay  INTEGER NOT NULL,
    PRIMARY KEY (route, month, slot, carrier)
) WITHOUT ROWID;

-- How often each ARR_DELAY occurred, as JSON {delay: flights} in ascending order: a distribution over
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
