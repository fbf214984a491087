"""Live studies: ask which arm to try, tell what came of it, for days, with many workers.

settings    what a study is asked to decide, and the policy that follows
events      what happened: trials asked, told, failed, expired; the study paused, resumed, stopped
ledger      the state that follows from the events, and the next arm to try
store       where events are kept: `memory`, or a database by `sql`
study       `Study`, what users hold
"""
