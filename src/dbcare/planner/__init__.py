"""The planner: what experimenting would cost and bring before any data, depending on the gap between the arms.

plan           `plan`, and the `Plan` it returns
options        the options of a plan, defined once
arguments      checks of what a plan is given
setting        what is planned: arms, costs, and how rewards vary
cells          which gaps, and which ways to decide
runs           the runs of all cells: pooled, and spent on what gets known soonest
precision      how well a figure is known
strategies     the ways to decide that a plan compares
outlook        what to expect of one of them at one gap
study_recipe   the study that a plan leads to, as a command and as a line of Python
table          a plan as a table, each figure with its error; `figure`, as a figure
advice         what follows, in sentences; `presentation`, everything together
"""
