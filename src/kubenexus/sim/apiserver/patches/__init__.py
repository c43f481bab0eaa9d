"""Changes of objects as clients write them: each is a function (object, patch) -> object."""
