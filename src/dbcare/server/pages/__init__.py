"""The dashboard: pages rendered on the server, kept up to date by a few lines of script; nothing from elsewhere.

rendering    what all pages share: templates, errors in words, and who may see them; `files`, styles and scripts
sign_in      signing in and out; `listing`, all studies; `study`, one of them; `new`, the form that creates one
study_view   a study as its page shows it; `drawing`, its small pictures; `formatting`, numbers as people read them
routes       all of it put together
"""
