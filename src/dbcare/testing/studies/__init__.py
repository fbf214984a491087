"""The checks of `StudySuite`, by subject.

counting    which arms are asked for, and when rewards count
leases      trials that expire, and asking again
units       units that come back
telling     outcomes, what they cost, and the trials on record
blocks      arms that share questions of a pool, or rounds
ending      limits, pausing, stopping and retiring
reporting   recommendation, status, history and explanations
refusals    invalid arguments, and the messages about them
checks      what the others share
"""
