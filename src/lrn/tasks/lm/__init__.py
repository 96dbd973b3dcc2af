"""Language modelling: how well a unit predicts the next word (Penn Treebank, WikiText-2)."""
