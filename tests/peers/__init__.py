"""Other counters of PyTorch models, each called as its makers say, and the models they are tried on."""
