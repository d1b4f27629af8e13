"""Identification practice: what to move, and parameters that a body can have."""
