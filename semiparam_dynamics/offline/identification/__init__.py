"""Exciting motions, and inertial parameters that physical bodies can have."""
