"""Training rankers on query groups: recipes, data, losses, the trainer, model cards."""
