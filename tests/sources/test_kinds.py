"""Each kind of file that people have is taken for what it is, or refused with what to do."""

import csv
import io
import tracemalloc
from datetime import date
from pathlib import Path

import pytest

from backend.base.errors import InvalidInput
from backend.chain.fields import FIELD_NAMES, Value
from backend.sources import open_source
from backend.sources.kinds import KINDS, REFUSED, has_meaning, plain, reading_of
from tests.sources.samples import flights_of, understood, written

ENVOY = 20398
NEWBURGH = ("SWF", "Newburgh/Poughkeepsie, NY", "New York")
CINCINNATI = ("CVG", "Cincinnati, OH", "Kentucky")
NUMBER = {"SWF": 15070, "CVG": 11193}


def flights(day: str, carrier: int = ENVOY, *, ids: bool = False) -> list[tuple[Value, ...]]:
    """A flight that arrived, a cancelled one and a diverted one, as they are stored."""
    known = date.fromisoformat(day)
    start = (known.year, known.isoweekday(), day, carrier)
    airport_ids = [NUMBER[place[0]] if ids else None for place in (NEWBURGH, CINCINNATI)]
    out = (airport_ids[0], *NEWBURGH, airport_ids[1], *CINCINNATI)
    back = (airport_ids[1], *CINCINNATI, airport_ids[0], *NEWBURGH)
    return [
        (*start, 3184, *out, "0559", -6, "0752", -13, 0, 88),
        (*start, 3185, *back, None, None, None, None, 1, None),
        (*start, 3186, *out, "2400", 3, "0130", None, 0, None),
    ]


SWF, CVG = 'SWF,"Newburgh/Poughkeepsie, NY"', 'CVG,"Cincinnati, OH"'
TRANSTATS = f"{SWF},NY", f"{CVG},KY"
MONTH = (
    '"15070","SWF","Newburgh/Poughkeepsie, NY","NY","New York"',
    '"11193","CVG","Cincinnati, OH","KY","Kentucky"',
)
PLACES_IN_MONTH = (
    "OriginAirportID,Origin,OriginCityName,OriginState,OriginStateName,"
    "DestAirportID,Dest,DestCityName,DestState,DestStateName"
)
EXPO = """YEAR,6,14,2,559,605,752,805,MQ,3184,N0,NA,120,88,-13,-6,SWF,CVG,576,4,9,0,,0
YEAR,6,14,2,NA,1000,NA,1200,MQ,3185,0,NA,120,NA,NA,NA,CVG,SWF,576,NA,NA,1,B,0
YEAR,6,14,2,2400,2357,130,155,MQ,3186,N0,NA,120,NA,NA,3,SWF,CVG,576,4,9,0,,1
"""
EXPO_TITLES = (
    "Year,Month,DayofMonth,DayOfWeek,DepTime,CRSDepTime,ArrTime,CRSArrTime,UniqueCarrier,FlightNum,"
    "TailNum,ActualElapsedTime,CRSElapsedTime,AirTime,ArrDelay,DepDelay,Origin,Dest,Distance,TaxiIn,"
    "TaxiOut,Cancelled,CancellationCode,Diverted"
)

