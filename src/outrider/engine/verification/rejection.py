"""The two rules of lossless rejection sampling, as functions of p and q.

p is the target's distribution and q the draft's, as in Leviathan et al. 2023 (arXiv 2211.17192);
Chen et al. 2023 (arXiv 2302.01318) prove the same rules with the letters exchanged. Here both
are [rows, V], and q = None is the point mass on each row's drafted token. A row without a
drafted token (-1) accepts nothing and has nothing to take away from p.
"""

import torch


def of_drafted(
    p: torch.Tensor, q: torch.Tensor | None, drafted: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return float64 p(d) and q(d) [rows] of the `drafted` tokens int64 [rows], 0 where -1."""
    d = drafted.clamp(min=0).unsqueeze(-1)
    present = (drafted >= 0).double()
    p_d = p.gather(-1, d).squeeze(-1) * present
    return p_d, present if q is None else q.gather(-1, d).squeeze(-1) * present


def accepts(
    p: torch.Tensor, q: torch.Tensor | None, drafted: torch.Tensor, u: torch.Tensor
) -> torch.Tensor:
    """Return bool [rows]: accept d with probability min(1, p(d) / q(d)), by `u` [rows] in [0, 1).

    `drafted` is int64 [rows]. A token that q excludes cannot have been drawn from it: rejected.
    """
    p_d, q_d = of_drafted(p, q, drafted)
    return (q_d > 0) & (u * q_d < p_d)


def left_over(p: torch.Tensor, q: torch.Tensor | None, drafted: torch.Tensor) -> torch.Tensor:
    """Return max(p - q, 0) [rows, V], and p where no token was drafted."""
    d = drafted.clamp(min=0).unsqueeze(-1)
    present = (drafted >= 0).unsqueeze(-1)
    taken = torch.zeros_like(p).scatter(-1, d, 1.0) if q is None else q
    return torch.where(present, p - taken, p).clamp(min=0)


def residual(p: torch.Tensor, q: torch.Tensor | None, drafted: torch.Tensor) -> torch.Tensor:
    """Return max(p - q, 0) [rows, V], not normalised: the law of the token after a rejection.

    `drafted` is int64 [rows].
    """
    rest = left_over(p, q, drafted)
    # Nothing is left where rounding rejected a token although p = q.
    return torch.where(rest.sum(dim=-1, keepdim=True) > 0, rest, p)
