"""`python -m godwit`."""

from godwit.cli import main

main()
