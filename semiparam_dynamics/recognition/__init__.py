"""Recognition of objects: from images to features to the class that a teacher named."""
