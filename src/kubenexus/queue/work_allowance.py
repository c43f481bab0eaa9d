"""How much of the queue's own work one turn of the event loop may do: counted, not timed."""


class WorkAllowance:
    """So many lines may be asked, woken or moved, and gates asked, until it is renewed, once in each turn. Something
    that cannot be divided (a gang whose members are all asked about) may exceed it: the next one waits then."""

    def __init__(self, most: int) -> None:
        self.most = self.left = most

    def __bool__(self) -> bool:
        return self.left > 0

    def renew(self) -> None:
        self.left = self.most

    def spend(self, amount: int = 1) -> None:
        self.left -= amount
