"""Work inside namespaces: `python -I inside.py configure|read|exec ...`.

    configure           JSON on standard input: for each namespace its path, the batches of `ip` and
                        `tc`, settings of its own, and its devices
    run                 the same with batches only
    read                JSON of namespaces on standard input; prints what each has counted
    exec RECORD [NODE]  enter the namespace of a node, or of the rank that MPI says we are, and
                        become the command behind `--`; `ranks=2,1,2` in place of a node is how
                        many ranks each terminal has

Runs by its path on the standard library alone, so that a rank starts in milliseconds.
"""

import ctypes
import json
import os
import re
import select
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

CLONE_NEWNET, CLONE_NEWNS = 0x40000000, 0x00020000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
"""Linux flags of mounts: recursive, private."""

SETTINGS = {
    "ipv4/ip_forward": "1",
    "ipv4/fib_multipath_hash_policy": "1",
    "ipv4/tcp_rto_min_us": "5000000",
    "ipv4/tcp_early_retrans": "0",
    "ipv4/tcp_slow_start_after_idle": "0",
    "ipv4/tcp_no_metrics_save": "1",
    "ipv4/tcp_congestion_control": "cubic",
    "ipv6/conf/all/forwarding": "1",
    "ipv6/conf/all/seg6_enabled": "1",
    "ipv6/fib_multipath_hash_policy": "1",
}
"""Settings of a namespace: nodes forward; TCP tolerates long queues."""

DEVICE_SETTINGS = {
    "ipv4/conf/{}/rp_filter": "0",
    "ipv6/conf/{}/accept_dad": "0",
    "ipv6/conf/{}/seg6_enabled": "1",
}
"""Settings of a device: return paths may differ."""

COMMANDS = {"ip": ["ip"], "ip6": ["ip", "-6"], "tc": ["tc"]}
"""Command for each kind of batch."""

LAUNCHER, LAUNCHER_PORT = "PMIX_SERVER_URI", re.compile(r";tcp4://127\.0\.0\.1:(\d+)$")
"""Environment variables of Open MPI's launcher address, and its port."""

RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "RANK")
"""Environment variables with the rank of a process."""

_libc = ctypes.CDLL(None, use_errno=True)


def main(words: list[str]) -> None:
    """Run the command named by the first word."""
    modes = {"configure": _configure, "run": _run_batches, "read": _read}
    if words[0] == "exec":
        _become(words[1:])
    else:
        modes[words[0]]()


def enter(namespace: str) -> None:
    """Move this process into a network namespace."""
    with Path(namespace).open("rb") as file:
        _check(_libc.setns(file.fileno(), CLONE_NEWNET), f"cannot enter {namespace}")


def _configure() -> None:
    # What we mount is for us alone.
    _check(_libc.unshare(CLONE_NEWNS), "cannot have mounts of our own")
    _check(_libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None), "cannot make / private")
    for each in json.load(sys.stdin):
        enter(each["namespace"])
        for key, value in {**SETTINGS, **each["settings"]}.items():
            _set(key, value)
        for device in ["all", "default", *each["devices"]]:
            for key, value in DEVICE_SETTINGS.items():
                _set(key.format(device), value)
        _batch("ip", each["ip"], each["namespace"])
        _batch("tc", each["tc"], each["namespace"])
        _pin(each["devices"])


def _run_batches() -> None:
    for each in json.load(sys.stdin):
        enter(each["namespace"])
        for tool in COMMANDS:
            if each.get(tool):
                _batch(tool, each[tool], each["namespace"])


def _set(key: str, value: str) -> None:
    # Kernels differ in what they have; what matters shows in what is measured.
    with suppress(OSError):
        Path("/proc/sys/net", key).write_text(value)


def _batch(tool: str, text: str, where: str) -> None:
    # Without -force: the first line that fails ends it.
    done = subprocess.run(
        [*COMMANDS[tool], "-batch", "-"], input=text, text=True, capture_output=True, check=False
    )
    if done.returncode:
        _fail(f"{where}: {tool}: {done.stderr.strip()}")


