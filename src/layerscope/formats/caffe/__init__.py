"""Caffe's networks, as text and as weights: one table of layer types for both."""
