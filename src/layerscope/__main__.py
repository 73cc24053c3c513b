"""python -m layerscope."""

from layerscope.cli import main

main()
