"""Graphs as models that an engine can run: a table of writers by op, and the model around them."""
