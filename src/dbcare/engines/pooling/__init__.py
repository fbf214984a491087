"""Pooled evaluation: runs on one bandit tell about others, about other labels of the arms, and about their own noise.

model       how likely a run is on each of several bandits, and under other labels of the arms
columns     one compiled pass over runs: weights, averaged losses, and martingales
estimates   estimates with standard errors, from what that pass adds up
runs        runs on several bandits, or on one bandit and averaged over labels
evaluate    draws runs until the estimate for every bandit is precise enough; decoys, on which rare runs are common

Four ideas reduce the variance; none of them needs to know how the policy works.

*Pooling.* A run that stopped with n_k pulls and sums S_k of arm k has, under bandit j, the likelihood
prod over k of exp(theta_jk S_k - psi_jk n_k), up to a factor that is the same for all bandits: rewards come from a
natural exponential family (Gaussian with a known sigma, Bernoulli), and neither the policy's choices nor its stopping
depend on the bandit. So the runs of all bandits serve bandit j with weights w_j = p_j / sum over m of a_m p_m, where
a_m is the share of the runs made on bandit m (the balance heuristic of Veach and Guibas 1995). Weights are at most
1/a_j, so a bandit's estimate is never much worse than that of its own runs alone. The a_m may also be other numbers
than the shares of runs, if then the runs on bandit m count a_m times their number by the share: the estimate stays
unbiased, and more runs can be added without weighting the old ones anew.

*Averaging over labels.* A policy that treats arms alike does not know which arm is which. Given its run, the labels
have a posterior distribution, and losses are averaged over it (Rao-Blackwell); p_j is the likelihood averaged over
labels. All labelings are used if there are at most MAX_LABELINGS, else those that exchange the best arm with another;
policies in epochs, whose runs are cheap, then keep the true labels.

*Martingales.* Under bandit j, X_k = S_k - n_k mean_jk and X_k^2 - n_k variance_jk have mean 0 when a run stops, for
any rewards; so do the second and third powers of X_k - X_l for two arms, less what their variances and third moments
add. Rewards without a likelihood have an exponential one in its place (`model.Tilt`). Multiplied by w_j, they are
control variates, with w_j itself, whose mean is 1. Coefficients are fitted on the
other half of the runs, so estimates are unbiased for a fixed number of runs, and their standard errors are honest.

*Decoys.* Runs may also be made on bandits for which no estimate is wanted, if these make a rare kind of run common.
They are a part of the mixture, and nothing else changes.
"""
