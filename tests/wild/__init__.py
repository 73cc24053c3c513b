"""Models of packages that layerscope was not written for, against PyTorch's own counter."""
