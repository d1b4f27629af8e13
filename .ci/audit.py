"""Known vulnerabilities of what is installed beside this interpreter, by pip-audit.

Exits with 1 where there are any, with 2 where none could be looked up, and with 0 where there are
none.
"""

from __future__ import annotations

import json
import subprocess
import sys

COMMAND = ["-m", "pip_audit", "--local", "--skip-editable", "--progress-spinner", "off"]
LONGEST = 300  # s for the whole of it
NOTHING = 2  # the exit code where nothing could be looked up


def verdict(report: str) -> tuple[str, int]:
    """A sentence and the exit code, of pip-audit's JSON; it is empty where nothing was reached."""
    try:
        packages = json.loads(report)["dependencies"]
    except (ValueError, KeyError):
        return "nothing was audited: the database of vulnerabilities can't be reached", NOTHING
    known = [package for package in packages if "vulns" in package]
    if not known:  # such as an index that has the packages, but nothing on their vulnerabilities
        return f"nothing was audited: the database knows none of {len(packages)} packages", NOTHING
    found = [
        f"{package['name']} {package['version']}: {flaw['id']}, mended in "
        f"{', '.join(flaw.get('fix_versions', ())) or 'no version yet'}"
        for package in known
        for flaw in package["vulns"]
    ]
    beside = f"{len(packages) - len(known)} others aren't in the database"
    if found:
        return "\n".join([f"known vulnerabilities; {beside}", *found]), 1
    return f"no known vulnerability in {len(known)} packages; {beside}", 0


def main() -> int:
    """Returns the exit code."""
    command = [sys.executable, *COMMAND, "--timeout", "10", "-f", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST)
        sentence, code = verdict(done.stdout)
    except subprocess.TimeoutExpired:
        sentence, code = "nothing was audited: the database answers too slowly", NOTHING
    print(f"audit: {sentence}")
    return code


if __name__ == "__main__":
    sys.exit(main())
