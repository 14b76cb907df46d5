"""Connections to other libraries, one file each; none of them is imported unless it is used."""
