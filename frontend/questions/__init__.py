"""Makes from the backend's answers what pages say about the three questions.

flight_status, flight_days    what happened to a flight, and when it flew; legs in order (pure)
delays                        how late carriers are
delay_panels                  how late carriers are by weekday and hour
flight_counts                 how many flights there are between two cities
intervals                     intervals of days to offer as links
"""
