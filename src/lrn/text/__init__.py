"""Text for models to read."""
