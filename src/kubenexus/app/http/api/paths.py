"""The paths of the live API, for the server and for clients."""

from typing import Final

ROOT: Final = "/api/v1"
DECISIONS: Final = f"{ROOT}/decisions"
DEVICES: Final = f"{ROOT}/devices"
ETA: Final = f"{ROOT}/eta"
EXPLAIN: Final = f"{ROOT}/explain"
GANGS: Final = f"{ROOT}/gangs"
JOBS: Final = f"{ROOT}/jobs"
MAP: Final = f"{ROOT}/map"
NODES: Final = f"{ROOT}/nodes"
QUEUES: Final = f"{ROOT}/queues"
WHATIF: Final = f"{ROOT}/whatif"
PATHS: Final = (DECISIONS, DEVICES, ETA, EXPLAIN, GANGS, JOBS, MAP, NODES, QUEUES, WHATIF)