FILES: dict[str, tuple[str, list[tuple[Value, ...]]]] = {
    "fields picked since 2018": (
        f"""FL_DATE,OP_UNIQUE_CARRIER,OP_CARRIER_FL_NUM,ORIGIN,ORIGIN_CITY_NAME,ORIGIN_STATE_ABR,DEST,\
DEST_CITY_NAME,DEST_STATE_ABR,DEP_TIME,DEP_DELAY,ARR_TIME,ARR_DELAY,CANCELLED,DIVERTED,AIR_TIME
6/14/2019 12:00:00 AM,MQ,3184,{TRANSTATS[0]},{TRANSTATS[1]},0559,-6.00,0752,-13.00,0.00,0.00,88.00
6/14/2019 12:00:00 AM,MQ,3185,{TRANSTATS[1]},{TRANSTATS[0]},,,,,1.00,0.00,
6/14/2019 12:00:00 AM,MQ,3186,{TRANSTATS[0]},{TRANSTATS[1]},2400,3.00,0130,,0.00,1.00,
""",
        flights("2019-06-14"),
    ),
    "fields picked until 2017": (
        """"FL_DATE","UNIQUE_CARRIER","AIRLINE_ID","CARRIER","FL_NUM","ORIGIN_AIRPORT_ID","ORIGIN",\
"ORIGIN_STATE_NM","DEST_AIRPORT_ID","DEST","DEST_STATE_NM","DEP_TIME","DEP_DELAY","ARR_TIME",\
"ARR_DELAY","CANCELLED","AIR_TIME"
2014-06-03,"MQ",20398,"MQ","3184",15070,"SWF","New York",11193,"CVG","Kentucky","0559",-6,"0752",\
-13,0,88
2014-06-03,"MQ",20398,"MQ","3185",11193,"CVG","Kentucky",15070,"SWF","New York","",,"",,1,
2014-06-03,"MQ",20398,"MQ","3186",15070,"SWF","New York",11193,"CVG","Kentucky","2400",3,"0130",,0,
""",
        flights("2014-06-03", ids=True),
    ),
    "ready-made month, downloaded until 2017": (
        f"""Year,Month,DayofMonth,DayOfWeek,FlightDate,UniqueCarrier,AirlineID,Carrier,FlightNum,\
{PLACES_IN_MONTH},DepTime,DepDelay,ArrTime,ArrDelay,Cancelled,AirTime,
"2014","6","3","2","2014-06-03","MQ","20398","MQ","3184",{MONTH[0]},{MONTH[1]},"0559","-6.00","0752",\
"-13.00","0.00","88.00",
"2014","6","3","2","2014-06-03","MQ","20398","MQ","3185",{MONTH[1]},{MONTH[0]},"","","","","1.00","",
"2014","6","3","2","2014-06-03","MQ","20398","MQ","3186",{MONTH[0]},{MONTH[1]},"2400","3.00","0130",\
"","0.00","",
""",
        flights("2014-06-03", ids=True),
    ),
    "ready-made month, downloaded since 2018": (
        f"""Year,Month,DayofMonth,DayOfWeek,FlightDate,Reporting_Airline,DOT_ID_Reporting_Airline,\
IATA_CODE_Reporting_Airline,Flight_Number_Reporting_Airline,{PLACES_IN_MONTH},DepTime,DepDelay,\
ArrTime,ArrDelay,Cancelled,AirTime,
"2019","6","4","2","2019-06-04","MQ","20398","MQ","3184",{MONTH[0]},{MONTH[1]},"0559","-6.00","0752",\
"-13.00","0.00","88.00",
"2019","6","4","2","2019-06-04","MQ","20398","MQ","3185",{MONTH[1]},{MONTH[0]},"","","","","1.00","",
"2019","6","4","2","2019-06-04","MQ","20398","MQ","3186",{MONTH[0]},{MONTH[1]},"2400","3.00","0130",\
"","0.00","",
""",
        flights("2019-06-04", ids=True),
    ),
    "Combined_Flights (2018 to 2022), month of the marketing carriers": (
        """FlightDate,Airline,Origin,Dest,Cancelled,Diverted,DepTime,DepDelay,ArrTime,AirTime,Year,\
DayOfWeek,DOT_ID_Marketing_Airline,Flight_Number_Marketing_Airline,DOT_ID_Operating_Airline,\
Flight_Number_Operating_Airline,ArrDelay
2021-06-01,Envoy Air,SWF,CVG,False,False,559.0,-6.0,752.0,88.0,2021,2,19805,9999,20398,3184,-13.0
2021-06-01,Envoy Air,CVG,SWF,True,False,,,,,2021,2,19805,9999,20398,3185,
2021-06-01,Envoy Air,SWF,CVG,False,True,2400.0,3.0,130.0,,2021,2,19805,9999,20398,3186,
""",
        flights("2021-06-01"),
    ),
    "Data Expo 2009 (1987 to 2008)": (
        f"{EXPO_TITLES}\n{EXPO.replace('YEAR', '2005')}",
        flights("2005-06-14"),
    ),
    "hflights": (
        "\n".join(
            ",".join(f'"{cell}"' for cell in (*cells[:5], cells[6], *cells[8:12], *cells[13:]))
            for cells in csv.reader(io.StringIO(f"{EXPO_TITLES}\n{EXPO.replace('YEAR', '2011')}"))
        ),
        flights("2011-06-14"),
    ),
    "Flight Delay and Causes (2019)": (
        """DayOfWeek,Date,DepTime,ArrTime,CRSArrTime,UniqueCarrier,Airline,FlightNum,AirTime,ArrDelay,\
DepDelay,Origin,Org_Airport,Dest,Dest_Airport,Cancelled,CancellationCode,Diverted
2,04-06-2019,559,752,805,MQ,Envoy Air,3184,88,-13,-6,SWF,Stewart,CVG,Northern,0,N,0
2,04-06-2019,,,1200,MQ,Envoy Air,3185,,,,CVG,Northern,SWF,Stewart,1,B,0
2,04-06-2019,2400,130,155,MQ,Envoy Air,3186,,,3,SWF,Stewart,CVG,Northern,0,N,1
""",
        flights("2019-06-04"),
    ),
    "Airline Delay and Cancellation Data (2009 to 2018)": (
        """FL_DATE,OP_CARRIER,OP_CARRIER_FL_NUM,ORIGIN,DEST,CRS_DEP_TIME,DEP_TIME,DEP_DELAY,ARR_TIME,\
ARR_DELAY,CANCELLED,DIVERTED,AIR_TIME,Unnamed: 27
2012-06-05,MQ,3184,SWF,CVG,605,559.0,-6.0,752.0,-13.0,0.0,0.0,88.0,
2012-06-05,MQ,3185,CVG,SWF,1000,,,,,1.0,0.0,,
2012-06-05,MQ,3186,SWF,CVG,2357,2400.0,3.0,130.0,,0.0,1.0,,
""",
        flights("2012-06-05"),
    ),
    "2015 Flight Delays": (
        """YEAR,MONTH,DAY,DAY_OF_WEEK,AIRLINE,FLIGHT_NUMBER,TAIL_NUMBER,ORIGIN_AIRPORT,\
DESTINATION_AIRPORT,DEPARTURE_TIME,DEPARTURE_DELAY,ARRIVAL_TIME,ARRIVAL_DELAY,DIVERTED,CANCELLED,\
AIR_TIME
2015,10,6,2,MQ,3184,N0,15070,11193,0559,-6,0752,-13,0,0,88
2015,10,6,2,MQ,3185,,11193,15070,,,,,0,1,
2015,10,6,2,MQ,3186,N0,SWF,CVG,2400,3,0130,,1,0,
""",
        flights("2015-10-06"),
    ),
    "flights_sample_3m (2019 to 2023)": (
        f"""FL_DATE,AIRLINE,AIRLINE_DOT,AIRLINE_CODE,DOT_CODE,FL_NUMBER,ORIGIN,ORIGIN_CITY,DEST,DEST_CITY,\
DEP_TIME,DEP_DELAY,ARR_TIME,ARR_DELAY,CANCELLED,DIVERTED,AIR_TIME
2021-06-01,Envoy Air,Envoy Air: MQ,MQ,20398,3184,{SWF},{CVG},559.0,-6.0,752.0,-13.0,0.0,0.0,88.0
2021-06-01,Envoy Air,Envoy Air: MQ,MQ,20398,3185,{CVG},{SWF},,,,,1.0,0.0,
2021-06-01,Envoy Air,Envoy Air: MQ,MQ,20398,3186,{SWF},{CVG},2400.0,3.0,130.0,,0.0,1.0,
""",
        flights("2021-06-01"),
    ),
    "nycflights13 or nycflights23": (
        """year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,\
flight,tailnum,origin,dest,air_time,distance,hour,minute,time_hour
2013,6,4,559,605,-6,752,805,-13,MQ,3184,N0,SWF,CVG,88,576,6,5,2013-06-04T10:00:00Z
2013,6,4,NA,1000,NA,NA,1200,NA,MQ,3185,NA,CVG,SWF,NA,576,10,0,2013-06-04T14:00:00Z
2013,6,4,2400,2357,3,130,155,NA,MQ,3186,N0,SWF,CVG,NA,576,23,57,2013-06-05T03:00:00Z
""",
        flights("2013-06-04"),
    ),
    "export of this service": (
        f"""{",".join(FIELD_NAMES)},TRANSACTION_ID,timestamp,BLOCK_HEIGHT
2021,2,2021-06-01,20398,3184,15070,{SWF},New York,11193,{CVG},Kentucky,0559,-6,0752,-13,0,88,7,1,1
2021,2,2021-06-01,20398,3185,11193,{CVG},Kentucky,15070,{SWF},New York,,,,,1,,8,1,1
2021,2,2021-06-01,20398,3186,15070,{SWF},New York,11193,{CVG},Kentucky,2400,3,0130,,0,,9,1,1
""",
        flights("2021-06-01", ids=True),
    ),
}


