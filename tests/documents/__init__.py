"""Tests of the tables in documents."""
