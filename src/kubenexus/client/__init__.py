"""The way to the API server: who we are, one call, a list that goes on as a watch. It carries; it decides nothing."""
