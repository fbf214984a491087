"""Live studies: ask which arm to try, tell what came of it, for days, with many workers.

settings    what a study is asked to decide, and the policy that follows
events      what happened: trials asked, told, failed, expired; the study paused, resumed, stopped
ledger      the state that follows from the events, and the next arm to try
store       where events are kept: `memory`, or a database by `sql` (with its tables, connections and troubles)
outlook     what a study says of itself: recommendation and status; `rows`, its trials for data frames and files
study       `Study`, what users hold, made by `create`
"""
