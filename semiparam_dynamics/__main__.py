"""`python -m semiparam_dynamics` is the command line `semiparam`."""

import sys

from semiparam_dynamics.offline.cli.main import main

sys.exit(main())
