"""All products with a model's weights, as a step does them, in several ways."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from outrider.engine.compiling import compiled
from outrider.engine.kernels.formats.base import PANEL
from outrider.engine.kernels.next_panel import panel_after
from outrider.engine.kernels.products import panel_product, prepared, put_away, room_for
from outrider.engine.kernels.team import finish, new_counters, take, wait
from outrider.engine.models.backends.torch import TORCH_DTYPES
from outrider.engine.models.packing import PACKINGS, Packing, pack_ends, pack_layers
from outrider.engine.models.source import WeightSource, open_weights

from .rounds import Spread, Variant, interleaved, milliseconds, paired_ratio

ROWS = (1, 9)
LINEAR, REORDERED, PACKED = "torch `F.linear`", "oneDNN, weights reordered", "packed panels (ours)"

Products = Callable[[Mapping[int, torch.Tensor]], object]
"""Multiplies inputs [rows, K], given by K, with every weight."""


@dataclass(frozen=True, slots=True)
class LinearCost:
    """Milliseconds of all products for 1 row and for 9, and the ratio in the same round."""

    way: str
    dtype: str
    one_row_ms: Spread
    nine_rows_ms: Spread
    inflation: Spread


def measure_linear_layers(
    path: Path, *, threads: int, rounds: int, budget_s: float
) -> tuple[LinearCost, ...]:
    """Times the ways side by side; torch has all `threads` for its own, and 1 beside the kernel."""
    source = open_weights(path)
    weights = list(_weights(source))
    generator = torch.Generator().manual_seed(0)
    depths = {weight.shape[1] for weight in weights}
    inputs = {
        rows: {depth: torch.randn(rows, depth, generator=generator) for depth in depths}
        for rows in ROWS
    }
    ways: list[tuple[str, str, Products, int, torch.dtype]] = []
    for name, packing in PACKINGS.items():
        dtype = TORCH_DTYPES.get(name)
        if dtype is not None:
            ways.append((LINEAR, name, _linear(weights, dtype), threads, dtype))
            if _reorders(dtype):
                ways.append((REORDERED, name, _reordered(weights, dtype), threads, dtype))
        ways.append((PACKED, name, _packed(source, packing, threads), 1, torch.float32))
    variants: dict[tuple[str, str, int], Variant] = {}
    for way, name, products, torch_threads, kind in ways:
        for rows in ROWS:
            x = {depth: each.to(kind) for depth, each in inputs[rows].items()}
            run = torch.inference_mode()(lambda products=products, x=x: products(x))
            variants[way, name, rows] = Variant(run, torch_threads)
    seconds = interleaved(variants, rounds=rounds, budget_s=budget_s)
    return tuple(
        LinearCost(
            way,
            name,
            milliseconds(seconds[way, name, ROWS[0]]),
            milliseconds(seconds[way, name, ROWS[1]]),
            paired_ratio(seconds[way, name, ROWS[1]], seconds[way, name, ROWS[0]]),
        )
        for way, name, rows in variants
        if rows == ROWS[0]
    )


def _weights(source: WeightSource) -> Iterator[torch.Tensor]:
    """The matrices of a step, float32, those that share an input in one."""
    for layer in range(source.config.num_layers):
        for parts in (
            ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
            ("self_attn.o_proj",),
            ("mlp.gate_proj", "mlp.up_proj"),
            ("mlp.down_proj",),
        ):
            names = [f"model.layers.{layer}.{part}.weight" for part in parts]
            yield torch.cat([source.tensor(name).float() for name in names])
    tied = source.config.tied_embeddings
    yield source.tensor("model.embed_tokens.weight" if tied else "lm_head.weight").float()


def _linear(weights: list[torch.Tensor], dtype: torch.dtype) -> Products:
    converted = [weight.to(dtype) for weight in weights]
    return lambda x: [functional.linear(x[weight.shape[1]], weight) for weight in converted]


def _reordered(weights: list[torch.Tensor], dtype: torch.dtype) -> Products:
    mkldnn = torch.ops.mkldnn
    packed = [mkldnn._reorder_linear_weight(weight.to(dtype), None) for weight in weights]  # noqa: SLF001
    depths = [weight.shape[1] for weight in weights]
    return lambda x: [
        mkldnn._linear_pointwise(x[depth], weight, None, "none", [], "")  # noqa: SLF001
        for depth, weight in zip(depths, packed, strict=True)
    ]


def _reorders(dtype: torch.dtype) -> bool:
    """Whether oneDNN is there and has products of this type for this CPU."""
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    mkldnn = torch.ops.mkldnn
    return dtype != torch.bfloat16 or bool(mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001


def _packed(source: WeightSource, packing: Packing, threads: int) -> Products:
    layers = pack_layers(source, packing)
    stacks = (layers.qkv, layers.output, layers.gate_up, layers.down)
    head = pack_ends(source, packing).head
    regions = sum(len(stack) for stack in stacks) + 1
    config = source.config
    hidden, queries = config.hidden_size, config.num_heads * config.head_dim
    depths = (hidden, queries, hidden, config.intermediate_size)
    columns = max(PANEL * panels.shape[0] for panels in (*(stack[0] for stack in stacks), head))
    helpers = ThreadPoolExecutor(max(1, threads - 1))

    def products(x: Mapping[int, torch.Tensor]) -> object:
        inputs = tuple(x[depth].numpy() for depth in depths)
        out = np.empty((len(inputs[0]), columns), np.float32)
        arguments = (new_counters(regions, threads), stacks, head, inputs, out)
        for thread in range(1, threads):
            helpers.submit(_multiply_all, thread, *arguments)
        _multiply_all(0, *arguments)
        return out

    return products


@compiled()
def _multiply_all(
    thread: int, counters: Any, stacks: Any, head: Any, inputs: Any, out: Any
) -> None:
    """One thread's part: each stack [L, panels, K, PANEL] times its input [R, K], then the head."""
    region = 0
    for layer in range(stacks[0].shape[0]):
        for i in range(len(stacks)):
            _multiply(thread, counters, region, stacks[i][layer], inputs[i], out)
            region += 1
    _multiply(thread, counters, region, head, inputs[0], out)


@compiled()
def _multiply(thread: int, counters: Any, region: int, panels: Any, x: Any, out: Any) -> None:
    inputs = prepared(panels, x, room_for(panels, x.shape[0], x.shape[1]))
    while True:
        p = take(counters, region, thread, panels.shape[0])
        if p < 0:
            break
        after = panel_after(counters, thread, panels, p, panels[:0])
        panel_product(panels[p], after, inputs, out, p * PANEL)
        finish(counters, region)
    wait(counters, region, panels.shape[0])
    put_away(panels)
