"""Coming from nn.LSTM and nn.GRU: swapping layers, imitating a trained model, int8 weights."""
