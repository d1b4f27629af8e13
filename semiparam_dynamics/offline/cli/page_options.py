"""Options of the verbs that show a page while nodes run; importing them loads no learner."""

from __future__ import annotations

import argparse

from semiparam_dynamics.base.errors import ConfigurationError


def add_page(parser: argparse.ArgumentParser, port: int, without: str) -> None:
    """Add ``--open``, ``--no-page`` (its help: `without`) and ``--page-port``; see `page_port`."""
    page = parser.add_mutually_exclusive_group()
    page.add_argument("--open", action="store_true", help="open the page in the browser")
    page.add_argument("--no-page", action="store_true", help=without)
    parser.add_argument(
        "--page-port",
        type=int,
        default=port,
        metavar="PORT",
        help="port of the page; if it is taken another one (default %(default)s)",
    )


def page_port(args: argparse.Namespace) -> int | None:
    """Return the port asked for; None: no page. Raises ConfigurationError."""
    if not 0 <= args.page_port < 65536:
        raise ConfigurationError(f"--page-port must be 0 .. 65535, not {args.page_port}")
    return None if args.no_page else args.page_port
