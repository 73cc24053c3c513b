"""python -m layerscope."""

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback before the command line is loaded

from layerscope.cli import main

main()
