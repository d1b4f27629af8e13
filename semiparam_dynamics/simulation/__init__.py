"""A simulated arm in MuJoCo, with effects beyond rigid-body dynamics.

Needs the extra `sim` (mujoco, icub-models).
"""
