"""The experiments of the papers: every table and figure, measured beside published."""
