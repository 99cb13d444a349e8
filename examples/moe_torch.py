"""A mixture of experts on plain torch.distributed: one expert per rank, tokens sent to theirs.

    torchrun --standalone --nproc-per-node 4 examples/moe_torch.py --backend gloo

Nothing in here knows of schedules: with `--backend alltoall` the same all-to-alls go by one.
"""

import argparse

import torch
import torch.distributed as dist
from torch import nn


class Exchange(torch.autograd.Function):
    """All-to-all of rows, whose gradient is the all-to-all back."""

    @staticmethod
    def forward(ctx, rows, received, sent, group):
        """Send `sent[r]` rows to every rank r, and receive `received[r]` from it."""
        ctx.way_back = sent, received, group
        output = rows.new_empty(sum(received), *rows.shape[1:])
        dist.all_to_all_single(output, rows.contiguous(), received, sent, group=group)
        return output

    @staticmethod
    def backward(ctx, gradient):
        """Send the gradients back to where the rows came from."""
        return Exchange.apply(gradient, *ctx.way_back), None, None, None


class MixtureOfExperts(nn.Module):
    """A router on every rank, and the expert of this rank."""

    def __init__(self, width, group=None):
        super().__init__()
        self.group, self.ranks = group, dist.get_world_size(group)
        self.router = nn.Linear(width, self.ranks, bias=False)
        self.expert = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, tokens):
        """Send each token to its best expert and back, weighted by how well it fits."""
        gate, expert = self.router(tokens).softmax(dim=-1).max(dim=-1)
        order = expert.argsort(stable=True)
        sent = expert.bincount(minlength=self.ranks)
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent, group=self.group)
        splits = received.tolist(), sent.tolist()
        there = Exchange.apply(tokens[order], *splits, self.group)
        back = Exchange.apply(self.expert(there), *reversed(splits), self.group)
        return gate[:, None] * back[order.argsort()]


def train(steps=3, tokens=256, width=32, group=None):
    """Teach the experts to double what they are given; return the losses."""
    rank = dist.get_rank(group)
    torch.manual_seed(0)
    model = MixtureOfExperts(width, group)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(rank)
    losses = []
    for _ in range(steps):
        batch = torch.randn(tokens, width)
        loss = (model(batch) - 2 * batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        # Every rank has the same router, and an expert of its own.
        dist.all_reduce(model.router.weight.grad, group=group)
        optimizer.step()
        total = loss.detach().clone()
        dist.all_reduce(total, group=group)
        losses.append(total.item() / dist.get_world_size(group))
    return losses, model


def main():
    """Start as a rank of torchrun."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="gloo")
    backend = parser.parse_args().backend
    if backend == "alltoall":
        import alltoall.runtime.torch_backend  # noqa: F401, PLC0415  (registers the backend)
    dist.init_process_group(backend)
    losses, _ = train()
    if dist.get_rank() == 0:
        print(*(f"loss {loss:.3f}" for loss in losses), sep="\n", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
