"""Measures the service under load: scenarios, models, a baseline, experiments and reports.

This package imports nothing of the backend or the frontend, but for `in_process`, which measures
code, and `machine`. It talks to them over HTTP, like any other client, so that it can measure a
service on another machine and cannot be part of what it measures. It knows only the REST interface
of the service and the names of a flight's fields; `bench` also reads the titles of files, which the
service has as data.

`README.md` says where things are. Modules beside the packages: `open_workload`, `closed_workload`
and `interaction_workload` are run by Locust, and `wrk` by the benchmark; `questions` and
`scenarios` make what is asked; `baseline` is the study's way; `chains` imports what is measured;
`machine`, `machine_samples`, `processes` and `process_table` look at the machine; `tables`,
`number_format` and `grouping` are shared. `models` is pure, and the only part that the frontend may
import.
"""
