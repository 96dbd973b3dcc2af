"""The little glue between a task and Lightning: run folders, saved states, progress, resuming."""
