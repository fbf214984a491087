"""The dashboard: pages rendered on the server and updated by a few lines of script; no third-party resources.

rendering    what all pages share: templates, errors as pages, and access; `files`, styles and scripts
sign_in      signing in and out; `listing`, all studies; `study`, one of them; `new`, the form that creates one
study_view   a study as its page shows it; `drawing` and `block_picture`, its pictures; `formatting`, numbers as people
             read them
routes       puts it all together
"""
