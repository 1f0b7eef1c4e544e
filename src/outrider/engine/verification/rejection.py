"""The two rules of lossless rejection sampling, as functions of p and q.

p is the target's distribution and q the draft's, as in Leviathan et al. 2023 (arXiv 2211.17192);
Chen et al. 2023 (arXiv 2302.01318) prove the same rules with the letters exchanged. Here both
are [rows, V], and q = None is the point mass on each row's drafted token. A row without a
drafted token (-1) accepts nothing and has nothing to take away from p.
"""

import torch


def accepts(
    p: torch.Tensor, q: torch.Tensor | None, drafted: torch.Tensor, u: torch.Tensor
) -> torch.Tensor:
    """Return bool [rows]: accept d with probability min(1, p(d) / q(d)), by `u` [rows] in [0, 1).

    `drafted` is int64 [rows].
    """
    d = drafted.clamp(min=0).unsqueeze(-1)
    p_d = p.gather(-1, d).squeeze(-1)
    q_d = 1.0 if q is None else q.gather(-1, d).squeeze(-1)
    return (drafted >= 0) & (u * q_d < p_d)


def residual(p: torch.Tensor, q: torch.Tensor | None, drafted: torch.Tensor) -> torch.Tensor:
    """Return max(p - q, 0) [rows, V], not normalised: the law of the token after a rejection.

    `drafted` is int64 [rows].
    """
    d = drafted.clamp(min=0).unsqueeze(-1)
    present = (drafted >= 0).unsqueeze(-1)
    taken = torch.zeros_like(p).scatter(-1, d, 1.0) if q is None else q
    rest = torch.where(present, p - taken, p).clamp(min=0)
    # Nothing is left where rounding rejected a token although p = q.
    return torch.where(rest.sum(dim=-1, keepdim=True) > 0, rest, p)
