"""Natural language inference: whether one sentence follows from another, contradicts it, or neither."""
