"""Language models from a configuration: parameters, caches by runtime, formats, fit in a memory."""
