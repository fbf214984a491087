"""Policies: when to pull which arm, when to stop, what to recommend.

registry             policies by name, the shipped ones and yours; `look`, how figures draw them
facts                what a policy may be told about a problem; `factory`, how it is built from that
policy               what every policy offers; `CustomPolicy` for your own functions
rule                 the form of every rule: four functions over a flat state
run                  a run stepped by hand; `wording`, how its sentences name arms and observations
epochs               rules in epochs: everything but `decide` is shared
elimination          the rule shared by DBCARE (dbcare), Racing and TwoArmConfidence (racing), BreakevenRacing
                     (breakeven_racing) and KnownGapSPRT (known_gap_sprt)
schedule             the rule shared by SequentialHalving and SuccessiveRejects (halving), Uniform, KnownGapOracle and
                     Guess (fixed)
keep                 Keep, for plans: always the same arm, such as what is in use today
breakeven_rounds     BreakevenRounds, for arms that share blocks, with its state and losses (rounds_state) and its rules
                     for moments (timed_rounds) and for lists of blocks (pooled_rounds)
adaptive             rules from the literature, each of a sampling part and a stopping part: LUCB, Track-and-Stop, ...
two_arm_likelihood   TwoArmLikelihood, the test of two Bernoulli arms, from parts of those
breakeven            Breakeven, with its rule (breakeven_rule) and its losses (breakeven_losses)
"""
