"""What pages say in answer to the three questions, made from the backend's answers.

flight_status, flight_days    what happened to a flight, and when it flew; legs in order (pure)
delays                        how late carriers are
flight_counts                 how many flights there are between two cities
intervals                     of days, as links
"""