def test_every_kind_has_its_file_here() -> None:
    assert {kind.name for kind in KINDS} - FILES.keys() == {"the 19 fields"}  # as in test_tables


@pytest.mark.parametrize("name", FILES)
def test_a_file_of_each_kind_is_read_whole(tmp_path: Path, name: str) -> None:
    text, expected = FILES[name]
    source = open_source(written(tmp_path, text))
    assert understood(source).reading.kind.name == name
    assert flights_of(source) == expected


@pytest.mark.parametrize("name", FILES)
def test_titles_count_in_any_case_and_with_an_index_column(tmp_path: Path, name: str) -> None:
    header, *lines = FILES[name][0].splitlines()
    numbered = [f",{header}", *(f"{number},{line}" for number, line in enumerate(lines))]
    for table, end in (("flights.", ""), ("main.flights.", ""), ("Flights[", "]")):
        titles = ",".join(f"{table}{title}{end}" for title in header.lower().split(","))
        path = written(tmp_path, "\n".join([titles.replace('"', ""), *lines]))
        assert flights_of(open_source(path)) == FILES[name][1]
    american = header.upper().replace("CANCELLED", "CANCELED")
    for titles in (header.lower(), american, header.replace("_", " ")):
        text = "\n".join([f",{titles}", *numbered[1:]])
        assert flights_of(open_source(written(tmp_path, text))) == FILES[name][1]


