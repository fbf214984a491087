"""The dashboard: pages made on the server, kept up to date by a few lines of script; nothing from elsewhere.

page        what all pages share: templates, errors in words, and who may see them; `files`, styles and scripts
sign_in     in and out; `listing`, all studies; `study`, one of them; `new`, the form that makes one
view        a study as its page shows it; `drawing`, its small pictures; `amounts`, numbers as people read them
routes      all of it put together
"""
