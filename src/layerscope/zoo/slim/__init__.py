"""TF-Slim networks with TensorFlow's SAME padding.

A node whose output is an end point bears the end point's name; what works towards it has that name
with a slash before its own.
"""
