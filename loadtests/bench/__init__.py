"""Measures what the project promises, as ratios: the benchmark behind `scripts/bench`.

benchmark     the command, and the table of rows; session: what all rows share
answer_times  rows 3, 11, 14, 15; footprint: 5, 6, 7, 12, 17; imports: 4; posting: 9, 16;
              throughput: the others
figures       compares with targets; measurements: keeps numbers in a file
growth        `--growth`: made_months makes its flights, growth_curves shows it
engines       DuckDB and Spark beside the service
"""
