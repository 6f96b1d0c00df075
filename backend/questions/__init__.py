"""What is asked of a ledger: the questions as values, their parameters, and the study's scan.

`values` says what may be asked and what is counted, and `parameters` reads it from texts. `scan`
answers by walking every block; the index answers the same questions from tables of its own.
"""
