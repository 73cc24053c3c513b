"""PyTorch: live modules, names of models, exported programs and files of weights."""
