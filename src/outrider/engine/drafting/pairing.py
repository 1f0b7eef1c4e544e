"""Whether a draft model speaks its target's language, in words, before anything is loaded."""

from collections.abc import Iterator

from outrider.engine.drafting.shared_vocabulary import SharedVocabulary, TokenTable
from outrider.errors import InvalidSetting

FEWEST_SHARED = 100
"""With fewer tokens in common a pair is hardly one; as in vLLM only a warning."""
ROLES = ("bos", "eos", "unk", "pad")


def check_sizes(target: TokenTable, draft: TokenTable) -> None:
    """Raise InvalidSetting unless ids can be the same tokens to both."""
    if target.size != draft.size:
        raise InvalidSetting(
            f"draft model {draft.name} with {draft.size:,} token ids"
            f" for {target.name} with {target.size:,}",
            "the same vocabulary size in target and draft model",
            'take a draft of the same family, or set "use_heterogeneous_vocab": true',
        )


def told_of_same_ids(target: TokenTable, draft: TokenTable) -> Iterator[str]:
    """Say where two vocabularies of one size give an id different meanings."""
    same = sum(len(set(ids) & set(draft.ids.get(text, ()))) for text, ids in target.ids.items())
    known = sum(map(len, target.ids.values()))
    if same < known:
        yield (
            f"{known - same:,} of the target's {known:,} tokens are others to the draft model,"
            " which costs acceptance"
        )


def told_of_shared(
    target: TokenTable, draft: TokenTable, shared: SharedVocabulary
) -> Iterator[str]:
    """Say how much of two vocabularies is shared, and what of it matters."""
    yield (
        f"{len(shared.target_ids):,} of the draft model's {draft.size:,} tokens are shared;"
        f" it reads {shared.readable:,} of the target's {target.size:,}"
        f" ({shared.readable / target.size:.1%}) and the others as unknown"
    )
    if len(shared.target_ids) < FEWEST_SHARED:
        yield "Very small vocabulary intersection: hardly any draft can be right"
    if "unk" not in draft.special:
        text, _ = draft.special["eos"]
        yield f"the draft model has no unknown token, and reads {text!r} in its place"


def told_of_special(target: TokenTable, draft: TokenTable) -> Iterator[str]:
    """Say which special tokens are others in the two."""
    differing = [
        f"{role} {_shown(target, role)} and {_shown(draft, role)}"
        for role in ROLES
        if _shown(target, role) != _shown(draft, role)
    ]
    if differing:
        yield f"special tokens differ, target and draft model: {', '.join(differing)}"


def _shown(table: TokenTable, role: str) -> str:
    special = table.special.get(role)
    return "none" if special is None else repr(special[0])
