"""Which pages answer a text."""

from dataclasses import replace

from frontend.coverage import NOTHING_KNOWN, Carrier
from frontend.search.answers import Lead, leads
from frontend.search.reading import Reading
from frontend.search.sentences import readings
from tests.cases import each_of
from tests.frontend.search.ledger import KNOWN

ALL_DAYS = "INITIAL_DATE=2013-01-01&FINAL_DATE=2013-12-20"
JANUARY = "INITIAL_DATE=2013-01-01&FINAL_DATE=2013-01-31"
FEBRUARY = "INITIAL_DATE=2013-02-01&FINAL_DATE=2013-02-28"
MARCH = "INITIAL_DATE=2013-03-01&FINAL_DATE=2013-03-31"
JULY = "INITIAL_DATE=2013-07-01&FINAL_DATE=2013-07-31"
YEAR = ALL_DAYS  # as far as the ledger goes
UNITED = "OP_CARRIER_AIRLINE_ID=19977"
DELTA = "OP_CARRIER_AIRLINE_ID=19790"
UA_1545 = f"OP_CARRIER_FL_NUM=1545&{UNITED}"
CHICAGO_NEW_YORK = "/route?ORIGIN_CITY_NAME=Chicago%2C+IL&DEST_CITY_NAME=New+York%2C+NY"
CITIES = "ORIGIN_CITY_NAME=Newark%2C+NJ&DEST_CITY_NAME=Chicago%2C+IL"
WORST = "sort=on_time_share_of_scheduled&order=ascending"
WORST_DAY = "sort=on_time_share_of_scheduled"
CANCELLED = "sort=cancelled&order=descending"
BEST = "sort=on_time_share_of_scheduled&order=descending"
MOST_LATE = "sort=average_delay&order=descending"

