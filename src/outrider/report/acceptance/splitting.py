"""The split that a report makes on its own, so that a mixture does not hide behind one mean."""

from collections.abc import Mapping, Sequence

from outrider.acceptance.totals import Totals
from outrider.acceptance.variation import best_key
from outrider.records.reading import Scope
from outrider.records.segment_keys import OUTCOME_KEYS, WARNING_KEYS
from outrider.report.acceptance.document import KeyVariation, Split
from outrider.report.acceptance.grouping import Grouping, SegmentKey


def find_split(grouping: Grouping, whole: Mapping[SegmentKey, Totals]) -> Split | None:
    """Return how the report should be split, None where there is no key to try.

    The key is looked for among the answers, in their segment with the most records, and serves all.
    Keys that are known before the answer go first: one can act on them.
    """
    if not whole:
        return None
    largest = max(
        whole,
        key=lambda key: (dict(key)["scope"] == Scope.REQUEST, whole[key].count("records")),
    )
    taken = {name for name, _ in largest} | set(WARNING_KEYS)
    by_key = {
        name: [part for value, part in parts.items() if value is not None]
        for name in grouping.keys
        if name not in taken and len(parts := grouping.within(largest, name)) > 1
    }
    if not by_key:
        return None
    choice = best_key(by_key)
    beforehand = best_key({n: parts for n, parts in by_key.items() if n not in OUTCOME_KEYS})
    key = beforehand.key or choice.key
    variations = [
        KeyVariation(name, each.groups, each.explained, each.p_value)
        for name, each in choice.tried.items()
        if each.explained is not None and each.p_value is not None
    ]
    variations.sort(key=lambda each: -each.explained)
    return Split(
        key=key,
        tried=tuple(variations),
        text=_sentence(key, variations, sorted(by_key)),
    )


def _sentence(chosen: str | None, tried: Sequence[KeyVariation], keys: Sequence[str]) -> str:
    if chosen is None:
        names = ", ".join(name.replace("_", " ") for name in keys)
        return f"No key explains the variation between records enough to split by ({names} tried)."
    [best] = [each for each in tried if each.key == chosen]
    rivals = "any other key"
    if chosen not in OUTCOME_KEYS and any(each.explained > best.explained for each in tried):
        rivals = "any other key that is known before the answer"
    return (
        f"The {chosen.replace('_', ' ')} explains {100 * best.explained:.0f} % of the variation of"
        f" M between records, more than {rivals}, so the report is split by it."
    )
