"""No part of the repository grows beyond its budget."""

from __future__ import annotations

import budget


def test_every_size_is_within_its_budget() -> None:
    sizes, allowed = budget.sizes(), budget.budget()
    assert sizes.keys() == allowed.keys()
    above = {name: size for name, size in sizes.items() if size > allowed[name]}
    assert not above, "raise tools/budget.yaml in a commit of its own that says what users gain"


def test_each_size_is_counted() -> None:
    import ast

    code = (
        "A, NAME, WIDE = 1, 'a', 2\nMOST = 3.5  # m\nPAIR = (1, -2)\nTABLE = {}\n"
        "@compiled\ndef f(a, b, *, c=1):\n    return a\n"
        "class C:\n    def g(self, x):\n        self.x = x\n        self.y, self.x = x, x\n"
    )
    found = budget.of_code([ast.parse(code)])
    assert found["numeric constants"] == 2 and found["compiled functions"] == 1
    assert found["parameters of a function"] == 3 and found["attributes of a class"] == 2
    assert found["lines of the longest function"] == 3
