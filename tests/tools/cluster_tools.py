"""Dask clusters for tests: one in this process with worker processes, and one of programs that can be killed."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path

import dask.config
import distributed

_CONFIG = {
    "distributed.deploy.lost-worker-timeout": "1 hour",
    "distributed.worker.profile.enabled": False,  # it can hang a worker for ever before Python 3.11.9
}


@contextmanager
def local_cluster(workers: int = 2) -> Iterator[distributed.LocalCluster]:
    """A cluster on the loopback interface, with worker processes. Lost ones are always replaced."""
    with (
        dask.config.set(_CONFIG),
        distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},
            silence_logs=logging.CRITICAL,
        ) as cluster,
    ):
        yield cluster


class Programs:
    """``dask scheduler`` and ``dask worker``, as users start them. They find certificates in Dask's configuration."""

    def __init__(self, folder: Path, protocol: str) -> None:
        self._folder = folder
        self._started: list[subprocess.Popen[str]] = []
        options = ["--host", "127.0.0.1", "--port", "0", "--protocol", protocol, "--no-dashboard"]
        self.scheduler = self._start("scheduler", *options)
        self.address = self._line(self.scheduler, r"Scheduler at: +(\w+://\S+)")

    def start_worker(self, environ: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        """Start a worker, and wait until the scheduler knows it."""
        local = ["--host", "127.0.0.1", "--local-directory", str(self._folder)]
        worker = self._start("worker", self.address, *local, "--no-dashboard", "--nthreads", "1", environ=environ)
        self._line(worker, r"(Registered to)")
        return worker

    def _start(self, *arguments: str, environ: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "dask", *arguments]
        profiler = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}  # as docs/cluster.md advises
        path = os.pathsep.join(filter(None, sys.path))
        variables = {**os.environ, **profiler, "PYTHONPATH": path, **(environ or {})}
        program = subprocess.Popen(
            command,
            cwd=self._folder,  # the current folder comes first in the path, and could have another version
            env=variables,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._started.append(program)
        return program

    def _line(self, program: subprocess.Popen[str], pattern: str) -> str:
        assert program.stderr is not None
        for line in program.stderr:
            if found := re.search(pattern, line):
                return found[1]
        raise AssertionError(f"the program has ended without {pattern}")

    def stop(self) -> None:
        """Kill all of them, with the processes that they have started."""
        for program in self._started:
            kill(program)


def kill(program: subprocess.Popen[str]) -> None:
    """Kill a program and the processes that it has started."""
    if program.poll() is None:
        os.killpg(program.pid, signal.SIGKILL)
    program.wait(60)
    if program.stderr is not None:
        program.stderr.close()


@contextmanager
def programs(folder: Path, protocol: str = "tcp") -> Iterator[Programs]:
    """A scheduler without workers."""
    started = Programs(folder, protocol)
    try:
        yield started
    finally:
        started.stop()


def die_in(cluster: distributed.LocalCluster, task: str) -> None:
    """Make each worker process kill itself when it begins this task (module and function). The next process of the
    worker does not."""
    with distributed.Client(cluster, set_as_default=False) as client:
        client.run(_arm, *task.rsplit(".", 1))


def _arm(module: str, function: str) -> None:
    def die(shared: object, part: object = None) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(import_module(module), function, die)