def test_without_a_column_of_days_nothing_is_said_of_their_order(tmp_path: Path) -> None:
    text, flights = FILES["nycflights13 or nycflights23"]
    source = open_source(written(tmp_path, text), dates="day-first")
    assert (understood(source).dates, flights_of(source)) == (None, flights)


def test_what_a_file_was_taken_for_is_said_in_a_line(tmp_path: Path) -> None:
    text, _ = FILES["nycflights13 or nycflights23"]
    assert str(open_source(written(tmp_path, text)).understood()) == (
        "nycflights13 or nycflights23; DAY_OF_WEEK from FL_DATE; FL_DATE from year and month and "
        "day; OP_CARRIER_AIRLINE_ID from carrier and FL_DATE (table of carriers); "
        "ORIGIN_CITY_NAME, ORIGIN_STATE_NM from origin (table of airports); DEST_CITY_NAME, "
        "DEST_STATE_NM from dest (table of airports); CANCELLED from dep_time (without it a flight "
        "was cancelled; if it was cancelled after it left the gate, it counts as not arrived); "
        "left empty: ORIGIN_AIRPORT_ID, DEST_AIRPORT_ID; "
        "not used: sched_dep_time, sched_arr_time, tailnum, 4 more"
    )


def test_a_city_of_another_kind_is_not_used_for_one_end_alone() -> None:
    titles = (
        "YEAR,MONTH,DAY,AIRLINE,FLIGHT_NUMBER,ORIGIN_AIRPORT,DESTINATION_AIRPORT,DEPARTURE_TIME,"
        "DEPARTURE_DELAY,ARRIVAL_TIME,ARRIVAL_DELAY,CANCELLED,AIR_TIME,ORIGIN_CITY,DESTINATION_CITY"
    )
    reading = reading_of(tuple(titles.split(",")))
    assert "ORIGIN_CITY_NAME" not in reading.columns
    assert reading.sources["ORIGIN_CITY_NAME"] == ("ORIGIN",)
    assert {"ORIGIN_CITY", "DESTINATION_CITY"} <= {*reading.not_used}


