"""Parameters that were given up, by their dotted names, and what replaces each of them."""

from __future__ import annotations

COLUMN = "the columns of friction and offsets are always there"
JUDGED = "each kind of friction is used where it is seen to help"
WIDTH = "inputs are standardized; `length_scale` is the width of all"
TRUST = "the residual's trust has one setting, which was measured on six arms"

REMOVED: dict[str, str] = {
    # inverse_dynamics
    "real_bodies": "~/inertial_parameters are always the nearest that bodies can have",
    "autoload": "`model_file` is always resumed from; name another one to begin anew",
    "viscous": COLUMN,
    "coulomb": COLUMN,
    "offset": COLUMN,
    "sensor_offset": "a wrench always has constant columns",
    "stribeck_velocity": JUDGED,
    "asymmetry": JUDGED,
    "presliding": JUDGED,
    "error_horizon": "standard deviations always follow the last 20 s",
    "rigid_body.unusual": "beyond 4 deviations samples count less; see `output.gate`",
    "rigid_body.forgetting": "a memory forgets what newer motion shows again",
    "nystrom.position_width": WIDTH,
    "nystrom.velocity_width": WIDTH,
    "nystrom.rigid_body_width": WIDTH,
    "nystrom.joint_length_scale": "the joints' own width is 0.14",
    "random_fourier.position_width": WIDTH,
    "random_fourier.velocity_width": WIDTH,
    "random_fourier.acceleration_width": WIDTH,
    "random_fourier.rigid_body_width": WIDTH,
    "random_fourier.window": "inputs are standardized by the first 10 s of motion",
    "random_fourier.memory": "a residual that forgets is `nystrom`, see `nystrom.memory`",
    "trust.memory": TRUST,
    "trust.threshold": TRUST,
    "trust.learning": TRUST,
    "output.gate_longest": "what stays beyond `output.gate` for 5 s is learned",
    "filter.prefilter_ratio": "the low-pass before differences follows `filter.cutoff`, times 4",
    "filter.max_gap": "a pause of 0.5 s starts the filters anew",
    "filter.learn_ratio": "`learning_share` bounds what learning takes of a core",
    "samples.clock_jump": "stamps that go back by over 1 s are a restarted clock",
    "samples.stuck_motion": "it is 0.05 rad or m; see `samples.stuck_after`",
    "samples.saturation_after": "it is 6 readings; name the limits, `samples.saturation`",
    "samples.saturation_share": "name the limits themselves, `samples.saturation`",
    "samples.pair_tolerance": "it is 20 ms; late topics need `samples.pair_wait`",
    "changes.false_alarms": "a false alarm is expected every ten hours",
    "changes.payload_mass": "payloads of any mass are estimated",
    "changes.payload_reach": "it is 0.3 m, from `changes.payload_link`",
    "changes.friction": "`changes.detect` includes friction",
    "changes.offset": "`changes.detect` includes offsets",
    "changes.contact_longest": "a deviation that lasts for 10 s is learned",
    # payload_bridge
    "agreeing": "three estimates in a row must agree",
    "quiet": "an estimate counts as settled after 1.5 s without a newer one",
    "step_period": "steps are 0.2 s apart at least; step_share bounds each",
    "follow": "the estimate is given 3 s to follow a change of the driver's load",
}
