"""What the symbols of a report stand for, each with its denominator."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Definition:
    """A symbol or column of the report, and its meaning."""

    symbol: str
    meaning: str


DEFINITIONS = (
    Definition("S, coverage", "verification steps, which had a draft; their share of decode steps"),
    Definition("D, A", "draft tokens proposed and accepted; the target's own token is in neither"),
    Definition("A/D", "draft acceptance rate: accepted over drafted tokens"),
    Definition("M", "mean acceptance length, 1 + A/S: tokens per verification step, own included"),
    Definition("H_j", "verification steps that accepted exactly j; H_0/S nothing, H_K/S all of K"),
    Definition(
        "survival",
        "share of steps that reach a position, by product limit: at risk are the steps that"
        " accepted all before it and drafted there",
    ),
    Definition(
        "naive",
        "tail ratio over all S, where drafts too short to get there count as failed; 'both' where"
        " it is the same as survival",
    ),
    Definition("M̂", "tokens per decode step, those without a draft included, over the pairs"),
    Definition("ρ", "step inflation: mean decode step of the arm over that of no speculation"),
    Definition("ρ verify", "the same, of only the arm's steps that had a draft"),
    Definition(
        "speed-up",
        "time per token of no speculation over the arm's, M̂ / ρ; both of decoding, over requests"
        " that both arms finished (pairs); 1 is break-even",
    ),
    Definition(
        "intervals",
        "bootstrap over prompts, a prompt with all its repeats being one cluster; not corrected"
        " for picking the best of several arms",
    ),
)
