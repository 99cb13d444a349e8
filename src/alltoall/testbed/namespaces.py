"""Make, inspect, cut and remove fabrics: the only file that calls `ip` and `tc`.

The record of a fabric is on disk before it is made, so that `down` always finds all of it. Only
namespaces in a record are touched; devices, addresses, routes and queues vanish with them.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from alltoall.errors import InputError, MissingComponentError, UsageError
from alltoall.ir.files.json.problem import topology_from_json, topology_to_json
from alltoall.ir.files.json.values import read_json, write_json
from alltoall.ir.files.text import exists
from alltoall.ir.topology import Topology
from alltoall.testbed.plan import IDENTITY, Device, Plan, bucket, merged

RECORDS = Path("/run/alltoall")
NAMESPACES = Path("/run/netns")
"""Folders of the records, which a reboot removes as it does the fabrics, and of `ip`'s
namespaces."""

DEFAULT_NAME = "bed"
FORMAT = "alltoall-testbed/1"

ENVIRONMENT = {
    "MPIR_CVAR_NOLOCAL": "1",
    "MPIR_CVAR_CH4_NETMOD": "ofi",
    "FI_PROVIDER": "tcp",
    "FI_TCP_IFACE": IDENTITY,
    "GLOO_SOCKET_IFNAME": IDENTITY,
    "TP_SOCKET_IFNAME": IDENTITY,
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,tcp",
    "OMPI_MCA_btl_tcp_if_include": IDENTITY,
    "OMPI_MCA_btl_tcp_eager_limit": "8388608",
    "OMPI_MCA_btl_tcp_rndv_eager_limit": "8388608",
    "OMPI_MCA_btl_tcp_max_send_size": "8388608",
}
"""Variables that keep MPICH, gloo and Open MPI on the fabric: no shared memory, and addresses of
its links. Open MPI's usual limits cost it half of a slow link."""

INSIDE = (sys.executable, "-I", "-S", str(Path(__file__).with_name("inside.py")))
GONE_SECONDS = 5.0
"""Grace period for processes inside a fabric before they are killed."""

CLOSED = "tbf rate 8kbit burst 1 limit 1"
"""The token bucket of a cut link, too small for any packet."""


@dataclass(frozen=True)
class Bed:
    """A fabric on this machine: its plan and its cut links.

    `owner` is the process that will remove it, 0 if it stays. `made` is set at the end of `up`;
    before that, namespaces may lack links.
    """

    plan: Plan
    owner: int = 0
    cut: tuple[int, ...] = ()
    made: bool = False

    @property
    def record(self) -> Path:
        """The file that lists what to remove."""
        return RECORDS / f"{self.plan.name}.json"

    @property
    def namespaces(self) -> list[str]:
        """The namespace of every node, as a path."""
        nodes = range(self.plan.topology.nodes)
        return [str(NAMESPACES / self.plan.namespace(node)) for node in nodes]

    def prefix(self, ranks: Sequence[int] = ()) -> list[str]:
        """Return the command prefix that runs a rank on its node.

        `ranks` is how many each terminal has, if not one.
        """
        counts = [f"ranks={','.join(map(str, ranks))}"] if ranks else []
        return [*INSIDE, "exec", str(self.record), *counts, "--"]

    def save(self) -> None:
        """Write the record."""
        RECORDS.mkdir(mode=0o755, parents=True, exist_ok=True)
        plan = self.plan
        write_json(
            self.record,
            {
                "format": FORMAT,
                "name": plan.name,
                "bytes_per_second": plan.bytes_per_second,
                "owner": self.owner,
                "cut": list(self.cut),
                "made": self.made,
                "namespaces": self.namespaces,
                "hosts": [plan.topology.node_name(node) for node in range(plan.topology.nodes)],
                "terminals": plan.topology.terminals.tolist(),
                "environment": ENVIRONMENT,
                "topology": topology_to_json(plan.topology),
            },
        )


@dataclass(frozen=True)
class Counted:
    """Bytes sent and dropped by all devices, and TCP retransmissions, since `up`."""

    sent: dict[tuple[int, str], int]
    drops: int
    queued: int
    retransmits: int


