"""The web page: its files, and the server of `kubenexus web`, which asks with the rights of its user."""
