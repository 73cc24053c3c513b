"""Tables in documents: their positions, the meaning of headings, and the figures of cells."""