ADDRESSES: dict[str, list[str]] = {
    "EWR to EWR": ["/route?ORIGIN=EWR&DEST=EWR"],
    "Martha's Vineyard to Chicago": [
        "/route?ORIGIN_CITY_NAME=Martha%27s+Vineyard%2C+MA&DEST_CITY_NAME=Chicago%2C+IL"
    ],
    # how late is a carrier
    "How late is United?": [f"/average_delays?{UNITED}&{ALL_DAYS}"],
    "how late is united in july": [f"/average_delays?{UNITED}&{JULY}"],
    "which is better, united or delta": ["/compare?what=carrier&item=19977&item=19790"],
    "united or delta from EWR to ORD in july": [
        f"/compare?what=carrier&item=19977&item=19790&ORIGIN=EWR&DEST=ORD&{JULY}"
    ],
    "UA DL AA WN US B6 9E": [],
    "jet blue": [f"/average_delays?OP_CARRIER_AIRLINE_ID=20409&{ALL_DAYS}"],
    "UA until 6 july": [f"/average_delays?{UNITED}&INITIAL_DATE=2013-01-01&FINAL_DATE=2013-07-06"],
    "UA since july": [f"/average_delays?{UNITED}&INITIAL_DATE=2013-07-01&FINAL_DATE=2013-12-20"],
    "UA from 1 july": [f"/average_delays?{UNITED}&INITIAL_DATE=2013-07-01&FINAL_DATE=2013-12-20"],
    "departures from JFK leaving 4 July": ["/departures?ORIGIN=JFK&FL_DATE=2013-07-04"],
    "departure delay of UA": [f"/average_delays?{UNITED}&{ALL_DAYS}"],
    "UA 6/15-7/31": [f"/average_delays?{UNITED}&INITIAL_DATE=2013-06-15&FINAL_DATE=2013-07-31"],
    "united in jan": [f"/average_delays?{UNITED}&{JANUARY}"],
    "united in JAN": [
        f"/average_delays?{UNITED}&ORIGIN=JAN&{ALL_DAYS}",
        f"/average_delays?{UNITED}&{JANUARY}",
    ],
    # flights
    "UA1545": [f"/report?{UA_1545}"],
    "UA 1545 in march": [f"/report?{UA_1545}&{MARCH}"],
    "1545": ["/report?OP_CARRIER_FL_NUM=1545"],
    "what happened to United in July": [f"/average_delays?{UNITED}&{JULY}"],
    "what happened at EWR in February": [f"/airports/EWR?{FEBRUARY}"],
    "UA 15, 5 July": [f"/filter_transactions?OP_CARRIER_FL_NUM=15&{UNITED}&FL_DATE=2013-07-05"],
    "flight 15, 5 July": ["/filter_transactions?OP_CARRIER_FL_NUM=15&FL_DATE=2013-07-05"],
    "5 July 2013, 1545": ["/filter_transactions?OP_CARRIER_FL_NUM=1545&FL_DATE=2013-07-05"],
    "United's 1545": [f"/report?{UA_1545}"],
    "UA #1545": [f"/report?{UA_1545}"],
    "B6-12": ["/report?OP_CARRIER_FL_NUM=12&OP_CARRIER_AIRLINE_ID=20409"],
    "UA 15 arrivals": [f"/report?OP_CARRIER_FL_NUM=15&{UNITED}"],
    "United UA 1545": [f"/report?{UA_1545}"],
    "1545 airline": ["/report?OP_CARRIER_FL_NUM=1545"],
    "UA 15 flights": [f"/report?OP_CARRIER_FL_NUM=15&{UNITED}"],
    "19977": [f"/average_delays?{UNITED}&{ALL_DAYS}", "/report?OP_CARRIER_FL_NUM=19977"],
    "delay of 19977 between 1 and 31 july": [
        f"/average_delays?{UNITED}&{JULY}",
        f"/report?OP_CARRIER_FL_NUM=19977&{JULY}",
    ],
    "flight 19977": ["/report?OP_CARRIER_FL_NUM=19977"],
    "United Air Lines Inc.": [f"/average_delays?{UNITED}&{ALL_DAYS}"],
    "united airways corporation 1545": [f"/report?{UA_1545}"],
    "united 1545 landed at 5 pm": [f"/report?{UA_1545}"],
    "UA 45 July": [f"/report?OP_CARRIER_FL_NUM=45&{UNITED}&{JULY}"],
    # routes
    "EWR-ORD": ["/route?ORIGIN=EWR&DEST=ORD"],
    "EWR to ORD": ["/route?ORIGIN=EWR&DEST=ORD"],
    "Newark to Chicago": [f"/route?{CITIES}"],
    "newark to ORD": ["/route?ORIGIN_CITY_NAME=Newark%2C+NJ&DEST=ORD"],
    "LGA Chicago": ["/route?ORIGIN=LGA&DEST_CITY_NAME=Chicago%2C+IL"],
    "delays at JFK and arriving at ORD": ["/route?ORIGIN=JFK&DEST=ORD"],
    "flights from JFK to LAX in March": [f"/route?ORIGIN=JFK&DEST=LAX&{MARCH}"],
    "JFK-LAX 2013-03-05": [
        "/route?ORIGIN=JFK&DEST=LAX&INITIAL_DATE=2013-03-05&FINAL_DATE=2013-03-05"
    ],
    "which airline is best from JFK to LAX": ["/route?ORIGIN=JFK&DEST=LAX"],
    "how late is united on fridays": [f"/average_delays?{UNITED}&{ALL_DAYS}"],
    "JFK on a Monday night": ["/airports/JFK"],
    "Friday": [],
    "united from EWR to ORD": [f"/average_delays?{UNITED}&ORIGIN=EWR&DEST=ORD&{ALL_DAYS}"],
    "between EWR and ORD": ["/route?ORIGIN=EWR&DEST=ORD"],
    "worst day from JFK to LAX": [f"/days?ORIGIN=JFK&DEST=LAX&{ALL_DAYS}&{WORST_DAY}"],
    "on which day in July is JFK-LAX most delayed": [
        f"/days?ORIGIN=JFK&DEST=LAX&{JULY}&sort=average_delay"
    ],
    # airports
    "Newark": ["/airports/EWR"],
    "Newark international airport": ["/airports/EWR"],
    "Jackson, MS": ["/airports/JAN"],
    "Jackson to EWR": [
        "/route?ORIGIN_CITY_NAME=Jackson%2C+WY&DEST=EWR",
        "/route?ORIGIN_CITY_NAME=Jackson%2FVicksburg%2C+MS&DEST=EWR",
    ],
    "to JAN in may": ["/airports/JAN?INITIAL_DATE=2013-05-01&FINAL_DATE=2013-05-31#arrivals"],
    "flights to EWR in february": [f"/airports/EWR?{FEBRUARY}#arrivals"],
    "Chicago": ["/airports/ORD", "/airports/MDW"],
    "united at ORD": [f"/average_delays?{UNITED}&ORIGIN=ORD&{ALL_DAYS}"],
    "united to ORD in July": [f"/average_delays?{UNITED}&DEST=ORD&{JULY}"],
    "EWR v JFK": ["/compare?what=origin&item=EWR&item=JFK"],
    "EWR vs JFK": ["/compare?what=origin&item=EWR&item=JFK"],
    "compare JFK and LGA": ["/compare?what=origin&item=JFK&item=LGA"],
    "JFK/LAX": ["/route?ORIGIN=JFK&DEST=LAX"],
    "New York/JFK to Chicago/ORD": ["/route?ORIGIN=JFK&DEST=ORD"],
    "JFK/LGA to ORD": ["/compare?what=origin&item=JFK&item=LGA&DEST=ORD"],
    "ORD to JFK/LGA": ["/compare?what=destination&item=JFK&item=LGA&ORIGIN=ORD"],
    "july/august": ["/compare?what=days&item=July+2013&item=August+2013"],
    "JFK ORD LAX": ["/compare?what=origin&item=JFK&item=ORD&item=LAX"],
    "EWR, JFK, LGA to ORD": ["/compare?what=origin&item=EWR&item=JFK&item=LGA&DEST=ORD"],
    "EWR/JFK/LGA to ORD": ["/compare?what=origin&item=EWR&item=JFK&item=LGA&DEST=ORD"],
    "[JFK] to [LAX]": ["/route?ORIGIN=JFK&DEST=LAX"],
    "united + delta": ["/compare?what=carrier&item=19977&item=19790"],
    "JFK or LGA to ORD": ["/compare?what=origin&item=JFK&item=LGA&DEST=ORD"],
    "to ORD from EWR, JFK or LGA": ["/compare?what=origin&item=EWR&item=JFK&item=LGA&DEST=ORD"],
    "LAX to ORD or Newark in July": [
        f"/compare?what=destination&item=ORD&item=Newark%2C+NJ&ORIGIN=LAX&{JULY}"
    ],
    "united to ORD or LAX from EWR": [
        f"/compare?what=destination&item=ORD&item=LAX&{UNITED}&ORIGIN=EWR"
    ],
    "flights to Newark or ORD in July": [
        f"/compare?what=destination&item=Newark%2C+NJ&item=ORD&{JULY}"
    ],
    "JFK-LAX vs EWR to Chicago": ["/compare?what=route&item=JFK+to+LAX&item=EWR+to+Chicago%2C+IL"],
    "july or august": ["/compare?what=days&item=July+2013&item=August+2013"],
    "EWR and EWR": [],
    "flight UA 15 vs flight DL 16": [
        "/compare?what=flight&item=United+Airlines+15&item=Delta+Air+Lines+16"
    ],
    "UA 15 vs delta 16 in july": [
        f"/compare?what=flight&item=United+Airlines+15&item=Delta+Air+Lines+16&{JULY}"
    ],
    "carrier 30000 7 vs OH 8": [
        f"/compare?what=flight&item=Carrier+30000+7&item={name}+8"
        for name in ("Comair", "PSA+Airlines")
    ],
    "Chicago → New York": [CHICAGO_NEW_YORK],
    "Chicago->New York": [CHICAGO_NEW_YORK],
    "New York from Chicago": [CHICAGO_NEW_YORK],
    "JFK > LAX": ["/route?ORIGIN=JFK&DEST=LAX"],
    "JFK New York to O\u2019Hare": ["/route?ORIGIN=JFK&DEST=ORD"],
    "nyc to la": ["/route?ORIGIN_CITY_NAME=New+York%2C+NY&DEST_CITY_NAME=Los+Angeles%2C+CA"],
    "is the evening flight EWR-ORD worse than the morning one": ["/route?ORIGIN=EWR&DEST=ORD"],
    "JFK-LAX EWR-LAX": ["/compare?what=route&item=JFK+to+LAX&item=EWR+to+LAX"],
    # departures
    "JFK at 0800": ["/departures?ORIGIN=JFK&hour=8"],
    "JFK 8 in the evening": ["/departures?ORIGIN=JFK&hour=20"],
    "flight 8 in the morning": ["/report?OP_CARRIER_FL_NUM=8"],
    "JFK at 8:30 in the evening": ["/departures?ORIGIN=JFK&hour=20"],
    "8 o'clock in the morning from JFK": ["/departures?ORIGIN=JFK&hour=8"],
    "JFK at noon": ["/departures?ORIGIN=JFK&hour=12"],
    "JFK around 6 o'clock": ["/departures?ORIGIN=JFK&hour=6"],
    "JFK 23:59": ["/departures?ORIGIN=JFK&hour=23"],
    "JFK to LAX at 13:30 pm": ["/departures?ORIGIN=JFK&DEST=LAX&hour=13"],
    "12 noon united JFK": [f"/departures?{UNITED}&ORIGIN=JFK&hour=12"],
    "united around midnight from JFK": [f"/departures?{UNITED}&ORIGIN=JFK&hour=0"],
    "arrival delay from JFK at 8 am": ["/departures?ORIGIN=JFK&hour=8"],
    "leaving JFK at 8 am arriving LAX": ["/departures?ORIGIN=JFK&DEST=LAX&hour=8"],
    "JFK to LAX at 8 am": ["/departures?ORIGIN=JFK&DEST=LAX&hour=8"],
    "JFK to LAX at 8 pm in July": [f"/departures?ORIGIN=JFK&DEST=LAX&hour=20&{JULY}"],
    "JFK, July 4, 2013, 8 am": ["/departures?ORIGIN=JFK&hour=8&FL_DATE=2013-07-04"],
    "JFK 4 July 10 am": ["/departures?ORIGIN=JFK&hour=10&FL_DATE=2013-07-04"],
    "JFK 4 Jul 08:30": ["/departures?ORIGIN=JFK&hour=8&FL_DATE=2013-07-04"],
    "JFK-LAX 17:30 on 4 July": ["/departures?ORIGIN=JFK&DEST=LAX&hour=17&FL_DATE=2013-07-04"],
    "which united flight leaves JFK for LAX at 8": [
        f"/departures?{UNITED}&ORIGIN=JFK&DEST=LAX&hour=8"
    ],
    "departures from JFK on 4 July": ["/departures?ORIGIN=JFK&FL_DATE=2013-07-04"],
    "departures from JFK": ["/airports/JFK"],
    "arrivals at JFK": ["/airports/JFK#arrivals"],
    "united arrivals at ORD": [f"/average_delays?{UNITED}&DEST=ORD&{ALL_DAYS}"],
    "arrival delay of united at ORD": [f"/average_delays?{UNITED}&DEST=ORD&{ALL_DAYS}"],
    "compare arrivals at JFK and LGA": ["/compare?what=destination&item=JFK&item=LGA"],
    "from Newark at 12 a.m.": ["/departures?ORIGIN_CITY_NAME=Newark%2C+NJ&hour=0"],
    # rankings
    "worst route in february": [f"/rankings?by=route&{FEBRUARY}&{WORST}"],
    "best airline": [f"/rankings?by=carrier&{BEST}"],
    "worst airlines by punctuality": [f"/rankings?by=carrier&{WORST}"],
    "ranking of the worst airlines": [f"/rankings?by=carrier&{WORST}"],
    "airlines with the worst delays": [f"/rankings?by=carrier&{MOST_LATE}"],
    "top 10 busiest routes": ["/rankings?by=route&sort=flights&order=descending"],
    "best hour to leave EWR": ["/airports/EWR"],
    "when to depart from EWR": ["/airports/EWR"],
    "may, june and july 2013": ["/compare?what=days&item=May+2013&item=June+2013&item=July+2013"],
    "DL 1 vs 5": ["/compare?what=flight&item=Delta+Air+Lines+1&item=Delta+Air+Lines+5"],
    "DL1, DL 5": ["/compare?what=flight&item=Delta+Air+Lines+1&item=Delta+Air+Lines+5"],
    "UA1545 04JUL": [f"/filter_transactions?{UA_1545}&FL_DATE=2013-07-04"],
    "UA 1545 on 4 Jul 13": [f"/filter_transactions?{UA_1545}&FL_DATE=2013-07-04"],
    "UA 1545 on 4-Jul-13": [f"/filter_transactions?{UA_1545}&FL_DATE=2013-07-04"],
    "busiest route": ["/rankings?by=route&sort=flights&order=descending"],
    "routes with the fewest flights": ["/rankings?by=route&sort=flights&order=ascending"],
    "big routes": ["/rankings?by=route&sort=flights&order=descending"],
    "bad airlines": [f"/rankings?by=carrier&{WORST}"],
    "biggest delay": [f"/rankings?by=carrier&{MOST_LATE}"],
    "biggest airline": ["/rankings?by=carrier&sort=flights&order=descending"],
    "least busy route": ["/rankings?by=route&sort=flights&order=ascending"],
    "top airlines by flights": ["/rankings?by=carrier&sort=flights&order=descending"],
    "top routes by number of flights": ["/rankings?by=route&sort=flights&order=descending"],
    "airline with no cancellations": [],
    "where does united fly from EWR": [f"/rankings?by=destination&{UNITED}&ORIGIN=EWR"],
    "best airline in the U.S.": [f"/rankings?by=carrier&{BEST}"],
    "list of airlines": ["/rankings?by=carrier"],
    "most delayed airline": [f"/rankings?by=carrier&{MOST_LATE}"],
    "airline with the fewest delays": ["/rankings?by=carrier&sort=average_delay&order=ascending"],
    "airline with most cancellations": [f"/rankings?by=carrier&{CANCELLED}"],
    "which airline cancels the most flights": [f"/rankings?by=carrier&{CANCELLED}"],
    "least cancelled route": ["/rankings?by=route&sort=cancelled&order=ascending"],
    "quietest route": ["/rankings?by=route&sort=flights&order=ascending"],
    "worst airport": [f"/rankings?by=origin&{WORST}", f"/rankings?by=destination&{WORST}"],
    "worst route of united": [f"/rankings?by=route&{UNITED}&{WORST}"],
    "worst airport for delta": [
        f"/rankings?by=origin&{DELTA}&{WORST}",
        f"/rankings?by=destination&{DELTA}&{WORST}",
    ],
    "best airline to ORD": [f"/rankings?by=carrier&DEST=ORD&{BEST}"],
    "best airline to Newark in july": [
        f"/rankings?by=carrier&DEST_CITY_NAME=Newark%2C+NJ&{JULY}&{BEST}"
    ],
    "worst route from JFK": [f"/rankings?by=route&ORIGIN=JFK&{WORST}"],
    "worst airport for departures": [f"/rankings?by=origin&{WORST}"],
    "worst": [f"/rankings?by=carrier&{WORST}"],
    "rankings": ["/rankings?by=carrier"],
    "worst month": [f"/days?{ALL_DAYS}&{WORST_DAY}"],
    "busiest day": [f"/days?{ALL_DAYS}&sort=flights"],
    "day with the most delays": [f"/days?{ALL_DAYS}&sort=average_delay"],
    "most cancelled day from EWR": [f"/days?ORIGIN=EWR&{ALL_DAYS}&sort=cancelled"],
    "worst day for united in july": [f"/days?{UNITED}&{JULY}&{WORST_DAY}"],
    "which flight is worst": [f"/rankings?by=carrier&{WORST}"],
    "JFK in july vs august": ["/compare?what=days&item=July+2013&item=August+2013&ORIGIN=JFK"],
    "which cancels more, united or delta": [
        "/compare?what=carrier&item=19977&item=19790&sort=cancelled"
    ],
    "fewest delays, united or delta": [
        "/compare?what=carrier&item=19977&item=19790&sort=average_delay"
    ],
    "most punctual, united or delta": ["/compare?what=carrier&item=19977&item=19790"],
    "united at JFK or EWR": [f"/compare?what=origin&item=JFK&item=EWR&{UNITED}"],
    "on time": [f"/days?{ALL_DAYS}&{WORST_DAY}"],
    "best airline in the US": [f"/rankings?by=carrier&{BEST}"],
    "worst route in the United States": [f"/rankings?by=route&{WORST}"],
    "best time to fly": [],
    "worst time of day": [],
    "worst week": [],
    # how many, how late
    "how late in july": [f"/days?{JULY}"],
    "on time percentage of united": [f"/average_delays?{UNITED}&{ALL_DAYS}"],
    "cancellation rate of united": [f"/average_delays?{UNITED}&{ALL_DAYS}"],
    "daily flights of united": [f"/days?{UNITED}&{ALL_DAYS}"],
    "monthly delays": [f"/days?{ALL_DAYS}"],
    "hourly departures at EWR": ["/airports/EWR"],
    "on time arrival rate of united": [f"/average_delays?{UNITED}&{ALL_DAYS}"],
    "on time arrivals united": [f"/average_delays?{UNITED}&{ALL_DAYS}"],
    "on time arrivals at EWR": ["/airports/EWR#arrivals"],
    "late departures": [f"/days?{ALL_DAYS}"],
    "reliability of united": [f"/average_delays?{UNITED}&{ALL_DAYS}"],
    "avg delay": [f"/days?{ALL_DAYS}"],
    "percentage of cancelled flights of united": [f"/average_delays?{UNITED}&{ALL_DAYS}"],
    "total flights in the ledger": [f"/days?{ALL_DAYS}&sort=flights"],
    "delay by day of week": [],
    "average delay": [f"/days?{ALL_DAYS}"],
    "cancelled flights in july": [f"/days?{JULY}&sort=cancelled"],
    "more cancellations, united or delta": [
        "/compare?what=carrier&item=19977&item=19790&sort=cancelled"
    ],
    "which has fewer delays, united or delta": [
        "/compare?what=carrier&item=19977&item=19790&sort=average_delay"
    ],
    "how many flights": [f"/days?{ALL_DAYS}&sort=flights"],
    "how many flights were cancelled in 2013": [f"/days?{YEAR}&sort=cancelled"],
    "number of cancelled flights from EWR in july": [f"/days?ORIGIN=EWR&{JULY}&sort=cancelled"],
    "how many flights did united cancel in july": [f"/average_delays?{UNITED}&{JULY}"],
    "how many flights has each airline": ["/rankings?by=carrier&sort=flights&order=descending"],
    "who has the highest number of flights": ["/rankings?by=carrier&sort=flights&order=descending"],
    "how many flights, united or delta": [
        "/compare?what=carrier&item=19977&item=19790&sort=flights"
    ],
    "how many minutes late is united": [f"/average_delays?{UNITED}&{ALL_DAYS}"],
    "how long are the delays of united": [f"/average_delays?{UNITED}&{ALL_DAYS}"],
    # times
    "July 2013": [f"/rankings?by=carrier&{JULY}"],
    "july": [f"/rankings?by=carrier&{JULY}"],
    "2013": [f"/rankings?by=carrier&{YEAR}", "/report?OP_CARRIER_FL_NUM=2013"],
    "1545 july": [f"/report?OP_CARRIER_FL_NUM=1545&{JULY}"],
    "EWR 2013 july": [f"/airports/EWR?{JULY}"],
    "UA 2013 july": [f"/report?OP_CARRIER_FL_NUM=2013&{UNITED}&{JULY}"],
    "flight 2013 july 4": ["/filter_transactions?OP_CARRIER_FL_NUM=2013&FL_DATE=2013-07-04"],
    "UA 15 july 4": [f"/filter_transactions?OP_CARRIER_FL_NUM=15&{UNITED}&FL_DATE=2013-07-04"],
    "flight 15 july 4, 2013": ["/filter_transactions?OP_CARRIER_FL_NUM=15&FL_DATE=2013-07-04"],
    "UA 15 july": [f"/average_delays?{UNITED}&INITIAL_DATE=2013-07-15&FINAL_DATE=2013-07-15"],
    "flight 2013": ["/report?OP_CARRIER_FL_NUM=2013"],
    "cancelled flights 2013": [
        f"/days?{YEAR}&sort=cancelled",
        "/report?OP_CARRIER_FL_NUM=2013",
    ],
    "how many flights 2013": [f"/days?{YEAR}&sort=flights"],
    "worst route 2012-2013": [f"/rankings?by=route&{YEAR}&{WORST}"],
    "worst route 2013": [f"/rankings?by=route&{YEAR}&{WORST}"],
    "how many days was UA 2013 late": [
        f"/days?{UNITED}&{YEAR}",
        f"/report?OP_CARRIER_FL_NUM=2013&{UNITED}",
    ],
    "2013-07-04": ["/days/2013-07-04"],
    "on 4 July": ["/days/2013-07-04"],
    "Thanksgiving": ["/days/2013-11-28"],
    "Christmas": [],  # of 2013 it is too late, and of 2012 too early
    "between march and may 2013": [
        "/rankings?by=carrier&INITIAL_DATE=2013-03-01&FINAL_DATE=2013-05-31"
    ],
    "July 2019": [],
    "united in 2019": [],
    # what names nothing
    "Timbuktu": [],
    "flights from JFK to Timbuktu": [],
    "": [],
}


