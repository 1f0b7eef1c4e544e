"""What has to be known to read a replay's figures."""

from collections.abc import Iterator, Sequence

from outrider.replay.lookup.base import LookupSetting
from outrider.replay.workplaces.base import Replayed

EXACT = (
    "Exact for this log at any temperature: a drafted token is accepted where it is what the log"
    " says next. The first token of an answer comes from the prefill and is in no step."
)

CHOSEN_HERE = (
    "Settings and K are compared on the very answers that they were chosen by: where answers are"
    " few, the best looks better than it is."
)
RUNNERS = (
    "Of several matches vLLM's V2 runner takes the most recent, and fills every draft up to K; its"
    " V1 runner takes the earliest and fills nothing (--ngram-tie, --ngram-fill)."
)


def caveats_of(
    replayed: Replayed, settings: Sequence[LookupSetting], tokenizer: str | None
) -> tuple[str, ...]:
    """Return the sentences that go with the figures, those on this log's own traits last."""
    facts = replayed.facts
    told = [*_of_files(replayed, settings), EXACT, CHOSEN_HERE]
    if any(each.method == "ngram" for each in settings):
        told.append(RUNNERS)
    if facts.retokenized:
        told.append(
            f"{facts.retokenized:,} of {facts.answers:,} answers were logged as text and cut into"
            f" tokens by {tokenizer}: a model may have said the same text in other tokens, so"
            " matches can be longer or shorter than they were. Log token ids for exact figures"
            " (vLLM: return_token_ids)."
        )
    if facts.without_end:
        told.append(
            f"{facts.without_end:,} of {facts.answers:,} answers do not tell max_tokens or that"
            " they ended by it: drafts near their end are not cut to what still fits, which may"
            " count a few drafted tokens too many."
        )
    if facts.unsorted:
        place = facts.first_unsorted
        where = "" if place is None else f", first {place.source}:{place.line}"
        matters = (
            "the cache of earlier answers learns in the order of the log, not of the clock"
            if any(each.remembers for each in settings)
            else "which changes nothing for drafters that look at one answer alone"
        )
        told.append(
            f"{facts.unsorted:,} answers are earlier than one above them{where}: {matters}."
        )
    return tuple(told)


def _of_files(replayed: Replayed, settings: Sequence[LookupSetting]) -> Iterator[str]:
    if replayed.files is None:
        return
    if replayed.lost:
        yield (
            f"Incomplete: {replayed.lost:,} of {replayed.files:,} files are in no figure, since the"
            " workers that replayed them died."
        )
    if replayed.files > 1 and (named := [each.name for each in settings if each.remembers]):
        yield (
            f"Each of the {replayed.files:,} files was replayed with an empty cache of earlier"
            f" answers, which one process would have carried on from file to file: {named[0]}"
            f"{' and others' if named[1:] else ''} may accept more or less there. Settings without"
            " such a cache have the same counts either way."
        )
