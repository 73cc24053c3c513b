"""Times of layers that nobody ran: by micro-benchmarks of this machine, or by fitted figures."""
