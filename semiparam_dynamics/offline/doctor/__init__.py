"""Faults of a recording, found before anything is learned from it."""
