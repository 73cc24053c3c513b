"""Tables of a document as layers: kinds and sizes of rows, what a row follows, what it counts."""
