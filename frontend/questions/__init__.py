"""Makes from the backend's answers what pages say about the three questions.

status_answers    what happened to a flight
flight_days       the days on which a flight number flew
flights_of_day    the flights of a number on a day: their order and their outcome (pure)
delays                        how late carriers are
delay_panels                  how late carriers are by weekday and hour
flight_counts                 how many flights there are between two cities
intervals                     intervals of days to offer as links
"""
