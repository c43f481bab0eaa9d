"""The API client: credentials, calls, and lists that continue as watches. Decides nothing."""
