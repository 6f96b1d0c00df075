"""What a made-up ledger covers: carriers and cities whose names are alike, and the year 2013."""

from frontend.coverage import Airport, Carrier, Coverage

UNITED, DELTA, AMERICAN, EAGLE, SOUTHWEST, US_AIRWAYS, JETBLUE, ENDEAVOR, COMAIR, PSA, NAMELESS = (
    Carrier(19977, "UA", "United Airlines", 900),
    Carrier(19790, "DL", "Delta Air Lines", 800),
    Carrier(19805, "AA", "American Airlines", 700),
    Carrier(20398, "MQ", "Envoy Air (American Eagle)", 600),
    Carrier(19393, "WN", "Southwest Airlines", 500),
    Carrier(20355, "US", "US Airways", 400),
    Carrier(20409, "B6", "JetBlue Airways", 300),
    Carrier(20363, "9E", "Endeavor Air (Pinnacle Airlines)", 200),
    Carrier(20417, "OH", "Comair", 100),
    Carrier(20397, "OH", "PSA Airlines", 90),
    Carrier(30000, None, None, 5),
)
AIRPORTS = (
    Airport("EWR", "Newark, NJ", "New Jersey", 99),
    Airport("JFK", "New York, NY", "New York", 98),
    Airport("LGA", "New York, NY", "New York", 97),
    Airport("ORD", "Chicago, IL", "Illinois", 96),
    Airport("LAX", "Los Angeles, CA", "California", 95),
    Airport("MDW", "Chicago, IL", "Illinois", 94),
    Airport("DFW", "Dallas/Fort Worth, TX", "Texas", 93),
    Airport("SJU", "San Juán, PR", "Puerto Rico", 92),
    Airport("PDX", "Portland, OR", "Oregon", 91),
    Airport("PWM", "Portland, ME", "Maine", 90),
    Airport("DAY", "Dayton, OH", "Ohio", 89),
    Airport("MTJ", "Montrose/Delta, CO", "Colorado", 88),
    Airport("INT", "Winston-Salem, NC", "North Carolina", 87),
    Airport("RDU", "Raleigh/Durham, NC", "North Carolina", 86),
    Airport("JAN", "Jackson/Vicksburg, MS", "Mississippi", 85),
    Airport("JAC", "Jackson, WY", "Wyoming", 84),
    Airport("DAL", "Dallas, TX", "Texas", 83),
    Airport("MVY", "Martha's Vineyard, MA", "Massachusetts", 82),
)
KNOWN = Coverage(
    flights=10_000,
    first_date="2013-01-01",
    last_date="2013-12-20",
    carriers=(
        *(UNITED, DELTA, AMERICAN, EAGLE, SOUTHWEST, US_AIRWAYS),
        *(JETBLUE, ENDEAVOR, COMAIR, PSA, NAMELESS),
    ),
    airports=AIRPORTS,
)
