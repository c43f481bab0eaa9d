"""`python -m kubenexus` is the `kubenexus` command, for when it is not on the PATH."""

from kubenexus.cli import main

if __name__ == "__main__":
    main(prog_name="kubenexus")
