"""The skip engine: draws many pulls at once.

two_arms        elimination between two Gaussian arms; exactly the law of drawing every pull
many_arms       elimination among more Gaussian arms; certified to 1e-9 per interval examined
first_drop      where the first arm is dropped in a jump whose two ends are known, for `many_arms`
crossing_pairs  the pairs of arms that may cross the boundary in such a jump, for `first_drop`
bridge          Gaussian bridges, which `two_arms`, `many_arms` and `first_drop` are built on
safe_jumps      elimination among arms with finitely many outcomes, at several caps; exact as well
sum_tables      tables for the sums of 2, 4, 8, ... such rewards, for `safe_jumps`
planned_epochs  policies whose rounds are planned in advance; exact for any rewards
binomial        binomial numbers, from which `planned_epochs` builds sums of discrete rewards
"""
