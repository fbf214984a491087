"""The paper's theory as functions: budgets, confidence, bounds on pulls, lower and upper bounds on the risk.

Statement of the paper (Harding & Kandasamy, NeurIPS 2025)         function
-----------------------------------------------------------------  ------------------------------------
Theorem 1 (Section 3.1), any policy, misidentification             lower.misidentification
Theorem 2 (Section 3.1), DBCARE, misidentification                 upper.misidentification
Theorem 3 (Section 3.2), any policy, simple regret                 lower.simple_regret
    its minimax part                                               lower.simple_regret_minimax
Theorem 4 (Section 3.2), DBCARE, simple regret                     upper.simple_regret
    its minimax part                                               upper.simple_regret_minimax
Corollaries of Theorems 1 and 3 (Sections 2.1, 2.2), two arms      lower.two_arm
Corollaries of Theorems 2 and 4 (Sections 2.1, 2.2), two arms      upper.two_arm, upper.two_arm_minimax
    the piecewise bounds in their proofs (Appendix D)              upper.two_arm_curve
    the gap where the pieces meet                                  upper.transition_gap
Propositions 1 and 2 (Sections 2.1, 2.2), the oracle's pulls       budgets.oracle_pulls
    the oracle's bounds                                            upper.oracle, upper.oracle_minimax
    the sharper bounds in their proofs (Appendix C)                upper.oracle_curve
N* and delta of Theorems 2 and 4 and their corollaries             budgets.epoch_budget, .confidence
Algorithm 1, the last epoch and the maximum number of pulls        budgets.last_epoch, .most_pulls
Lemma 4 (Appendix D), total number of pulls                        budgets.expected_pulls
Lemma 5, the gap above which an arm is dropped in time             elimination.separating_gap
    how many arms may be left, and the pulls of all others         elimination.undecided_arms, .pulls_until_dropped
Lemma 6, the probability of a wrong choice                         elimination.wrong_choice
Lemma 7, the simple regret of the choice, corrected                elimination.regret_of_choice
Guessing without data, the figure of bounds (Section 2)            upper.guess, upper.two_arm_guess

Our own additions: bounds for BreakevenRacing in `breakeven`, the normal losses that it weighs in `normal`, which
also has the same losses for an estimated standard deviation.

The paper's LaTeX source numbers nothing by hand: theorems, propositions and lemmas are counted in order of appearance,
and corollaries are named after their theorems.

Import the modules by name: `from dbcare.theory import lower, upper`. Arguments broadcast as in NumPy;
scalars give scalars. Units: `gap`, `sigma` and `bound` are in units of reward, `complexity` in 1/reward^2,
`cost` in units of the loss per pull (a probability for misidentification, reward for simple regret). Every
risk is in units of the loss.
"""
