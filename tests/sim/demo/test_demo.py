"""What the demonstration claims is true, it fails when it is not, and nothing is left behind."""

import contextlib
import fcntl
import os
import pty
import re
import signal
import socket
import struct
import subprocess
import sys
import termios
from pathlib import Path

from kubenexus.base.clock import WallClock

COMMAND = [sys.executable, "-m", "kubenexus", "demo"]
CLOCK = WallClock()


def demo(*options: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **env})


def test_the_story_comes_true() -> None:
    done = demo()
    assert (done.returncode, done.stderr) == (0, "")
    acts = [line for line in done.stdout.splitlines() if re.match(r"[0-9]+\. ", line)]
    assert [line.split(":")[0] for line in acts] == [
        "1. A Deployment spreads",
        "2. Every node gets its daemon",
        "3. A batch of Jobs runs through",
        "4. A database starts in order",
        "5. A small pod leaves islands whole",
        "6. Tenants get the hardware of their tier",
        "7. GPUs go to who asks for them",
        "8. An urgent gang takes what it needs",
        "9. Two gangs want the same GPUs",
        "10. A gang is told what it lacks",
        "11. A node is drained",
        "12. A hopeless pod is told why",
    ]
    spread = "12 pods on 12 nodes, 6 in us-east-1a and 6 in us-east-1b: a service is spread, so that it loses little"
    assert spread in acts[0]
    assert "20 pods, one a node" in acts[1]
    packed = "40 pods of a second or two, all succeeded, on at most [1-5] of 12 nodes at once: a batch is packed, so"
    assert re.search(packed, acts[2])
    assert "db-0, db-1, db-2" in acts[3]
    assert re.search(r"from t4-[01] and broke no island of 8; .* the whole island of h100-[01]-[01]$", acts[4])
    assert "a gold tenant got an H100 at once; a bronze one filled 4 T4s, then 8 A100s, and only its next" in acts[5]
    assert acts[5].endswith("until they are the only place left")
    assert "h100-0-0, h100-0-1, h100-1-0, h100-1-1" in acts[6]
    assert "a gang of 5 nodes evicted none of the 4 trainers" in acts[7]
    assert "one of two nodes evicted two and ran" in acts[7]
    assert re.search(r"(red|blue) ran as a whole and (red|blue) held nothing meanwhile; then", acts[8])
    lacks = "4 of at least 6 members fit in the whole cluster; 2 more need 4 cpu, 2Gi memory, 4 nvidia.com/gpu."
    assert lacks in acts[9]
    assert acts[9].endswith("ms later all 6 have a node")
    assert re.search(r"[1-9] pods? left cpu-[0-9]+, which is cordoned", acts[10])
    assert "Insufficient nvidia.com/gpu" in acts[11]
    assert "kubectl --server=http://127.0.0.1:" in done.stdout
    assert re.search(r"[0-9]+ pods got a node; of the [0-9]+ that came once the scheduler ran half within", done.stdout)
    first = re.search(r"the first pod had its node after ([0-9.]+) s", done.stdout)
    assert first is not None
    assert float(first[1]) < 15


def test_without_a_scheduler_the_first_act_fails_and_says_so() -> None:
    done = demo("--scheduler=none", "--patience=0.5")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: act 1 (A Deployment spreads) failed: expected 12 pods of deployment shop with a node, "
        "saw 0 of 12 with a node after 0.5 s\n"
    )


def test_a_port_in_use_is_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = demo(f"--port={taken.getsockname()[1]}")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("Error: cannot listen on 127.0.0.1:")


# ---- its scheduler ---------------------------------------------------------------------------------------------------


class Playing:
    """A demonstration that is under way, from the line that tells its scheduler's process."""

    def __init__(self, *options: str, **env: str) -> None:
        pipe, command = subprocess.PIPE, [*COMMAND, *options]
        self.process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env={**os.environ, **env})
        assert self.process.stdout is not None
        found = re.search(r"process ([0-9]+)\.", self.process.stdout.readline())
        assert found is not None
        self.scheduler = int(found[1])

    def until(self, text: str) -> None:
        assert self.process.stdout is not None
        assert any(text in line for line in self.process.stdout), f"it ended without a word of {text}"

    def ended(self) -> tuple[int, str]:
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said

    def scheduler_runs(self) -> bool:
        """A zombie that nobody has fetched yet does not."""
        with contextlib.suppress(OSError):
            return Path(f"/proc/{self.scheduler}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
        return False


def test_a_paused_scheduler_fails_the_act_that_waits_for_it() -> None:
    playing = Playing("--patience=2")
    os.kill(playing.scheduler, signal.SIGSTOP)
    code, said = playing.ended()
    assert code == 1
    assert said.startswith(
        "Error: act 1 (A Deployment spreads) failed: expected 12 pods of deployment shop with a node"
    )
    assert not playing.scheduler_runs()


def test_a_scheduler_that_ends_breaks_the_story_off() -> None:
    playing = Playing()
    os.kill(playing.scheduler, signal.SIGKILL)
    code, said = playing.ended()
    assert code == 1
    assert said.startswith("Error: the story broke off: kubenexus-scheduler ended with code -9")


def test_an_interrupt_leaves_nothing_behind(tmp_path: Path) -> None:
    playing = Playing(TMPDIR=str(tmp_path))
    assert list(tmp_path.iterdir()) != []
    playing.process.send_signal(signal.SIGINT)
    assert playing.ended() == (130, "interrupted: the cluster is gone\n")
    assert not playing.scheduler_runs()
    assert list(tmp_path.iterdir()) == []


def test_what_is_kept_stays_until_it_is_interrupted() -> None:
    playing = Playing("--keep", "--nodes=4")
    playing.until("The cluster stays")
    assert playing.scheduler_runs()
    playing.process.send_signal(signal.SIGINT)
    assert playing.ended() == (0, "")
    assert not playing.scheduler_runs()


def test_even_killed_it_takes_everything_along(tmp_path: Path) -> None:
    playing = Playing(TMPDIR=str(tmp_path))
    playing.process.kill()
    playing.ended()
    deadline = CLOCK.now() + 20
    while playing.scheduler_runs() or list(tmp_path.iterdir()):
        assert CLOCK.now() < deadline, "the scheduler or its folder is still there"


# ---- on a terminal ---------------------------------------------------------------------------------------------------


def test_an_interrupt_gives_the_terminal_back() -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    env = {**os.environ, "TERM": "xterm"}
    with subprocess.Popen(COMMAND, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        shown = b""
        while b"act 1 of 12" not in shown:
            shown += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the other end is closed
            while more := os.read(ours, 65536):
                shown += more
        assert process.wait(20) == 130
    os.close(ours)
    assert shown.startswith(b"\x1b[?1049h\x1b[?25l")
    assert b"\x1b[?25h\x1b[?1049l" in shown
    assert shown.endswith(b"interrupted: the cluster is gone\r\n")
