"""Policies: when to pull which arm, when to stop, what to recommend.

rule.py         the form of every rule: four functions over a flat state
rounds.py       rules in rounds: all but `decide` is shared
elimination.py  the shared rule of DBCARE (dbcare.py), Racing and TwoArmConfidence (racing.py)
schedule.py     the shared rule of SequentialHalving, SuccessiveRejects (halving.py), Uniform, KnownGapOracle
                and Guess (fixed.py)
policy.py       what every policy offers; CustomPolicy for your own
run.py          a run stepped by hand
"""
