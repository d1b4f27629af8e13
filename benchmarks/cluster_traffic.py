"""Bytes that Falkon and NystromKRLS send between processes, on a local cluster of two workers.

    python benchmarks/cluster_traffic.py

Every message of every process is counted where it is written to its socket. Prints one line a
setting, beside what the arrays alone take; and what the workers' memory grows by beside the rows
that they keep. Needs the extra "distributed".
"""

from __future__ import annotations

import resource
import time
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from output import make_parser, parse

from semiparam_dynamics.learning import Falkon, Gaussian, NystromKRLS

SENT = 0


def count() -> None:
    """Count what this process sends from now on."""
    from distributed.comm import tcp

    import __main__ as here

    here.SENT = 0
    original = tcp.TCP.write

    async def write(self: Any, *args: Any, **settings: Any) -> Any:
        sent = await original(self, *args, **settings)
        here.SENT += sent
        return sent

    tcp.TCP.write = write


def sent() -> int:
    import __main__ as here

    return here.SENT


def data(n: int, d: int, T: int, chunk: int) -> tuple[Any, Any]:
    """Made by the workers, as they would read theirs."""
    state = da.random.RandomState(0)
    X = state.standard_normal((n, d), chunks=(chunk, d))
    return X, da.sin(X[:, :T])


def measured(client: Client, model: Any, X: Any, y: Any) -> tuple[float, float, float]:
    """Bytes of the driver and scheduler, bytes of the workers, seconds."""
    before = sent(), sum(client.run(sent).values())
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    return sent() - before[0], sum(client.run(sent).values()) - before[1], seconds


def falkon_line(client: Client, n: int, d: int, T: int, M: int, chunks: int) -> None:
    X, y = data(n, d, T, n // chunks)
    settings: dict[str, Any] = {"random_state": 0, "tolerance": 0.0}
    results = []
    for iterations in (2, 12):
        model = Falkon(Gaussian(3.0), 1e-3, M, max_iter=iterations, **settings)
        results.append(measured(client, model, X, y))
    driver, workers, seconds = (np.array(results[1]) - results[0]) / 10
    unit = 8 * M * T
    print(
        f"| {n} | {M} | {T} | {chunks} | {unit / 1e3:.0f} | {driver / 1e3:.0f} "
        f"| {driver / unit:.1f} | {workers / 1e3:.0f} | {workers / unit:.1f} "
        f"| {seconds * 1e3:.0f} |",
        flush=True,
    )


def nystrom_line(client: Client, n: int, d: int, T: int, M: int, chunks: int) -> None:
    X, y = data(n, d, T, n // chunks)
    model = NystromKRLS(Gaussian(3.0), 1e-3, M, random_state=0)
    driver, workers, seconds = measured(client, model, X, y)
    unit = 8 * M * M
    print(
        f"| {n} | {M} | {T} | {chunks} | {unit / 1e6:.1f} | {driver / 1e6:.1f} "
        f"| {driver / unit:.1f} | {workers / 1e6:.1f} | {workers / unit:.1f} | {seconds:.1f} |",
        flush=True,
    )


def peak() -> int:
    """The largest resident set of this process so far, bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def memory_line(
    client: Client, before: dict[str, int], n: int, d: int, M: int, chunks: int
) -> None:
    X, y = data(n, d, 1, n // chunks)
    Falkon(Gaussian(7.0), 1e-3, M, max_iter=3, random_state=0).fit(X, y)
    grown = [after - before[worker] for worker, after in client.run(peak).items()]
    row_bytes = 8 * n * (d + 1)
    print(
        f"| {n} | {d} | {M} | {chunks} | {row_bytes / len(grown) / 1e6:.0f} "
        f"| {' and '.join(f'{g / 1e6:.0f}' for g in grown)} |",
        flush=True,
    )


def main() -> None:
    parse(make_parser(__doc__))
    settings: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1}
    with (
        LocalCluster(processes=True, dashboard_address=":0", **settings) as cluster,
        Client(cluster) as client,
    ):
        X, y = data(400, 4, 1, 200)
        Falkon(Gaussian(3.0), 1e-3, 20, random_state=0).fit(X, y)  # compiles and imports
        print("Falkon's memory\n")
        print("| n | d | M | chunks | rows a worker, MB | its peak grew by, MB |")
        print("|" + " --- |" * 6)
        before = client.run(peak)
        memory_line(client, before, 200_000, 28, 500, 8)
        memory_line(client, before, 400_000, 28, 500, 8)
        memory_line(client, before, 800_000, 28, 500, 32)
        count()
        client.run(count)
        start = "| n | M | T | chunks | "
        middle = "driver and scheduler | / array | workers | / array | "
        print(f"\nFalkon, kB an iteration\n\n{start}M T, kB | {middle}ms |")
        print("|" + " --- |" * 10)
        falkon_line(client, 8000, 8, 2, 2000, 4)
        falkon_line(client, 8000, 8, 2, 2000, 16)
        falkon_line(client, 32000, 8, 2, 2000, 16)
        falkon_line(client, 8000, 8, 2, 2000, 64)
        falkon_line(client, 8000, 8, 6, 2000, 16)
        falkon_line(client, 8000, 8, 2, 4000, 16)
        print(f"\nNystromKRLS, MB a fit\n\n{start}M M, MB | {middle}s |")
        print("|" + " --- |" * 10)
        nystrom_line(client, 8000, 8, 2, 500, 4)
        nystrom_line(client, 8000, 8, 2, 500, 16)
        nystrom_line(client, 32000, 8, 2, 500, 16)
        nystrom_line(client, 8000, 8, 2, 1000, 16)


if __name__ == "__main__":
    main()
