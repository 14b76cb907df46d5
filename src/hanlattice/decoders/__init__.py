"""Ways to write the answer down: ``scores(h)``, ``loss``, ``decode``."""
