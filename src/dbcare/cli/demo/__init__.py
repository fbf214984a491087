"""`dbcare demo`: `shop` simulates the study, `scene` and `chart` draw it, and `command` is the command."""
