"""Live studies: ask which arm to try, tell what came of it, for days, with many workers.

settings    what a study is asked to decide, and the policy that follows
events      what happened: trials asked, told, failed, expired; the study paused, resumed, stopped
ledger      the state that follows from the events; `decision`, the policy's side of it; `tally`, what was counted
book        a ledger kept in step with its store; `answers`, what an answer means
store       where events are kept: `memory`, or a database by `sql` (with its tables, connections and troubles)
outlook     what a study says of itself: recommendation and status; `guards`, what its data say against its settings
rows        its trials, for data frames and files
study       `Study`, what users hold, made by `create`
logged      what a policy would have done with data from before; `logfile` reads them
"""
