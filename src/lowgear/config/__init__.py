"""What defines a run: tasks, recipes, the resolved configuration and the directory that keeps it."""
