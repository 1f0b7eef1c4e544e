"""What every number of the acceptance report means, each with its denominator."""

from outrider.report.definitions import Definition

DEFINITIONS = (
    Definition(
        "steps",
        "S, verification steps: target passes that judged a non-empty draft of one request",
    ),
    Definition("K", "configured maximum draft length; different K are never added"),
    Definition(
        "drafted",
        "D, draft tokens proposed to the target, less those that a grammar removed; the target's"
        " own token is not among them",
    ),
    Definition(
        "accepted",
        "A, accepted draft tokens, counted up to the first rejection of a step and no further; the"
        " target's own token is not among them",
    ),
    Definition("wasted", "D − A, drafted tokens that were not accepted"),
    Definition(
        "M",
        "mean acceptance length by step, 1 + A/S: tokens per verification step, the target's own"
        " included; over all S, so long answers weigh more",
    ),
    Definition(
        "M by request",
        "mean of 1 + A/S over the requests that had a step, each weighing the same; where it"
        " differs from M, length and acceptance go together",
    ),
    Definition(
        "A/D",
        "draft acceptance rate: accepted over drafted tokens. It falls as K grows, since later"
        " positions are reached less often, and says nothing of speed by itself",
    ),
    Definition("H_j", "acceptance histogram: verification steps that accepted exactly j tokens"),
    Definition("H_0/S", "immediate-failure rate: share of all S that accepted nothing"),
    Definition("H_K/S", "full-draft rate: share of all S that accepted K tokens"),
    Definition(
        "coverage",
        "share of decode steps (target passes after the prefill) that had a draft; unknown where"
        " a source counts only the steps with one",
    ),
    Definition(
        "survival",
        "s_r, share of steps that accept the first r tokens. By product limit where the length of"
        " every draft is known: c_1 · ... · c_r; else by tail, the naive ratio",
    ),
    Definition(
        "naive",
        "tail ratio, steps that accepted r or more over all S: too low where drafts were shorter"
        " than r, as those count as failed",
    ),
    Definition(
        "conditional",
        "c_r, share of the steps at risk that accept position r; what to compare drafters by."
        " Never taken from one mean by a constant chance per token",
    ),
    Definition(
        "at risk",
        "denominator of c_r: steps that accepted all before position r and drafted there; by tail"
        " without the latter, as draft lengths are unknown",
    ),
    Definition(
        "marginal",
        "tokens that position r adds to a step, s_r: worth drafting while it pays for its cost",
    ),
    Definition(
        "output position", "M over the steps that began in a band of the answer, in tokens from 0"
    ),
    Definition(
        "per chunk",
        "output tokens per event of a stream; under speculation an event carries what a step emits,"
        " so that it is no token and holds more of them as M grows",
    ),
    Definition(
        "mean gap",
        "time between two events within an answer, in ms, over all gaps; the wait for the first is"
        " none. Under speculation a gap is a step, not a token",
    ),
    Definition(
        "gap CV",
        "standard deviation over mean of the gaps within an answer, averaged over answers: 0 is an"
        " even cadence, 1 as uneven as chance (Poisson), more comes in bursts. Of times alone,"
        " whatever the tokens per gap",
    ),
    Definition(
        "longest gap",
        "longest stall within an answer, in ms; a maximum grows with the number of gaps and has no"
        " interval",
    ),
    Definition(
        "intervals",
        "95 %, by a bootstrap over records (requests, or whole intervals of a server), as the"
        " steps of one are not independent; widened for few records, none for a single one",
    ),
    Definition(
        "nominal", "D taken as K · S because drafts were not counted: A/D is then a lower bound"
    ),
    Definition(
        "estimated",
        "worked out from other numbers, as steps = output − accepted where only tokens are told",
    ),
    Definition(
        "scope",
        "what a record covers: request (one answer), interval (a server between two scrapes), log"
        " (an interval of its log), benchmark, or server (since it started); scopes may hold the"
        " same steps and are never added",
    ),
    Definition(
        "best K",
        "K of most tokens per second, (1 + s_1 + ... + s_K) over the time of a step; ties go to"
        " the smaller, nothing is claimed beyond the recorded K, and a shorter K is an estimate",
    ),
    Definition("regret", "share of the best K's tokens per second that another K gives up"),
    Definition(
        "reconciliation",
        "sums that should agree, e.g. completion tokens and A + S; a gap is shown with its size"
        " and what is known to open it, and no record is dropped for it",
    ),
)
