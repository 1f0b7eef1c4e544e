import gc
import threading
import weakref

from outrider.engine.models.helpers import Helpers

PATIENCE_S = 10.0


def test_each_helper_calls_with_its_number() -> None:
    helpers, together, seen = Helpers(3), threading.Barrier(4), set[tuple[int, str]]()

    def meet(number: int, word: str) -> None:
        seen.add((number, word))
        together.wait(PATIENCE_S)  # so none of them runs twice

    for word in ("first", "again"):
        helpers.run(meet, word)
        together.wait(PATIENCE_S)
    assert seen == {(number, word) for number in (1, 2, 3) for word in ("first", "again")}


def test_they_end_with_whoever_had_them_and_keep_nothing() -> None:
    class Thing: ...

    before = set(threading.enumerate())
    helpers, thing, done = Helpers(1), Thing(), threading.Event()
    (thread,) = set(threading.enumerate()) - before
    helpers.run(lambda _number, _thing: done.set(), thing)
    assert done.wait(PATIENCE_S)
    kept = weakref.ref(thing)
    del thing, helpers
    gc.collect()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert kept() is None


def test_no_helper_is_none() -> None:
    Helpers(0).run(print, "nobody says this")
