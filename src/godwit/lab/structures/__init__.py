"""The structure experiments of the thesis (spec content-routing 4): what covering costs in posets, forests and mergers.

settings, sources    what is run, and what the interfaces of a table say
subjects             the structures on trial, counting
routing, merging     E1 to E5, and E12 and E13
truth                what must hold whatever a structure says
rows, evidence       what was measured, and what is asked of it
claims, report       the verdicts, and how they are told
"""
