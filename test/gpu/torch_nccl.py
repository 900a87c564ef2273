# SPDX-License-Identifier: MIT
"""
Goal: a program that knows NCCL runs on wreath unchanged.  Method: two
processes of torch.distributed on one GPU, which NCCL itself refuses, with
libwreath-nccl.so preloaded; results are compared with what one process
computes.

    LD_PRELOAD=build/libwreath-nccl.so python3 test/gpu/torch_nccl.py
"""
import copy
import ctypes
import datetime
import os
import socket
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing

N = 2
COUNT = 1 << 20


def whose(name):
    """The file whose function of that name this process calls."""
    function = ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p)
    with open("/proc/self/maps") as maps:
        for line in maps:
            low, high = (int(x, 16) for x in line.split()[0].split("-"))
            if low <= function.value < high:
                return line.split()[-1]
    return "nobody"


def given(rank, dtype, device):
    """What a rank gives: small whole numbers, exact in every type."""
    return (torch.arange(COUNT, device=device) % 13 + rank).to(dtype)


def collectives(rank, device):
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.int64):
        all_given = [given(r, dtype, device) for r in range(N)]
        total = sum(all_given[1:], all_given[0])
        mine = all_given[rank].clone()

        dist.all_reduce(mine)
        assert torch.equal(mine, total), f"all_reduce of {dtype}"

        mine = all_given[rank].clone()
        dist.broadcast(mine, src=1)
        assert torch.equal(mine, all_given[1]), f"broadcast of {dtype}"

        whole = torch.empty(N * COUNT, dtype=dtype, device=device)
        dist.all_gather_into_tensor(whole, all_given[rank])
        assert torch.equal(whole, torch.cat(all_given)), "all_gather"

        part = torch.empty(COUNT // N, dtype=dtype, device=device)
        dist.reduce_scatter_tensor(part, all_given[rank])
        assert torch.equal(part, total.chunk(N)[rank]), "reduce_scatter"

        swapped = torch.empty(COUNT, dtype=dtype, device=device)
        dist.all_to_all_single(swapped, all_given[rank])
        want = torch.cat([x.chunk(N)[rank] for x in all_given])
        assert torch.equal(swapped, want), "all_to_all"

        ring = torch.empty(COUNT, dtype=dtype, device=device)
        for work in dist.batch_isend_irecv([
                dist.P2POp(dist.isend, all_given[rank], (rank + 1) % N),
                dist.P2POp(dist.irecv, ring, (rank - 1) % N)]):
            work.wait()
        assert torch.equal(ring, all_given[(rank - 1) % N]), "send, recv"
    dist.barrier(device_ids=[device.index])


def stream_order(rank, device):
    """Kernels before and behind collectives, without a wait in between."""
    x = torch.full((COUNT,), float(rank + 1), device=device)
    side = torch.cuda.Stream()
    for _ in range(20):
        y = x * 2
        work = dist.all_reduce(y, async_op=True)
        work.wait()
        x = y / 6 * (rank + 1)
    with torch.cuda.stream(side):
        side.wait_stream(torch.cuda.current_stream(device))
        z = x.clone()
        dist.all_reduce(z)
        z += 1
    torch.cuda.current_stream(device).wait_stream(side)
    assert torch.equal(z, torch.full_like(z, 4)), "order of streams"


def training(rank, device):
    """Gradients of two halves of a batch are those of the whole of it."""
    torch.manual_seed(1)
    plain = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(),
                                torch.nn.Linear(256, 8)).to(device)
    model = torch.nn.parallel.DistributedDataParallel(
        copy.deepcopy(plain), device_ids=[device.index])
    batch = torch.randn(32 * N, 64, device=device)
    model(batch.chunk(N)[rank]).square().mean().backward()
    plain(batch).square().mean().backward()
    for p, q in zip(model.parameters(), plain.parameters()):
        assert torch.allclose(p.grad, q.grad, rtol=1e-3, atol=1e-5), "training"


def speed(device):
    x = torch.ones(64 << 20, device=device)
    for n in (3, 20):
        torch.cuda.synchronize(device)
        start = time.monotonic()
        for _ in range(n):
            dist.all_reduce(x)
        torch.cuda.synchronize(device)
        us = (time.monotonic() - start) / n * 1e6
    return us


def run(rank, port):
    device = torch.device("cuda", 0)
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}",
                            rank=rank, world_size=N,
                            timeout=datetime.timedelta(seconds=40))
    collectives(rank, device)
    stream_order(rank, device)
    training(rank, device)
    us = speed(device)
    file = whose("ncclAllReduce")
    dist.destroy_process_group()
    assert "libwreath-nccl" in file, f"ncclAllReduce is that of {file}"
    if rank == 0:
        print(f"torch: {torch.__version__} on {torch.cuda.get_device_name(0)},"
              f" NCCL {torch.cuda.nccl.version()} is {os.path.basename(file)};"
              f" all_reduce of 256 MiB by {N} ranks: {us:.0f} us",
              flush=True)


def main():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    torch.multiprocessing.spawn(run, args=(port,), nprocs=N)


if __name__ == "__main__":
    sys.exit(main())
