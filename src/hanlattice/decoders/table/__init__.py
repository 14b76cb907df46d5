"""Tables: a score for every pair of a first and a last character, and so for every span."""
