"""Detection of changes: payload, friction, a sensor's offset or a contact, named and corrected."""
