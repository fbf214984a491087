"""`dbcare demo`: `shop`, the study that is simulated; `scene` and `chart`, how it is drawn; `command`, the command."""
