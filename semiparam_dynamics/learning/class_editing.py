"""Classes that are renamed, merged and forgotten without learning anything again."""

from __future__ import annotations

from collections.abc import Hashable

from sklearn.utils.validation import check_is_fitted

from semiparam_dynamics.learning.class_recursion import ClassRecursion
from semiparam_dynamics.learning.labels import check_kind


class EditableClasses:
    """Part of a classifier whose `recursion_` keeps a sum for each class.

    Each of these raises LearningError, and changes nothing, where there is no such class.
    """

    recursion_: ClassRecursion

    def rename_class(self, label: Hashable, new: Hashable) -> None:
        """Call a class otherwise. Raises LearningError for no such class, or one of that name."""
        check_is_fitted(self, "recursion_")
        check_kind([new], self.recursion_.classes.labels)
        self.recursion_.classes.rename(label, new)

    def merge_classes(self, label: Hashable, into: Hashable) -> None:
        """Make one class' examples another's, exactly as if they had been taught so."""
        check_is_fitted(self, "recursion_")
        self.recursion_.held_out.renumber(self.recursion_.classes.merge(label, into))
        self.recursion_.note_change()

    def forget_class(self, label: Hashable) -> None:
        """Let a class go: its column of b, its count and its held-out examples leave.

        A keeps its inputs' second moments, from which alone no input can be told. The classes that
        remain are exactly what they would be had those examples been taught as none of them, with
        a code of zeros: they go on pulling the others' scores to zero where they were.
        """
        check_is_fitted(self, "recursion_")
        self.recursion_.held_out.renumber(self.recursion_.classes.forget(label))
        self.recursion_.note_change()
