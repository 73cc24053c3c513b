"""Bytes and text as structures that know nothing of networks."""
