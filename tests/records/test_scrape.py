from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.errors import UnreadableSource
from outrider.records.reading import AcceptanceRecord, BadRecord, NoMetrics, Reading, Scope
from outrider.records.scrape import (
    Scrape,
    difference,
    read_scrape,
    scrape_url,
    since_start,
)
from outrider.records.validation import validated

CASES = Path(__file__).parent / "cases" / "prometheus"
BEFORE = (CASES / "vllm-0.32-ngram-before.prom").read_text()
AFTER = (CASES / "vllm-0.32-ngram-after.prom").read_text()


def page(
    engine: int,
    drafts: int,
    drafted: int,
    positions: tuple[int, ...],
    *,
    created: float | None = 1756736798.7,
    model: str = "m",
    suffix: str = "_total",
) -> str:
    labels = f'engine="{engine}",model_name="{model}"'
    name = "vllm:spec_decode_num_"
    lines = [
        f"{name}drafts{suffix}{{{labels}}} {float(drafts)}",
        f"{name}draft_tokens{suffix}{{{labels}}} {float(drafted)}",
        f"{name}accepted_tokens{suffix}{{{labels}}} {float(sum(positions))}",
        *(
            f'{name}accepted_tokens_per_pos{suffix}{{{labels},position="{position}"}} {count}'
            for position, count in enumerate(positions)
        ),
    ]
    if created is not None:
        lines.append(f"{name}drafts_created{{{labels}}} {created}")
    return "\n".join(lines) + "\n"


def only(readings: list[Reading]) -> AcceptanceRecord:
    (reading,) = readings
    assert isinstance(reading, AcceptanceRecord)
    return validated(reading)


def test_counters_of_eight_engines_are_added_and_their_creation_times_are_not() -> None:
    drafts = (22, 15, 29, 20, 25, 24, 27, 26)
    record = only(
        since_start(read_scrape("".join(page(e, n, 2 * n, (n, 1)) for e, n in enumerate(drafts))))
    )
    assert (record.steps, record.drafted, record.accepted, record.k) == (188, 376, 196, 2)
    assert record.histogram == (0, 180, 8)
    assert (record.scope, record.requests) == (Scope.SERVER, None)


def test_a_scrape_alone_is_what_the_server_did_since_it_started() -> None:
    record = only(since_start(read_scrape(AFTER)))
    assert record.histogram == (3325 - 1181, 1181 - 856, 856 - 668, 668)
    assert (record.steps, record.accepted, record.drafted) == (3325, 2705, 9877)
    assert record.tags == {"model": "smollm2-135m-instruct"}


def test_two_scrapes_give_what_happened_in_between() -> None:
    record = only(difference(read_scrape(BEFORE), read_scrape(AFTER)))
    assert (record.scope, record.steps, record.accepted) == (Scope.INTERVAL, 3183, 2570)
    assert (record.drafted, record.k) == (9459, 3)
    assert record.histogram == (2057, 314, 180, 632)
    assert "counters_reset" not in record.tags


def test_two_states_of_the_same_counters_have_one_name_and_a_restart_has_another() -> None:
    names = [only(since_start(read_scrape(text))).snapshot for text in (BEFORE, AFTER)]
    assert names[0] == names[1]
    assert names[0] is not None
    restarted = only(since_start(read_scrape(page(0, 5, 5, (1,), created=1.8e9))))
    earlier = only(since_start(read_scrape(page(0, 5, 5, (1,)))))
    assert restarted.snapshot != earlier.snapshot


@pytest.mark.parametrize(
    ("created", "drafts_after"),
    [(1.8e9, 150), (None, 40)],
    ids=["created at another moment", "a value fell"],
)
def test_an_engine_that_restarted_counts_from_its_restart(
    created: float | None, drafts_after: int
) -> None:
    steady = [page(1, 10, 20, (6, 4)), page(1, 30, 60, (16, 8))]
    before = page(0, 100, 200, (90, 80), created=None if created is None else 1.7e9) + steady[0]
    after = page(0, drafts_after, 80, (20, 10), created=created) + steady[1]
    record = only(difference(read_scrape(before), read_scrape(after)))
    assert record.steps == drafts_after + 20
    assert record.accepted == 30 + 14
    assert record.tags["counters_reset"] == "yes"


def test_nothing_drafted_is_not_an_acceptance_of_zero() -> None:
    assert since_start(read_scrape(page(0, 0, 0, (0, 0)))) == [
        NoMetrics("nothing was drafted since the server started")
    ]
    assert difference(read_scrape(AFTER), read_scrape(AFTER)) == [
        NoMetrics("nothing was drafted between the two scrapes")
    ]


def test_models_are_kept_apart() -> None:
    text = page(0, 5, 10, (4, 1), model="a") + page(0, 7, 14, (3, 2), model="b")
    readings = since_start(read_scrape(text))
    assert [(r.tags["model"], r.steps) for r in readings if isinstance(r, AcceptanceRecord)] == [
        ("a", 5),
        ("b", 7),
    ]


def test_engines_with_different_numbers_of_positions_are_not_added() -> None:
    text = page(0, 5, 10, (4, 1)) + page(1, 7, 21, (3, 2, 1))
    readings = since_start(read_scrape(text))
    assert [r.k for r in readings if isinstance(r, AcceptanceRecord)] == [2, 3]


