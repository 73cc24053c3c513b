"""Readers of protobuf, pickle and MAT-file encodings, independent of what is stored in them."""
