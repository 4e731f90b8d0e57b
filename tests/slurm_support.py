"""A Slurm of one test: a controller and three nodes, processes of this machine.

Everything of it is in the test's folder, munge's socket and key too, so that it
meets no Slurm that is there already."""
import os
import shutil
import signal
import socket
import subprocess
import time

import pytest
from conftest import PATIENCE, free_port

PROGRAMS = "munged slurmctld slurmd sbatch sinfo squeue scontrol scancel".split()
WHERE = os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"

# cred_expire: how long a task that was put back waits, 120 seconds if nothing is said.
CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={at}/munge.socket,cred_expire=5
CryptoType=crypto/munge
StateSaveLocation={at}/state
SlurmdSpoolDir={at}/spool.%n
SlurmctldPidFile={at}/slurmctld.pid
SlurmdPidFile={at}/slurmd.%n.pid
SlurmctldLogFile={at}/slurmctld.log
SlurmdLogFile={at}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=1
ReturnToService=2
SlurmdTimeout=10
InactiveLimit=0
KillWait=1
MinJobAge=300
MpiDefault=none
JobRequeue=1
MailProg=/bin/true
{nodes}
PartitionName=all Nodes=n[1-3] Default=YES MaxTime=INFINITE State=UP
"""


def need():
    """Skip, with the reason, where Slurm cannot be started."""
    for name in PROGRAMS:
        if not shutil.which(name, path=WHERE):
            pytest.skip(f"no {name}; slurm-wlm and munge bring it")
    if os.geteuid() != 0:
        pytest.skip("only root can start a Slurm")


class Slurm:
    def __init__(self, at):
        self.at = at
        self.children = {}
        self.env = {**os.environ, "PATH": WHERE, "SLURM_CONF": str(at / "slurm.conf")}
        host = socket.gethostname().split(".")[0]
        ports = [free_port() for _ in range(4)]
        nodes = "\n".join(f"NodeName=n{i} NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[i]} "
                          "CPUs=2 RealMemory=4000" for i in (1, 2, 3))
        (at / "slurm.conf").write_text(CONF.format(host=host, at=at, ports=ports, nodes=nodes))
        (at / "state").mkdir()

    def begin(self):
        at = self.at
        (at / "key").write_bytes(os.urandom(128))
        (at / "key").chmod(0o400)
        self.start("munged", "--foreground", "--force", f"--key-file={at}/key",
                   f"--socket={at}/munge.socket", f"--pid-file={at}/munge.pid",
                   f"--log-file={at}/munge.log", f"--seed-file={at}/munge.seed")
        self.until(lambda: (at / "munge.socket").exists())
        self.start("slurmctld", "-D", "-i")
        for i in 1, 2, 3:
            (at / f"spool.n{i}").mkdir()
            self.node(i)
        self.until(lambda: self.out("sinfo", "-h", "-o", "%T %D").split() == ["idle", "3"])

    def start(self, name, *argv):
        key = " ".join((name, *argv))
        self.children[key] = subprocess.Popen(
            [shutil.which(name, path=WHERE), *argv], env=self.env, cwd=self.at,
            stdin=subprocess.DEVNULL, stdout=open(self.at / f"{name}.out", "a"),
            stderr=subprocess.STDOUT, start_new_session=True)

    def node(self, i):
        self.start("slurmd", "-D", "-N", f"n{i}")

    def kill_node(self, i):
        """All of a machine at once: its daemon, and what that runs."""
        child = self.children[f"slurmd -D -N n{i}"]
        child.kill()
        child.wait()
        for pid in self.tasks(f"n{i}"):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def tasks(self, node=None):
        """Processes that belong to jobs of this Slurm, on one of its nodes."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                env = open(f"/proc/{pid}/environ", "rb").read()
                name = open(f"/proc/{pid}/comm").read().strip()
            except OSError:
                continue
            if (f"SLURM_CONF={self.at}/slurm.conf".encode() in env and b"SLURM_JOB_ID=" in env
                    and (node is None or f"SLURMD_NODENAME={node}\0".encode() in env)
                    and name.startswith(("bloomery", "slurm_script"))):
                found.append(int(pid))
        return found

    def out(self, *argv):
        return subprocess.run(argv, env=self.env, capture_output=True, text=True).stdout

    def until(self, holds):
        end = time.monotonic() + PATIENCE
        while not holds():
            dead = [name for name, child in self.children.items() if child.poll() is not None]
            assert not dead, (dead, self.logs())
            assert time.monotonic() < end, self.logs()
            time.sleep(0.05)

    def logs(self):
        return "\n".join(f"--- {p.name}\n{p.read_text(errors='replace')[-1500:]}"
                         for p in sorted(self.at.glob("*.log")) + sorted(self.at.glob("*.out")))

    def stop(self):
        subprocess.run(["scancel", "--full", "--user=root"], env=self.env, capture_output=True)
        for child in self.children.values():
            if child.poll() is None:
                child.terminate()
        for child in self.children.values():
            try:
                child.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        for pid in self.tasks():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
