from outrider.server.metrics.recent_hits import MOST_REQUESTS, RecentHits


def test_the_rate_is_tokens_found_over_tokens_looked_for() -> None:
    hits = RecentHits()
    assert hits.rate == 0.0
    hits.add(300, 0)
    hits.add(100, 100)
    assert hits.rate == 0.25


def test_only_the_most_recent_requests_count() -> None:
    hits = RecentHits()
    hits.add(1_000_000, 0)
    for _ in range(MOST_REQUESTS):
        hits.add(10, 5)
    assert hits.rate == 0.5
