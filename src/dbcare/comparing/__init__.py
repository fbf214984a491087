"""`compare`: which prompt or model is best, on the same questions and for no more calls than the choice is worth.

compare          the function: checks its arguments, creates the study, and runs it
questions        the questions as blocks of a study: one by one, or in clusters
fingerprint      whether questions are the same as before
priced           `Priced`, by which a call reports what it cost; `meter`, what all calls cost and may cost
calls            one call: on the event loop or in a thread, with a time limit; `rate_limits`, how often
attempts         a call with retries, each of them metered; `scoring`, a score that must be a number within bounds
trial_calls      the calls of one trial: its questions and repeats, each answered and scored
runner           asks the study for trials, keeps several calls going, and tells the outcomes
own_thread       runs it all in a thread of its own, also where an event loop is running
progress         money, questions, the leader and its expected loss, while it runs
comparison       the result; `answer_rows`, who scored what at which price; `question_counts`, how many questions, and
                 what they cost; `table`, the arms; `report`, a page
"""
