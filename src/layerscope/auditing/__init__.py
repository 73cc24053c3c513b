"""Checks the figures of published tables: what explains each column, and the cells it does not."""
