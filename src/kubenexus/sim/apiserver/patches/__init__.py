"""The patch formats: each is a function (object, patch) -> object."""
