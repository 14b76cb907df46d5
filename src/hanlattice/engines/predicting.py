"""What engines that only predict have in common."""


class PredictingEngine:
    """An engine without a training mode, whose model predicts one tag for each character."""

    def is_nested(self, convention: str = "") -> bool:
        """False: tags cannot express spans inside spans."""
        return False

    def eval(self) -> None:
        """Does nothing: there is no training mode."""
