"""Engines: evaluate a policy on a bandit, by simulation or exactly.

evaluate            one policy on one bandit, by the cheapest engine that applies
runs                the runs that answer a question best, which all who evaluate use, and their one interface
halt                a switch that ends simulations nobody waits for
evaluate_grid       a policy over a grid of gaps, exactly (two arms) or by pooled runs; `grid_evaluation`, the result
best_sprt           the known-gap SPRT with the best threshold
evaluation          `Evaluation`, the result; `build_evaluation` builds it, `estimates` has the statistics
outcomes            `Outcomes`, the results of simulated runs; `threads` spreads runs over threads
pooling             runs on one bandit serve others, other labels of the arms, and their own noise
plain_runs          runs on one bandit, and the mean over them
simulator           `Simulator`, a kernel bound to its arguments; `simulators` builds them
cheapest_simulator  the choice between direct and skip
direct              the direct engine: draws every pull
skip                the skip engine: draws many pulls at once
exact               the exact engine: no Monte Carlo
tallies             pulls and sums by arm at the end of a run
control_variate     the control variate for DBCARE on more than two Gaussian arms
draws               rewards inside compiled loops, `block_draws` those of blocks; `rng` has the random numbers
compile             plain Python rules and loops compiled to kernels that are cached on disk
"""
