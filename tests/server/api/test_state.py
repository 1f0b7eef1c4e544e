import httpx2
from tests.server.asking import chat
from tests.server.serving import NAME, AlphabetModel, api_over, running

from outrider.engine.tokenizer import Tokenizer
from outrider.server.api.settings import ApiSettings


def test_the_server_is_healthy_and_says_its_version(client: httpx2.Client) -> None:
    assert client.get("/health").status_code == 200
    told = client.get("/version").json()
    assert set(told) == {"version", "speculative_config"}
    assert told["speculative_config"] is None


def test_models_are_listed_under_all_their_names(tokenizer: Tokenizer) -> None:
    settings = ApiSettings(model_names=("first", "org/second"), speculation={"method": "ngram"})
    with (
        running(api_over(AlphabetModel(), tokenizer, settings=settings)) as server,
        httpx2.Client(base_url=server.url) as client,
    ):
        listed = client.get("/v1/models").json()
        assert [each["id"] for each in listed["data"]] == ["first", "org/second"]
        assert listed["data"][0]["max_model_len"] == 1_000
        assert client.get("/v1/models/org/second").json()["id"] == "org/second"
        assert client.get("/v1/models/third").status_code == 404
        assert client.get("/v1/models/").status_code == 404
        assert chat(client, model="org/second")["model"] == "first"
        assert client.get("/version").json()["speculative_config"] == {"method": "ngram"}


def test_metrics_count_requests_under_vllms_names(client: httpx2.Client) -> None:
    def ended() -> float:
        lines = client.get("/metrics").text.splitlines()
        [line] = [
            each
            for each in lines
            if each.startswith("vllm:request_success_total") and 'finished_reason="length"' in each
        ]
        assert f'model_name="{NAME}"' in line
        return float(line.split()[-1])

    before = ended()
    chat(client, max_tokens=2)
    assert ended() == before + 1


def test_the_document_names_every_address(client: httpx2.Client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    assert {"/v1/chat/completions", "/v1/completions", "/tokenize", "/health"} <= set(paths)
