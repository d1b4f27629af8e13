"""Choosing the learner's hyperparameters from recordings of the robot that it shall learn."""