def test_positions_that_rise_or_do_not_sum_give_no_histogram() -> None:
    for positions, accepted in (((2, 3), 5), ((3, 2), 4)):
        text = page(0, 5, 10, positions).replace(
            f'accepted_tokens_total{{engine="0",model_name="m"}} {float(sum(positions))}',
            f'accepted_tokens_total{{engine="0",model_name="m"}} {float(accepted)}',
        )
        record = only(since_start(read_scrape(text)))
        assert (record.histogram, record.k, record.accepted) == (None, 2, accepted)


def test_positions_that_are_not_counted_from_0_leave_k_unknown() -> None:
    text = "\n".join(
        line for line in page(0, 5, 9, (4, 1)).split("\n") if 'position="0"' not in line
    )
    record = only(since_start(read_scrape(text)))
    assert (record.k, record.histogram, record.steps, record.accepted) == (None, None, 5, 5)


def test_names_without_total_are_read() -> None:
    assert only(since_start(read_scrape(page(0, 5, 10, (4, 1), suffix="")))).steps == 5


@pytest.mark.parametrize("value", ["NaN", "-1.0", "2.5", "1e30", "9" * 400, "+Inf", "", "twelve"])
def test_a_damaged_line_is_listed_with_its_number_and_the_rest_is_used(value: str) -> None:
    text = page(0, 5, 10, (4, 1)) + page(1, 6, 12, (3, 3))
    damaged = text.replace(
        'drafts_total{engine="1",model_name="m"} 6.0',
        f'drafts_total{{engine="1",model_name="m"}} {value}',
    )
    scrape = read_scrape(damaged)
    assert [number for number, _ in scrape.bad] == [7]
    bad, record = since_start(scrape)
    assert bad == BadRecord("the number of drafts of engine 1 of m is missing")
    assert isinstance(record, AcceptanceRecord)
    assert (record.steps, record.accepted) == (5, 5)


def test_a_count_whose_earlier_state_is_damaged_is_not_taken_as_all_new() -> None:
    before = page(0, 100, 200, (90, 80)).replace("drafts_total{", "drafts_total{=")
    readings = difference(read_scrape(before), read_scrape(page(0, 110, 220, (95, 81))))
    assert not any(isinstance(reading, AcceptanceRecord) for reading in readings)
    assert isinstance(readings[0], BadRecord)
    assert readings[0].reason.startswith("line 1 of the first scrape")


def test_a_first_scrape_without_counters_gives_no_difference() -> None:
    (reading,) = difference(read_scrape(""), read_scrape(AFTER))
    assert isinstance(reading, NoMetrics)


def test_sglang_has_running_values_and_no_counts() -> None:
    text = (
        'sglang:spec_accept_length{model_name="m",tp_rank="0"} 2.53\n'
        'sglang:spec_accept_rate{model_name="m",tp_rank="0"} 0.51\n'
        'sglang:spec_verify_calls_total{model_name="m"} 812.0\n'
    )
    (reading,) = since_start(read_scrape(text))
    assert isinstance(reading, NoMetrics)
    assert "spec_accept_length 2.53, spec_accept_rate 0.51" in reading.reason


def client(answer: httpx2.Response | Exception) -> httpx2.Client:
    def respond(request: httpx2.Request) -> httpx2.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer if request.url.path == "/metrics" else httpx2.Response(404)

    return httpx2.Client(transport=httpx2.MockTransport(respond))


@pytest.mark.parametrize("url", ["http://host:8000", "http://host:8000/", "http://host/metrics"])
def test_the_page_is_fetched_from_metrics_where_the_address_has_no_path(url: str) -> None:
    with client(httpx2.Response(200, text=AFTER)) as http:
        assert scrape_url(url, http) == read_scrape(AFTER)


@pytest.mark.parametrize(
    "answer",
    [httpx2.Response(500), httpx2.ConnectError("refused"), httpx2.ReadTimeout("slow")],
    ids=["status", "refused", "timeout"],
)
def test_an_address_without_such_a_page_is_a_named_failure(
    answer: httpx2.Response | Exception,
) -> None:
    with client(answer) as http, pytest.raises(UnreadableSource, match="check the address"):
        scrape_url("http://host:8000", http)


def test_an_address_that_is_none_is_a_named_failure() -> None:
    with client(httpx2.Response(200)) as http, pytest.raises(UnreadableSource):
        scrape_url("http://host:port/", http)


COUNTS = st.integers(0, 50)


@given(st.lists(st.tuples(COUNTS, COUNTS, COUNTS), min_size=1, max_size=4))
def test_the_difference_of_growing_counters_is_their_growth(
    growth: list[tuple[int, int, int]],
) -> None:
    def at(factor: int) -> Scrape:
        return read_scrape(
            "".join(
                page(
                    e,
                    7 + factor * (a + b + c),
                    99 * (1 + factor),
                    (5 + factor * (b + c), 2 + factor * c),
                )
                for e, (a, b, c) in enumerate(growth)
            )
        )

    (reading,) = difference(at(0), at(1))
    zero, one, two = (sum(counts) for counts in zip(*growth, strict=True))
    if zero + one + two == 0:
        assert isinstance(reading, NoMetrics)
    else:
        assert isinstance(reading, AcceptanceRecord)
        assert reading.histogram == (zero, one, two)


@given(
    st.text()
    | st.builds(
        lambda a, b, c: AFTER[:a] + b + AFTER[c:],
        st.integers(0, 6000),
        st.text(max_size=9),
        st.integers(0, 6000),
    )
)
def test_no_text_raises(text: str) -> None:
    scrape = read_scrape(text)
    assert since_start(scrape)
    assert difference(read_scrape(BEFORE), scrape)
    assert difference(scrape, read_scrape(AFTER))
