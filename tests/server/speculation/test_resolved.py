import json

from tests.server.speculation.settings import ngram


def test_it_is_described_in_one_line() -> None:
    assert ngram().describe() == (
        "speculation ngram, K = 4, n-grams of 5 to 5 tokens, verification standard (lossless)"
    )


def test_the_line_names_everything_that_is_on() -> None:
    line = ngram(
        num_speculative_tokens_per_batch_size=[[1, 4, 4], [5, 8, 0]],
        enable_adaptive_verification=True,
        rejection_sample_method="synthetic",
        synthetic_acceptance_length=3,
    ).describe()
    assert line.endswith(
        "verification synthetic (LOSSY), K by batch size 1-4:4 5-8:0, adaptive verification"
    )


def test_it_is_json_under_the_keys_of_vllm() -> None:
    said = ngram(rejection_sample_method="synthetic", synthetic_acceptance_rates=[1, 1, 0.5, 0])
    assert json.loads(json.dumps(said.as_dict())) == {
        "method": "ngram",
        "model": "ngram",
        "num_speculative_tokens": 4,
        "prompt_lookup_min": 5,
        "prompt_lookup_max": 5,
        "num_speculative_tokens_per_batch_size": None,
        "enable_adaptive_verification": False,
        "rejection_sample_method": "synthetic",
        "synthetic_acceptance_rates": [1, 1, 0.5, 0],
        "lossless": False,
    }
