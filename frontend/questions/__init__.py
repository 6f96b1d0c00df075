"""Makes from the backend's answers what several pages say about the three questions.

flights_of_day      the flights of a number on a day: their order and their outcome
punctuality_report  how often a flight number is late
figures             the figures of some groups of flights together
group_queries       answers by carrier, hour and so on; group_rows: what pages show of them
verdicts            which group is the best, and whether that is more than chance
intervals           intervals of days to offer as links
"""
