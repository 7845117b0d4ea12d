"""Small suites as files: one that is quick, and one that fails in every way."""

from __future__ import annotations

from pathlib import Path

SMALL = '''
"""A cluster of one broker takes some records"""
from fakekafka.spark_bench.measuring.parameters import Count

MATRIX = {"records": [2, 5]}
RUNS = 3
MEASURES = {"took_ms": "until the last record was there"}

def cost(records):
    return records / 100

def scenario(run, records: Count = 2, name: str = "t", fast: bool = True, wait_ms: float = 1.0):
    simulation = run.simulation(1)
    simulation.create_topic(name)
    load = run.load(name, rate_per_s=1000, consumers=1)
    simulation.run_until(lambda: len(load.acknowledged) >= records)
    run.value("took_ms", simulation.now_ms)
    run.value("even", run.seed % 2 == 0)
    run.value("who", name)
    run.settle()
'''

TROUBLE = '''
"""One kind of trouble for each value"""
import os, signal, time
from pathlib import Path

MATRIX = {"kind": ["none", "raise", "promise", "events", "virtual", "wall", "memory"]}
BUDGET = {"events": 20_000, "virtual_s": 500, "wall_s": 4, "memory_mb": 300}

def scenario(run, kind: str = "none"):
    simulation = run.simulation(1)
    if kind == "raise":
        raise RuntimeError("the run broke")
    if kind == "promise":
        run.problem("a promise was broken")
    if kind == "virtual":
        simulation.run_for(10_000_000)
    if kind == "events":
        simulation.create_topic("t")
        run.load("t", rate_per_s=10_000)
        simulation.run_for(100_000)
    if kind == "wall":
        while True:
            pass
    if kind == "memory":
        held = []
        while True:
            held.append(bytearray(100_000_000))
    if kind == "die":
        os.kill(os.getpid(), signal.SIGKILL)
'''

SCENARIO = """
description = "a leader dies and comes back"
matrix.cluster.brokers = [2, 3]

[cluster]
topics.orders = {replication_factor = 2}
config.zookeeper.session.timeout.ms = 6000

[workload]
rate_per_s = 20

[[faults]]
at_ms = 1000
action = "kill"
broker = "leader:orders-0"

[stop]
at_ms = 10_000

[batch]
runs = 2
"""


LONG = '''
"""A small cluster whose runs take some time, and are taken to be long"""

RUNS = 12
MATRIX = {"records": [100, 200]}

def cost(records):
    return 4.0

def scenario(run, records: int = 100):
    simulation = run.simulation(1)
    simulation.create_topic("t")
    load = run.load("t", rate_per_s=100)
    simulation.run_until(lambda: len(load.acknowledged) >= records)
    run.settle()
'''
"""Suite of runs that Spark takes for long: its jobs stay short, so a batch can end in between."""


def written(folder: Path, text: str, name: str) -> str:
    """Write a suite into a file and return its path."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)
