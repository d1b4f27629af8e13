"""What changed: a payload, friction, a sensor's offset or a contact, told apart and allowed for."""