# --- what is refused -------------------------------------------------------------------------

NOT_FLIGHTS = [
    (
        "year, month,carrier,carrier_name,airport,arr_flights,arr_del15,arr_cancelled",
        "has totals of months instead of flights; download Reporting Carrier On-Time Performance",
    ),
    ("DEPARTURES_PERFORMED,SEATS,PASSENGERS,ORIGIN,DEST,YEAR,MONTH", "has totals of months"),
    ("UNIQUE_CARRIER,PASSENGERS,FREIGHT,MAIL,ORIGIN,DEST,YEAR,MONTH", "has totals of months"),
    ("ItinID,MktFare,TkCarrier,Origin,Dest,Year", "has tickets (DB1B) instead of flights"),
    ("ITIN_ID,MARKET_FARE,ORIGIN,DEST,YEAR", "has tickets (DB1B) instead of flights"),
    (
        "date,delay,distance,origin,destination",
        "has no carrier or flight number, and may have no year",
    ),
    (
        "FL_DATE,CARRIER,FL_NUM,ORIGIN,DEST,DEP_TIME,ARR_TIME,CANCELLED,DEP_AIRPORT_TZOFFSET",
        "has times in UTC instead of local ones (tzcorr); download Reporting Carrier On-Time",
    ),
    (
        "Carrier Code,Date (MM/DD/YYYY),Flight Number,Origin Airport,Actual Arrival Time",
        "has Detailed Statistics, which do not tell cancelled flights from punctual ones; download",
    ),
    (
        "FL_DATE,OP_UNIQUE_CARRIER,TAIL_NUM,ORIGIN,DEST,DEP_TIME,ARR_TIME,ARR_DELAY",
        (
            "lacks the columns OP_CARRIER_FL_NUM, DEP_DELAY, CANCELLED, which cannot be derived; "
            "it "
            "has FL_DATE, OP_UNIQUE_CARRIER, ORIGIN, DEST, DEP_TIME, ARR_TIME, ARR_DELAY; on "
            "TranStats (Reporting Carrier On-Time Performance) tick "
            "Flight_Number_Reporting_Airline, DepDelay, Cancelled, and download it again"
        ),
    ),
    (
        (
            "FL_DATE,MKT_UNIQUE_CARRIER,MKT_CARRIER_FL_NUM,ORIGIN,DEST,DEP_TIME,DEP_DELAY,ARR_TIME,"
            "ARR_DELAY,CANCELLED,AIR_TIME"
        ),
        "has the marketing carrier instead of the operating one",
    ),
    (
        (
            "flight_date,marketing_airline,operating_airline,flight_number,origin,dest,dep_time,"
            "dep_delay,arr_time,arr_delay,cancelled"
        ),
        (
            "lacks the columns OP_CARRIER_FL_NUM, which cannot be derived; it has flight_date, "
            "operating_airline, origin, dest, dep_time, dep_delay, arr_time, arr_delay, cancelled; "
            "it has the marketing carrier instead of the operating one: tick "
            "Flight_Number_Operating_Airline"
        ),
    ),
    (
        (
            "FL_DATE,MKT_CARRIER,CARRIER,OP_CARRIER_FL_NUM,ORIGIN,DEST,DEP_TIME,DEP_DELAY,ARR_TIME,"
            "ARR_DELAY,CANCELLED"
        ),
        "lacks the columns OP_CARRIER_AIRLINE_ID, which cannot be derived",
    ),
    (
        (
            "MONTH,DAY,AIRLINE,FLIGHT_NUMBER,ORIGIN_AIRPORT,DESTINATION_AIRPORT,DEPARTURE_TIME,"
            "DEPARTURE_DELAY,ARRIVAL_TIME,ARRIVAL_DELAY,CANCELLED"
        ),
        "lacks the columns YEAR, which cannot be derived; it has MONTH, DAY, AIRLINE",
    ),
    (
        (
            "YEAR,MONTH,DAY,AIRLINE,ORIGIN_AIRPORT,DESTINATION_AIRPORT,DEPARTURE_TIME,"
            "DEPARTURE_DELAY,ARRIVAL_TIME,ARRIVAL_DELAY,CANCELLED"
        ),
        "lacks the columns OP_CARRIER_FL_NUM, which cannot be derived; it has YEAR, MONTH, DAY",
    ),
    (
        "Month,DepTime",
        (
            "lacks the columns FL_DATE, OP_CARRIER_AIRLINE_ID, OP_CARRIER_FL_NUM, "
            "ORIGIN, DEST, DEP_DELAY, ARR_TIME, ARR_DELAY, CANCELLED, which cannot be derived; it "
            "has"
        ),
    ),
    (
        'Date,"Flight number",From,To,"Dep time","Arr time",Airline,Aircraft,"Seat number"',
        (
            "it has Flight number, Dep time, Arr time; add what is missing, or download Reporting "
            "Carrier On-Time Performance from TranStats"
        ),
    ),
    (
        (
            "FL_DATE,OP_UNIQUE_CARRIER,FL_NUM,ORIGIN,DEST,DEP_TIME,Departure Delay (minutes),"
            "ARR_TIME,ARR_DELAY,AIR_TIME"
        ),
        (
            "; rename Departure Delay (minutes), because titles with brackets are not read; on "
            "TranStats (Reporting Carrier On-Time Performance) tick Cancelled, and download"
        ),
    ),
    (
        "MKT_UNIQUE_CARRIER,MKT_CARRIER_FL_NUM,FL_DATE,ORIGIN,DEST,DEP_TIME,DEP_DELAY,CANCELLED",
        (
            "it has the marketing carrier instead of the operating one: tick "
            "DOT_ID_Operating_Airline, Flight_Number_Operating_Airline, ArrTime, ArrDelay"
        ),
    ),
    ("IATA_CODE,AIRLINE", "has no column of a flight"),
    (
        "FL_DATE,OP_UNIQUE_CARRIER,FL_NUM,ORIGIN,DEST,DEP_TIME,DEP_DELAY,ARR_TIME,-ARR_DELAY,~Cancelled",
        "lacks the columns ARR_DELAY, CANCELLED, which cannot be derived",
    ),
]


@pytest.mark.parametrize(("header", "reason"), NOT_FLIGHTS)
def test_what_is_no_flights_is_refused_with_what_to_do(
    tmp_path: Path, header: str, reason: str
) -> None:
    path = written(tmp_path, f"{header}\n{','.join('1' * (header.count(',') + 1))}\n")
    with pytest.raises(InvalidInput) as caught:
        open_source(path)
    assert reason in str(caught.value)


def test_every_refused_kind_is_tried_above() -> None:
    headers = [header for header, _ in NOT_FLIGHTS]
    for marks in REFUSED:
        titles = {plain(mark) for mark in marks.split()}
        assert any(titles <= {plain(t) for t in header.split(",")} for header in headers)


def test_no_long_title_is_remembered() -> None:
    tracemalloc.start()
    try:
        for number in range(20):
            assert not has_meaning(f"{'a' * 50_000}{number}")
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 100_000
