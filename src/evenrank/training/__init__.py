"""Training rankers: recipes, training lists, losses, the trainer, model cards."""
