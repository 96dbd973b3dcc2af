"""Document classification: what a text is about, or what its writer thinks of it (Zhang et al. 2015)."""
