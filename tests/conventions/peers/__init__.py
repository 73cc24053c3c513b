"""Other counters of PyTorch models, called as their makers say, and models they are tried on."""
