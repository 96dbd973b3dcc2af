"""Named entity recognition: who, where, which organisation a text speaks of (CoNLL-2003)."""
