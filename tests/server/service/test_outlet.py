import asyncio

from outrider.records.request import FinishReason
from outrider.server.service.news import End, News
from outrider.server.service.outlet import Outlet

ENDED = End(FinishReason.STOP)


def test_news_that_wait_are_added_together() -> None:
    outlet = Outlet(2)
    for token, letter in enumerate("abc"):
        outlet.add(News(0, [token], letter))
    outlet.add(News(1, [9], "z"))
    first, second = asyncio.run(outlet.take())
    assert (first.token_ids, first.text, first.end) == ([0, 1, 2], "abc", None)
    assert (second.answer, second.text) == (1, "z")


def test_a_reader_waits_for_news() -> None:
    async def read() -> list[News]:
        outlet = Outlet(1)
        reading = asyncio.ensure_future(outlet.take())
        await asyncio.sleep(0)
        assert not reading.done()
        outlet.add(News(0, [1], "a"))
        return await reading

    assert asyncio.run(read())[0].text == "a"


def test_a_reader_of_the_whole_is_woken_once_all_answers_have_ended() -> None:
    async def read() -> list[News]:
        outlet = Outlet(2, whole=True)
        reading = asyncio.ensure_future(outlet.take())
        outlet.add(News(0, [1], "a"))
        outlet.add(News(1, [2], "b", end=ENDED))
        await asyncio.sleep(0)
        assert not reading.done()
        outlet.add(News(0, [3], "c", end=ENDED))
        return await reading

    news = asyncio.run(read())
    assert {each.answer: each.text for each in news} == {0: "ac", 1: "b"}


def test_after_the_end_there_is_nothing_more() -> None:
    outlet = Outlet(1)
    outlet.add(News(0, [1], "a", end=ENDED))
    outlet.add(News(0, [2], "too late"))
    [only] = asyncio.run(outlet.take())
    assert only.text == "a"
    assert asyncio.run(outlet.take()) == []


def test_the_end_of_the_last_answer_is_told_before_anybody_reads() -> None:
    told: list[str] = []
    outlet = Outlet(2, on_end=lambda: told.append("end"))
    outlet.add(News(0, end=ENDED))
    assert told == []
    outlet.add(News(1, end=ENDED))
    assert told == ["end"]
