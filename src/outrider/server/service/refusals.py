"""Why a request is not taken in."""


class Refusal(Exception):
    """A request that the server does not take in at this moment, through no fault of its own."""


class QueueFull(Refusal):
    """As many answers run and wait as may; there is room again once some have ended."""


class Draining(Refusal):
    """The server ends once what it has begun is done."""


class EngineDown(Refusal):
    """The engine has failed, and answers nothing any more."""