def _pin(devices: list[str]) -> None:
    """Pin each device's packets to one processor, so that they keep their order."""
    _check(_libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None), "cannot mount sysfs")
    for index, device in enumerate(devices):
        cpu = index % (os.cpu_count() or 1)
        groups = [0] * (cpu // 32) + [1 << cpu % 32]
        mask = ",".join(f"{group:x}" for group in reversed(groups))
        with suppress(OSError):
            Path(f"/sys/class/net/{device}/queues/rx-0/rps_cpus").write_text(mask)
    _check(_libc.umount2(b"/sys", 2), "cannot unmount sysfs")


def _read() -> None:
    found = []
    for namespace in json.load(sys.stdin):
        enter(namespace)
        shown = subprocess.run(
            ["tc", "-s", "-j", "qdisc", "show"], text=True, capture_output=True, check=False
        )
        buckets = [row for row in json.loads(shown.stdout or "[]") if row.get("kind") == "tbf"]
        found.append(
            {
                "sent": {row["dev"]: row["bytes"] for row in buckets},
                "drops": {row["dev"]: row["drops"] for row in buckets},
                "queued": {row["dev"]: row["backlog"] for row in buckets},
                "retransmits": _retransmits(),
            }
        )
    json.dump(found, sys.stdout)


def _retransmits() -> int:
    lines = Path("/proc/thread-self/net/snmp").read_text().splitlines()
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])


def _become(words: list[str]) -> None:
    cut = words.index("--")
    record = json.loads(Path(words[0]).read_text(encoding="utf-8"))
    asked, terminals = words[1] if cut > 1 else "", record["terminals"]
    if asked.startswith("ranks="):
        counts = map(int, asked.partition("=")[2].split(","))
        terminals = [n for n, ranks in zip(terminals, counts, strict=True) for _ in range(ranks)]
        asked = ""
    node = int(asked) if asked else _own_node(terminals)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    enter(record["namespaces"][node])
    for port in _launcher_ports():
        _relay(port, home)
    os.close(home)
    host = {"ALLTOALL_HOST": record["hosts"][node]}
    os.environ.update({**record["environment"], **host, **os.environ})
    try:
        os.execvp(words[cut + 1], words[cut + 1 :])
    except OSError as error:
        _fail(f"{words[cut + 1]}: {error.strerror}", 127)


def _launcher_ports() -> set[int]:
    """Return the ports of the machine at which a launcher waits for this rank."""
    found = (LAUNCHER_PORT.search(os.environ[key]) for key in os.environ if LAUNCHER in key)
    return {int(match[1]) for match in found if match}


def _relay(port: int, home: int) -> None:
    """Relay connections to a port of this namespace to the same port of the machine.

    A socket belongs to the namespace it was made in, so a process that was in both can relay bytes.
    Messages from ranks to their launcher thus bypass the fabric. The relay outlives the rank and is
    no child of it.
    """
    rank = os.pidfd_open(os.getpid())
    with socket.socket() as door:
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            door.bind(("127.0.0.1", port))
        except OSError:  # another rank of this node has a relay
            return
        door.listen()
        child = os.fork()
        if child:
            os.close(rank)
            os.waitpid(child, 0)
            return
        if os.fork() == 0:
            _check(_libc.setns(home, CLONE_NEWNET), "cannot go back to the machine")
            _pass_on(door, port, rank)
        os._exit(0)


def _pass_on(door: socket.socket, port: int, rank: int) -> None:
    other: dict[socket.socket, socket.socket] = {}
    alive = [rank]
    while alive or other:
        files: list[int | socket.socket] = [door, *alive, *other]
        for ready in select.select(files, [], [])[0]:
            if isinstance(ready, int):
                alive.clear()
            elif ready is door:
                here, there = door.accept()[0], socket.create_connection(("127.0.0.1", port))
                other[here], other[there] = there, here
            elif ready in other:
                try:
                    data = ready.recv(1 << 16)
                    other[ready].sendall(data)
                except OSError:
                    data = b""
                if not data:
                    gone = other.pop(ready)
                    del other[gone]
                    ready.close()
                    gone.close()


def _own_node(terminals: list[int]) -> int:
    """Return the node of the rank that this process is."""
    rank = int(next((os.environ[key] for key in RANK_VARIABLES if key in os.environ), -1))
    if not 0 <= rank < len(terminals):
        _fail(
            f"no launcher says which of {len(terminals)} ranks this is, or it says another; start "
            "as many ranks by mpiexec, or name a node"
        )
    return terminals[rank]


def _check(code: int, problem: str) -> None:
    if code:
        _fail(f"{problem}: {os.strerror(ctypes.get_errno())}")


def _fail(message: str, code: int = 1) -> None:
    sys.stderr.write(f"{message}\n")
    raise SystemExit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
