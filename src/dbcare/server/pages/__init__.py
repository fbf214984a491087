"""The dashboard: pages made on the server, kept up to date by a few lines of script; nothing from elsewhere."""
