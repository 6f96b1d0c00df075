"""Runs servers that the lab measures besides the service itself.

study           the study's way of storing and answering
network         the study's queueing network
known, null     sleep for a known time, or answer at once
mariadb         the database of study 001
cluster_server  a cluster of our service; service: the service with settings of the study
gunicorn        runs them; timed_apps, timing: report where the time went
"""
