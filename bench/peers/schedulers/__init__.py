"""The schedulers that are compared, one file each."""

from typing import Final

from bench.peers.peer import Peer
from bench.peers.schedulers.kai import KAI
from bench.peers.schedulers.koordinator import Koordinator
from bench.peers.schedulers.kueue import KueueWithKubeScheduler
from bench.peers.schedulers.native import KubeNexus, KubeScheduler
from bench.peers.schedulers.scheduler_plugins import SchedulerPlugins
from bench.peers.schedulers.volcano import Volcano
from bench.peers.schedulers.yunikorn import YuniKorn

PEERS: Final[dict[str, type[Peer]]] = {
    each.name: each
    for each in (
        KubeScheduler,
        SchedulerPlugins,
        KueueWithKubeScheduler,
        Volcano,
        YuniKorn,
        Koordinator,
        KAI,
        KubeNexus,
    )
}
