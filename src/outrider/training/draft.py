"""A Llama that can be differentiated, under the names that its checkpoint has.

The engine's own decoders have no gradient. This one takes whole sequences and keeps no cache.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from outrider.engine.models.rope import Rope, rope_tables
from outrider.training.settings import DraftShape

EPSILON = 1e-5
"""Of the norms."""
ROPE_THETA = 10_000.0


class DraftNetwork(nn.Module):
    """A decoder with a tied head for a vocabulary of V tokens, in float32.

    `embedding` [V, hidden_size] is where its own starts; the other weights are drawn from `seed`.
    """

    def __init__(self, shape: DraftShape, embedding: Tensor, seed: int) -> None:
        super().__init__()
        self.shape = shape
        self.model = _Body(shape, embedding.shape[0])
        generator = torch.Generator().manual_seed(seed)
        for name, weight in self.named_parameters():
            if weight.dim() > 1:
                deep = name.endswith(("o_proj.weight", "down_proj.weight"))
                scale = weight.shape[1] ** -0.5 * ((2 * shape.layers) ** -0.5 if deep else 1.0)
                nn.init.normal_(weight, std=scale, generator=generator)
        with torch.no_grad():
            self.model.embed_tokens.weight.copy_(embedding)

    def forward(self, token_ids: Tensor, wanted: Tensor) -> Tensor:
        """Logits [N, V] after the rows `wanted` [N] of `token_ids` [B, L], counted row by row.

        Each sequence begins at position 0 and may be padded at its end.
        """
        return functional.linear(
            self.model(token_ids).flatten(0, 1)[wanted], self.model.embed_tokens.weight
        )


class _Body(nn.Module):
    def __init__(self, shape: DraftShape, vocabulary: int) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(vocabulary, shape.hidden_size)
        self.layers = nn.ModuleList(_Layer(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.hidden_size, eps=EPSILON)
        self._head_dim = shape.hidden_size // shape.heads

    def forward(self, token_ids: Tensor) -> Tensor:
        tables = rope_tables(Rope(ROPE_THETA), self._head_dim, token_ids.shape[1])
        cos, sin = (table.to(token_ids.device) for table in tables)
        x = self.embed_tokens(token_ids)
        for layer in self.layers:
            x = layer(x, cos, sin)
        normed: Tensor = self.norm(x)
        return normed


class _Layer(nn.Module):
    def __init__(self, shape: DraftShape) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden_size, eps=EPSILON)
        self.self_attn = _Attention(shape)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden_size, eps=EPSILON)
        self.mlp = _Mlp(shape)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        out: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return out


class _Attention(nn.Module):
    def __init__(self, shape: DraftShape) -> None:
        super().__init__()
        size = shape.hidden_size
        self._heads = shape.heads
        self.q_proj = nn.Linear(size, size, bias=False)
        self.k_proj = nn.Linear(size, size, bias=False)
        self.v_proj = nn.Linear(size, size, bias=False)
        self.o_proj = nn.Linear(size, size, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        query, key, value = (
            project(x).unflatten(-1, (self._heads, -1)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        attended = functional.scaled_dot_product_attention(
            _turned(query, cos, sin), _turned(key, cos, sin), value, is_causal=True
        )
        out: Tensor = self.o_proj(attended.transpose(1, 2).flatten(2))
        return out


class _Mlp(nn.Module):
    def __init__(self, shape: DraftShape) -> None:
        super().__init__()
        size, inner = shape.hidden_size, shape.intermediate_size
        self.gate_proj = nn.Linear(size, inner, bias=False)
        self.up_proj = nn.Linear(size, inner, bias=False)
        self.down_proj = nn.Linear(inner, size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))
        return out


def _turned(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding of [..., L, D]; the halves of a head form the pairs."""
    a, b = heads.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
