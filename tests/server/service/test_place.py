import asyncio
from dataclasses import replace

import pytest
from tests.engine.loops import CountingModel, ScriptedDrafter, counting_on, engine_of, request

from outrider.server.metrics.engine_load import EngineLoad
from outrider.server.metrics.serving_metrics import ServingMetrics
from outrider.server.service.news import News
from outrider.server.service.refusals import Draining, QueueFull
from outrider.server.service.service import SHUT_DOWN, Service


def service_of(capacity: int) -> Service:
    model = CountingModel()
    engine, _ = engine_of(model, ScriptedDrafter(counting_on), 0, clock=model.clock)
    metrics = ServingMetrics(
        model_name="m", k=0, load=lambda: EngineLoad.of(engine.scheduler), clock=model.clock
    )
    engine.loop = replace(engine.loop, recorder=metrics)
    return Service(engine, metrics, capacity=capacity, clock=model.clock)


def test_there_is_room_for_so_many_answers_and_no_more() -> None:
    service = service_of(3)
    first = service.reserve(2)
    with pytest.raises(QueueFull, match="2 answers run or wait and 2 more"):
        service.reserve(2)
    service.reserve(1)
    first.close()
    first.close()
    assert service.answers == 1
    service.reserve(2)


def test_a_place_is_free_once_its_answers_have_ended_read_or_not() -> None:
    async def ask() -> list[News]:
        service = service_of(1)
        service.start()
        outlet = service.reserve(1).run([request([0], 3)], whole=True)
        await service.drain(30)
        assert service.answers == 0
        news = await outlet.take()
        service.stop()
        return news

    [news] = asyncio.run(ask())
    assert news.token_ids == [1, 2, 3]


def test_nothing_new_comes_in_while_it_drains() -> None:
    async def ask() -> None:
        service = service_of(1)
        await service.drain(30)
        with pytest.raises(Draining):
            service.reserve(1)

    asyncio.run(ask())


def test_a_place_given_up_before_its_request_was_read_takes_none() -> None:
    async def ask() -> None:
        service = service_of(1)
        place = service.reserve(1)
        await service.drain(0.001)
        assert service.answers == 0
        with pytest.raises(Draining, match=SHUT_DOWN):
            place.run([request([0], 3)], whole=True)

    asyncio.run(ask())
