"""Defines the questions that can be asked of a ledger, and answers them with the study's scan.

    values        the three questions, and the parameters that ask them
    counts        what is counted to answer them, and the figures made of that
    groups        by what an answer may be broken down, and which groups are shown
    answer_types  what an answer is, also in JSON
    selection     which flights an export holds
    parameters    reads questions and selections from texts
    scan          answers by walking every block
    carriers      the codes and names of carriers

The index answers the same questions from tables of its own.
"""
