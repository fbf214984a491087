"""Live studies: ask which arm to try, tell the rewards, for days, with many workers.

study           `Study`, what users hold; `stored_study`, the one in a store
studies         create, load, find, list and delete studies by name
options         the options of a study, defined once; `settings`, what they amount to, and the policy that follows
trial           one observation to make; `ask`, who gets which; `leases`, how long it may take; `tell`, its outcome
assignment      which arm to show a visitor, in time, whatever the state of the study or the service
events          what happened; events are all that is stored
ledger          the state that follows from the events; `decision`, the policy's side of it, and
                `pool_decision` and `round_decision`, where arms share blocks; `ledger_summary`, as stored
synced_ledger   a ledger kept in step with its store; `transaction`, what is recorded in it
operations      changes of studies, carried out together in one commit
stores          where events are kept: in memory or a database, or wherever your own store keeps them
status          a study's state, as users hold it; `recommendation`, its arms and its choice; `standing`, it in one row;
                `report` and `arm_report` make them, and `verdicts` puts them into words
beliefs         what the rewards say about the arms; `paired_beliefs`, about arms that share blocks; `variety`, whether
                they are enough; `loss_curve`, over time
diagnostics     which assumptions the data contradict; `stalls`, why a study hands out nothing
arm_statistics  running statistics of an arm's rewards
export          the trials as rows, for data frames and files
interrupts      defers Ctrl-C during a commit
forks           fresh locks and closed files for child processes
block_log       a log of arms that share blocks; `block_replay`, what a policy would have done with it; `harness_log`,
                logs of lm-evaluation-harness
replay          what a policy would have done with data from before, also in other orders; `log_file` reads them
"""
