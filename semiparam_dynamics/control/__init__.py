"""Computed torque whose feed-forward comes from a learner, as far as its answers are trusted."""