def up(topology: Topology, bytes_per_second: float, name: str, owner: int = 0) -> Bed:
    """Make a fabric; do nothing if the same one exists, and undo everything on failure.

    Remains of a killed `up` are removed first.
    """
    require_testbed()
    plan = Plan(name, merged(topology)[0], bytes_per_second)
    bed = Bed(plan, owner)
    with _locked():
        found = _read(name)
        if found is not None and found.plan == plan:
            if _is_whole(found):
                return mend(found) if found.cut else found
            _remove(found)
        elif found is not None:
            raise UsageError(
                f"a fabric {name!r} exists and is another ({_words(found)}); remove it by alltoall "
                f"testbed down --fabric {name}, or take another --fabric"
            )
        taken = [path for path in bed.namespaces if Path(path).exists()]
        if taken:
            raise UsageError(
                f"{taken[0]} exists, and no record says that alltoall made it; take another "
                "--fabric, or remove it yourself"
            )
        bed.save()
        try:
            _ip(plan.creation())
            rows = [
                {
                    "namespace": path,
                    "ip": plan.inside(node),
                    "tc": plan.limits(node),
                    "settings": plan.settings,
                    "devices": [device.name for device in plan.devices[node]],
                }
                for node, path in enumerate(bed.namespaces)
            ]
            _inside("configure", rows)
            whole = replace(bed, made=True)
            whole.save()
        except BaseException:
            _remove(bed)
            raise
    return whole


def down(name: str) -> bool:
    """Remove a fabric and end its processes; return whether it existed."""
    require_testbed()
    with _locked():
        bed = _read(name)
        if bed is not None:
            _remove(bed)
    return bed is not None


def beds() -> list[Bed]:
    """Return all recorded fabrics."""
    names = sorted(path.stem for path in RECORDS.glob("*.json"))
    return [bed for bed in map(_read, names) if bed is not None]


def bed_called(name: str) -> Bed:
    """Return the fabric of a name."""
    found = _read(name)
    if found is None:
        known = ", ".join(bed.plan.name for bed in beds()) or "there is none"
        raise UsageError(f"no fabric {name!r} ({known}); make it by alltoall testbed up SPEC")
    if not _is_whole(found):
        raise InputError(
            f"the fabric {name!r} is not whole: what made or removed it was stopped; "
            f"alltoall testbed down --fabric {name} removes what is left"
        )
    return found


def remove_orphans() -> None:
    """Remove the fabrics of processes that were killed before they could."""
    with _locked():
        for bed in beds():
            if bed.owner and not Path(f"/proc/{bed.owner}").exists():
                _remove(bed)


def cut(bed: Bed, ends: tuple[int, int]) -> Bed:
    """Cut the cable between two nodes: it drops every packet."""
    devices = _cable(bed, ends)
    _tc(bed, devices, CLOSED)
    links = {device.link for device in devices if device.link is not None}
    changed = replace(bed, cut=tuple(sorted({*bed.cut, *links})))
    changed.save()
    return changed


def cut_since(bed: Bed) -> str | None:
    """Return a message if a cable was cut or the fabric removed during a run, else None."""
    if not bed.record.exists():
        return f"fabric {bed.plan.name}: removed while this ran"
    # Asked often while others measure: nothing but the one line of the record is looked at.
    now: Any = read_json(bed.record)
    new = [bed.plan.topology.link_name(link) for link in now["cut"] if link not in bed.cut]
    if not new:
        return None
    return (
        f"{' and '.join(new)}: cut while this ran; make a schedule or routes for what is left "
        "(--remove-link), and run that on this fabric"
    )


def mend(bed: Bed) -> Bed:
    """Restore all cut cables and the original routes."""
    for cable in bed.plan.cables:
        if {device.link for device in cable} & set(bed.cut):
            for device in cable:
                _tc(bed, [device], bucket(device))
    changed = replace(bed, cut=())
    reroute(changed)
    changed.save()
    return changed


def reroute(bed: Bed) -> None:
    """Route around the cut cables."""
    without = frozenset(bed.cut)
    texts = ["\n".join(bed.plan.routes(node, without)) for node in range(len(bed.namespaces))]
    _inside("run", [{"namespace": n, "ip": t} for n, t in zip(bed.namespaces, texts, strict=True)])


def install(bed: Bed, batches: dict[int, str]) -> None:
    """Run a batch of `ip -6` in the namespaces of some nodes."""
    _inside("run", [{"namespace": bed.namespaces[n], "ip6": text} for n, text in batches.items()])


