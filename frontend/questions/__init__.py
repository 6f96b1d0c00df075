"""Makes from the backend's answers what pages say about the three questions.

status_answers      what happened to a flight
flights_of_day      the flights of a number on a day: their order and their outcome
punctuality_report  how often a flight number is late
delays              how late a carrier is; comparison: which of several is better
figures             the figures of some groups of flights together
flight_counts       how many flights there are between two cities; departures, days: which and when
route_delays        how late a route is
group_queries       answers by carrier, hour and so on; group_rows: what pages show of them
verdicts            which group is the best, and whether that is more than chance
intervals           intervals of days to offer as links
"""
