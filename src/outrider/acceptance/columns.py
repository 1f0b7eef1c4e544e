"""The sums that every figure of a segment is made of, as columns with one row per cluster."""

from functools import cache

OUTPUT_BANDS = (0, 32, 128, 512, 2048, 8192, 32768)
"""Where the bands of output position begin, in tokens; the last has no end."""

WIDTH_OF_UNKNOWN_K = 33
"""How many histogram entries are kept where K is unknown, H_0 to H_32."""

_SCALARS = (
    "records",
    "requests",
    "requests_unknown",  # records, as all that count records are
    "steps",
    "steps_estimated",  # records
    "accepted",
    "accepted_estimated",  # records
    "drafted",
    "drafted_unknown",  # records
    "drafted_nominal",  # records
    "histogram_unknown",  # records
    # Product limit: the steps whose own draft length is known.
    "length_known_steps",
    # Coverage: the verification steps of records that tell their decode steps, and those.
    "covered_steps",
    "decode_steps",
    # Tokens and their explanation by steps, over records that tell both.
    "completion_tokens",
    "explained_tokens",
    "completion_records",
    "more_tokens_records",
    "fewer_tokens_records",
    "more_tokens",
    "fewer_tokens",
    # M by request: records with at least one step, the sum of their M.
    "stepping_records",
    "mean_sum",
    # Second moments of A and S over records, for the variation between them.
    "accepted_accepted",
    "accepted_steps",
    "steps_steps",
    "repetitive",
    "text_seen",  # records
    "chunks",
    "chunked_tokens",
    # Cadence: the gaps between events; the answers whose gaps can vary, and the sum of their CV.
    "gaps",
    "gap_sum_ms",
    "gap_answers",
    "gap_cv_sum",
    "prompt_tokens",
    "cached_tokens",
    "cached_records",
)


class Columns:
    """The columns of one K, by name: `totals[..., columns["steps"]]`.

    Besides the scalars there are slices: `histogram` (H_0 ... H_K), `at_risk` and `passed` (one per
    draft position 1 ... K, of the product limit), `band_steps` and `band_accepted` (one per band of
    output position). K is 0 where it is unknown; the histogram then has a fixed width, and there
    are no positions. `names` has one name for every column.
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self._slices: dict[str, slice] = {}
        start = len(_SCALARS)
        bands = len(OUTPUT_BANDS)
        for name, size in (
            ("histogram", k + 1 if k else WIDTH_OF_UNKNOWN_K),
            ("at_risk", k),
            ("passed", k),
            ("band_steps", bands),
            ("band_accepted", bands),
        ):
            self._slices[name] = slice(start, start + size)
            start += size
        self.width = start
        self.names = [
            *_SCALARS,
            *(
                f"{name}_{place}"
                for name, columns in self._slices.items()
                for place in range(columns.stop - columns.start)
            ),
        ]

    def __getitem__(self, name: str) -> int:
        """Return the column of a scalar; KeyError for a name that is none."""
        return _PLACES[name]

    def slice(self, name: str) -> slice:
        """Return the columns of a vector."""
        return self._slices[name]


_PLACES = {name: place for place, name in enumerate(_SCALARS)}


@cache
def columns_of(k: int) -> Columns:
    """Return the columns of K, 0 for an unknown one."""
    return Columns(k)
