"""Tables in documents: where they stand, what their headings mean, and the figures of their cells."""
