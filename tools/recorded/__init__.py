"""The cases of the regression record, a file for each part of the package."""
