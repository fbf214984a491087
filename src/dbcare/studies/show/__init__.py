"""What is shown of a study? Notebooks, figures, pages, progress, and exports."""