def leads_of(text: str) -> list[Lead]:
    return [lead for reading in readings(text, KNOWN) for lead in leads(reading, KNOWN)]


@each_of(("text", "expected"), ADDRESSES.items())
def test_a_text_leads_to_these_pages(text: str, expected: list[str]) -> None:
    assert [lead.address for lead in leads_of(text)] == expected


LABELS = {
    "EWR - united - ORD": [
        "How late is United Airlines from Newark, NJ (EWR) to Chicago, IL (ORD)?"
    ],
    "united": ["How late is United Airlines?"],
    "united in july": ["How late was United Airlines in July 2013?"],
    "united vs delta": ["United Airlines and Delta Air Lines compared"],
    "delta june vs july": ["June 2013 and July 2013 of Delta Air Lines compared"],
    "Delta Air Lines, Inc.": ["How late is Delta Air Lines?"],
    "UA 1545": ["Flight UA 1545"],
    "1545 on 4 july": ["Flight number 1545 on 4 July 2013"],
    "EWR to chicago in march": ["Newark, NJ (EWR) to Chicago, IL in March 2013"],
    "worst route in february": ["Routes in February 2013, least punctual first"],
    "most delayed route": ["Routes, most delayed first"],
    "how many flights in july": ["Days in July 2013, most flights first"],
    "july": ["Carriers in July 2013, ranked"],
    "carrier 30000": ["How late is Carrier 30000?"],
}


