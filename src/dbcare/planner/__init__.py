"""The planner: what experimenting would cost and bring before any data, depending on the gap between the arms.

plan           `plan`, and the `Plan` it returns
options        the options of a plan, defined once
setting        what is planned: arms, costs, and how rewards vary
cells          which gaps, which ways to decide, and how many runs
strategies     the ways to decide that a plan compares
outlook        what to expect of one of them at one gap
study_recipe   the study that a plan leads to, as a command and as a line of Python
presentation   a plan as a table and in sentences; `figure`, as a figure
"""