def counted(bed: Bed) -> Counted:
    """Read the counters of all devices."""
    rows: list[dict[str, Any]] = json.loads(_inside("read", bed.namespaces))
    return Counted(
        {(node, device): n for node, row in enumerate(rows) for device, n in row["sent"].items()},
        sum(sum(row["drops"].values()) for row in rows),
        sum(sum(row["queued"].values()) for row in rows),
        sum(row["retransmits"] for row in rows),
    )


def require_testbed() -> None:
    """Raise unless this machine can run a testbed."""
    problem = None
    if sys.platform != "linux":
        problem = f"this is {sys.platform}, and network namespaces are Linux's"
    elif os.geteuid() != 0:
        problem = "only root makes network namespaces, and this is another user"
    else:
        missing = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
        if missing:
            problem = f"there is no {' or '.join(missing)}; install iproute2"
    if problem:
        raise MissingComponentError(
            f"{problem}; to predict times, use alltoall simulate, and to move bytes without links "
            "that are emulated, alltoall run --on mpi"
        )


def _read(name: str) -> Bed | None:
    path = RECORDS / f"{name}.json"
    if not exists(path):
        return None
    value: Any = read_json(path)
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise InputError(f"{path} is no record of a fabric; remove it if nothing needs it")
    topology = topology_from_json(value["topology"], str(path))
    plan = Plan(value["name"], topology, value["bytes_per_second"])
    return Bed(plan, value["owner"], tuple(value["cut"]), value["made"])


def _is_whole(bed: Bed) -> bool:
    return bed.made and all(Path(path).exists() for path in bed.namespaces)


def _words(bed: Bed) -> str:
    topology = bed.plan.topology
    return f"{topology.name}, {topology.nodes} nodes, {8e-6 * bed.plan.bytes_per_second:g} Mbit/s"


def _remove(bed: Bed) -> None:
    """Remove the namespaces of a fabric, then its record."""
    left = [path for path in bed.namespaces if Path(path).exists()]
    _end_processes(left)
    _ip("".join(f"netns delete {Path(path).name}\n" for path in left))
    bed.record.unlink(missing_ok=True)


def _end_processes(namespaces: list[str]) -> None:
    """End the processes inside, which would keep a namespace alive."""
    deadline = time.monotonic() + GONE_SECONDS
    number = signal.SIGTERM
    while running := _processes_in(namespaces):
        for each in running:
            with suppress(ProcessLookupError):
                os.kill(each, number)
        if time.monotonic() > deadline:
            number = signal.SIGKILL
        time.sleep(0.02)


def _processes_in(namespaces: list[str]) -> list[int]:
    inodes = {Path(path).stat().st_ino for path in namespaces}
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (entry / "ns/net").stat().st_ino in inodes:
                found.append(int(entry.name))
    return found


def _cable(bed: Bed, ends: tuple[int, int]) -> list[Device]:
    for cable in bed.plan.cables:
        if {cable[0].node, cable[1].node} == set(ends):
            return list(cable)
    names = (bed.plan.topology.node_name(node) for node in ends)
    raise UsageError(f"no link between {' and '.join(names)} in {bed.plan.topology.name}")


def _tc(bed: Bed, devices: list[Device], queue: str) -> None:
    batches = [(each.node, f"qdisc replace dev {each.name} root {queue}\n") for each in devices]
    _inside("run", [{"namespace": bed.namespaces[node], "tc": text} for node, text in batches])


def _inside(mode: str, rows: list[Any]) -> str:
    return _run([*INSIDE, mode], json.dumps(rows))


def _ip(batch: str) -> None:
    _run(["ip", "-batch", "-"], batch)


def _run(command: list[str], text: str) -> str:
    done = subprocess.run(
        command, input=text, text=True, capture_output=True, check=False, close_fds=False
    )
    if done.returncode:
        raise MissingComponentError(
            f"the kernel refuses what a fabric needs ({done.stderr.strip()[-500:]}); to predict "
            "times, use alltoall simulate"
        )
    return done.stdout


@contextmanager
def _locked() -> Iterator[None]:
    """Hold the lock on making and removing fabrics.

    Child processes inherit the lock, so that the work of a killed `up` ends before `down`.
    """
    RECORDS.mkdir(mode=0o755, parents=True, exist_ok=True)
    with (RECORDS / ".lock").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