@each_of(("text", "expected"), LABELS.items())
def test_a_page_is_named_by_the_question_that_it_answers(text: str, expected: list[str]) -> None:
    assert [lead.label for lead in leads_of(text)] == expected


@each_of("text", ADDRESSES)
def test_the_name_of_a_page_leads_to_that_page(text: str) -> None:
    for lead in leads_of(text):
        assert lead.address in {other.address for other in leads_of(lead.label)}, lead.label


UNUSED: dict[str, list[tuple[str, tuple[str, ...]]]] = {
    "worst airline on Mondays": [
        ("/rankings?by=carrier&sort=on_time_share_of_scheduled&order=ascending", ("Mondays",)),
    ],
    "united vs delta on Friday evenings": [
        ("/compare?what=carrier&item=19977&item=19790", ("Friday, evenings",)),
    ],
    "weekdays in July": [(f"/rankings?by=carrier&{JULY}", ("weekdays or hours",))],
    "worst time to fly in July": [
        (f"/rankings?by=carrier&{JULY}&{WORST}", ("weekdays or hours",)),
    ],
    "EWR vs JFK by hour": [("/compare?what=origin&item=EWR&item=JFK", ("weekdays or hours",))],
    "fastest route": [("/rankings?by=route", ("fastest",))],
    "slowest airline to EWR": [("/rankings?by=carrier&DEST=EWR", ("slowest",))],
    "how long is JFK to LAX": [("/route?ORIGIN=JFK&DEST=LAX", ("how long",))],
    "average flight time from JFK to LAX": [("/route?ORIGIN=JFK&DEST=LAX", ("how long",))],
    "how much is JFK to LAX": [("/route?ORIGIN=JFK&DEST=LAX", ("how much",))],
    "how many airlines fly to ORD": [("/rankings?by=carrier&DEST=ORD", ("how many",))],
    "how many flights were late in july": [(f"/days?{JULY}", ("how many",))],
    "how many days was UA 1545 late": [(f"/report?{UA_1545}", ("how many",))],
    "how many cancellations of each airline": [
        (f"/rankings?by=carrier&{CANCELLED}", ("how many",)),
    ],
    "JFK to LAX in 5 hours": [("/route?ORIGIN=JFK&DEST=LAX", ("in 5 hours",))],
    "8 flights JFK to LAX": [("/route?ORIGIN=JFK&DEST=LAX", ("8 flights",))],
    "JFK 8": [
        ("/report?OP_CARRIER_FL_NUM=8", ("New York, NY (JFK)",)),
        ("/airports/JFK", ("8",)),
        ("/departures?ORIGIN=JFK&hour=8", ()),
    ],
    "flight 8 from JFK": [
        ("/report?OP_CARRIER_FL_NUM=8", ("New York, NY (JFK)",)),
        ("/airports/JFK", ("8",)),
    ],
    "UA 1545 JFK to LAX": [
        (f"/report?{UA_1545}", ("New York, NY (JFK)", "Los Angeles, CA (LAX)")),
        (f"/average_delays?{UNITED}&ORIGIN=JFK&DEST=LAX&{ALL_DAYS}", ("1545",)),
    ],
    "JFK to LAX at 8 am or 5 pm": [("/route?ORIGIN=JFK&DEST=LAX", ("8:00", "17:00"))],
    "did united cancel more flights than delta": [
        ("/compare?what=carrier&item=19977&item=19790&sort=cancelled", ()),
    ],
    "JFK until 8 am": [("/airports/JFK", ("until 8:00",))],
    "JFK between 6 and 9 am": [("/airports/JFK", ("6 and 9 am",))],
    "UA 5 july 8 am": [
        (f"/average_delays?{UNITED}&INITIAL_DATE=2013-07-05&FINAL_DATE=2013-07-05", ("8:00",)),
    ],
    "why was UA 1545 late": [(f"/report?{UA_1545}", ("why",))],
    "long flights from JFK": [("/airports/JFK", ("long",))],
    "flights that arrived at JFK at 5 pm": [("/airports/JFK#arrivals", ("arrival at 17:00",))],
    "early flights JFK": [("/airports/JFK", ("early flights",))],
    "JFK to LAX arriving at 5 pm": [("/route?ORIGIN=JFK&DEST=LAX", ("arrival at 17:00",))],
    "leaving JFK, arriving at LAX at 5 pm": [("/route?ORIGIN=JFK&DEST=LAX", ("arrival at 17:00",))],
    "what arrives at EWR at 17:30": [("/airports/EWR#arrivals", ("arrival at 17:00",))],
    "10 worst routes": [(f"/rankings?by=route&{WORST}", ("10",))],
    "5 best routes of delta": [
        (f"/rankings?by=route&OP_CARRIER_AIRLINE_ID=19790&{BEST}", ("5",)),
    ],
    "top 10 routes": [("/rankings?by=route&sort=flights&order=descending", ("10",))],
    "top 20 most delayed routes": [(f"/rankings?by=route&{MOST_LATE}", ("20",))],
    "top 20 routes by delay": [(f"/rankings?by=route&{MOST_LATE}", ("20",))],
    "most delayed routes with at least 100 flights": [
        (f"/rankings?by=route&{MOST_LATE}", ("100 flights",)),
    ],
    "airlines with fewer than 1000 flights": [
        ("/rankings?by=carrier&sort=flights&order=ascending", ("1000 flights",)),
    ],
    "first week of july": [(f"/rankings?by=carrier&{JULY}", ("first", "weeks"))],
    "worst week for united": [(f"/average_delays?{UNITED}&{ALL_DAYS}", ("weeks",))],
    "is united the worst airline": [(f"/average_delays?{UNITED}&{ALL_DAYS}", ("a ranking",))],
    "rank of united": [(f"/average_delays?{UNITED}&{ALL_DAYS}", ("a ranking",))],
    "biggest delay of united": [(f"/average_delays?{UNITED}&{ALL_DAYS}", ("a ranking",))],
    "is united better than average": [
        (f"/average_delays?{UNITED}&{ALL_DAYS}", ("than average",)),
    ],
    "flights to UA": [(f"/average_delays?{UNITED}&{ALL_DAYS}", ("to United Airlines",))],
    "first flight to EWR": [("/airports/EWR#arrivals", ("first flight",))],
    "flights late july": [(f"/rankings?by=carrier&{JULY}", ("late",))],
    "united vs EWR": [
        (f"/average_delays?{UNITED}&ORIGIN=EWR&{ALL_DAYS}", ("a comparison",)),
    ],
    "worst flights": [(f"/rankings?by=carrier&{WORST}", ("a ranking of single flights",))],
    "6 worst flights": [(f"/rankings?by=carrier&{WORST}", ("6", "a ranking of single flights"))],
    "most on time flight": [(f"/rankings?by=carrier&{BEST}", ("a ranking of single flights",))],
    "top 10": [("/rankings?by=carrier&sort=flights&order=descending", ("10",))],
    "which flight from EWR is worst": [("/airports/EWR", ("a ranking of single flights",))],
    "best day": [(f"/days?{ALL_DAYS}&{WORST_DAY}", ("best",))],
    "best day from JFK to LAX": [
        ("/route?ORIGIN=JFK&DEST=LAX", ("days",)),
        (f"/days?ORIGIN=JFK&DEST=LAX&{ALL_DAYS}&{WORST_DAY}", ("best",)),
    ],
    "worst day of AA and WN": [
        ("/compare?what=carrier&item=19805&item=19393", ("days",)),
        (f"/days?{ALL_DAYS}&{WORST_DAY}", ("a comparison",)),
    ],
    "worst route AA vs WN": [
        ("/compare?what=carrier&item=19805&item=19393", ("routes",)),
        (f"/rankings?by=route&{WORST}", ("a comparison",)),
    ],
    "EWR from yesterday to today": [
        (
            "/airports/EWR?INITIAL_DATE=2013-12-20&FINAL_DATE=2013-12-20",
            ("yesterday and today, because the ledger ends on 20 December 2013",),
        ),
    ],
    "from 1 july to today": [
        (
            "/rankings?by=carrier&INITIAL_DATE=2013-07-01&FINAL_DATE=2013-12-20",
            ("today, because the ledger ends on 20 December 2013",),
        ),
    ],
    "UA from 1 july to now": [
        (
            f"/average_delays?{UNITED}&INITIAL_DATE=2013-07-01&FINAL_DATE=2013-12-20",
            ("now, because the ledger ends on 20 December 2013",),
        ),
    ],
    "yesterday vs 4 july": [
        (
            "/compare?what=days&item=20+December+2013&item=4+July+2013",
            ("yesterday, because the ledger ends on 20 December 2013",),
        ),
    ],
    "yesterday": [
        ("/days/2013-12-20", ("yesterday, because the ledger ends on 20 December 2013",)),
    ],
    "EWR to ORD today": [
        (
            "/route?ORIGIN=EWR&DEST=ORD&INITIAL_DATE=2013-12-20&FINAL_DATE=2013-12-20",
            ("today, because the ledger ends on 20 December 2013",),
        ),
    ],
}


