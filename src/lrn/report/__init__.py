"""Tables, plots, and the paper's printed figures."""
