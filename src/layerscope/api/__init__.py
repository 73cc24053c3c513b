"""The functions of the public API, one file per task; the only room that calls every stage."""