@each_of(("text", "expected"), UNUSED.items())
def test_what_a_page_does_not_use_of_a_text_is_said(
    text: str, expected: list[tuple[str, tuple[str, ...]]]
) -> None:
    assert [(lead.address, lead.unused) for lead in leads_of(text)] == expected


@each_of(
    ("text", "other"),
    {
        "1/5/2013": "1 May 2013",
        "UA on 1/5": "1 May 2012",
        "since 1/5/2013": "1 May 2013",
        "from 1/3/2013 to 1/5/2013": "1 March 2013",
    }.items(),
)
def test_a_day_that_may_be_another_is_not_guessed(text: str, other: str) -> None:
    january = replace(KNOWN, last_date="2013-01-31")
    first, *_ = (lead for each in readings(text, january) for lead in leads(each, january))
    assert first.unused == (f"{other}, which the ledger does not have",)


def test_the_official_name_of_a_company_is_no_other_carrier() -> None:
    continental = Carrier(19704, "CO", "Continental Air Lines", 10)
    known = replace(KNOWN, carriers=(*KNOWN.carriers, continental))
    southwest = next(each for each in known.carriers if each.code == "WN")
    (read,) = readings("Southwest Airlines Co. flight 335", known)
    assert (read.carriers, read.number) == ((southwest,), 335)
    (read,) = readings("southwest vs co", known)
    assert read.compared == ("carrier", (southwest,), (continental,))


def test_an_empty_ledger_answers_nothing() -> None:
    assert leads(Reading(number=1), NOTHING_KNOWN) == []
