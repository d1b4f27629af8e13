"""A simulated arm in MuJoCo, with the effects that rigid-body dynamics lacks.

Needs the extra `sim` (mujoco, icub-models).
"""
