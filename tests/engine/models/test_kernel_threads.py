import gc
import threading
import weakref

from outrider.engine.models.kernel_threads import KernelThreads

PATIENCE_S = 10.0


def test_each_thread_calls_with_its_number() -> None:
    threads, together, seen = KernelThreads(3), threading.Barrier(4), set[tuple[int, str]]()

    def meet(number: int, word: str) -> None:
        seen.add((number, word))
        together.wait(PATIENCE_S)  # so none of them runs twice

    for word in ("first", "again"):
        threads.run(meet, word)
        together.wait(PATIENCE_S)
    assert seen == {(number, word) for number in (1, 2, 3) for word in ("first", "again")}


def test_they_end_with_whoever_had_them_and_keep_nothing() -> None:
    class Thing: ...

    before = set(threading.enumerate())
    threads, thing, done = KernelThreads(1), Thing(), threading.Event()
    (thread,) = set(threading.enumerate()) - before
    threads.run(lambda _number, _thing: done.set(), thing)
    assert done.wait(PATIENCE_S)
    kept = weakref.ref(thing)
    del thing, threads
    gc.collect()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert kept() is None


def test_none_are_none() -> None:
    KernelThreads(0).run(print, "nobody says this")
