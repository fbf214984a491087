"""Adaptive rules from the literature, each composed of a part that samples and a part that stops.

parts                what a part is, the tables that parts read, and how two of them become a rule
policy               what every policy of two parts shares
adaptive             Adaptive, any sampling with any stop that it makes sense with; `catalog` has the parts by name
rates                how wide confidence bounds must be, and how large a likelihood ratio
bernoulli_bounds     Kullback-Leibler divergence of Bernoulli distributions, and the confidence bounds that rest on it
likelihood           generalized likelihood ratios of two arms, and the stop that rests on them
proportions          the shares of pulls that tell the best arm apart soonest
lucb, kl_lucb        the leader and its strongest challenger, in turn, until their bounds separate
lil_ucb              the highest bound by the law of the iterated logarithm, until one arm has nearly all pulls
ugape                the arms that decide the smallest gap index, for a given error or a given budget
track_and_stop       pulls in the optimal proportions for the means so far
eb_tci               the leader and the challenger with the smallest likelihood ratio
ocba                 a budget allocated by signal-to-noise ratios
chick_frazier        the boundary of a stopping problem in continuous time; `two_arm_chick_frazier`, pair by pair
kg_star              the largest expected gain per cost over any number of pulls
kn                   indifference zone: elimination by first-stage variances, not a pair of parts
"""
