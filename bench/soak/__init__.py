"""A long life in a short time: hundreds of thousands of pods come, run, end and are deleted while nodes come and go.
A scheduler has to be as small after the last of them as after half. `make soak`; the figures are in docs/soak.md."""
