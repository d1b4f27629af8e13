"""`python -m semiparam_dynamics` is the command line `semiparam`."""

import sys

from semiparam_dynamics.cli.main import main

sys.exit(main())
