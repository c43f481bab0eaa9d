"""What the demonstration claims is true, and it fails when it is not."""

import subprocess
import sys


def demo(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "kubenexus", "demo", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_the_story_comes_true() -> None:
    done = demo()
    assert (done.returncode, done.stderr) == (0, "")
    acts = [line for line in done.stdout.splitlines() if line[:1].isdigit() and line[1:2] == "."]
    assert [line.split(":")[0] for line in acts] == [
        "1. A service spreads",
        "2. A batch runs through",
        "3. GPUs go to who asks for them",
        "4. A node is drained",
        "5. A hopeless pod is told why",
    ]
    assert "6 in us-east-1a and 6 in us-east-1b" in acts[0]
    assert "40 pods of a second each, all succeeded" in acts[1]
    assert "h100-0-0, h100-0-1, h100-1-0, h100-1-1" in acts[2]
    assert "Insufficient nvidia.com/gpu" in acts[4]
    assert "57 pods got a node" in done.stdout


def test_without_a_scheduler_the_first_act_fails_and_says_so() -> None:
    done = demo("--scheduler=none", "--patience=0.5")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: act 1, 'A service spreads', did not come true: every pod of the service has a node: "
        "not within 0.5 s; 0 of 12 pods have a node\n"
    )
