"""Shell scripts that install routes on a Linux host, and that undo it.

Scripts contain no untrusted text as code: host names appear in one-line comments, file names have
safe letters only, and addresses and devices are parsed before.
"""

from dataclasses import dataclass, field

from alltoall.errors import FormatError
from alltoall.ir.names import file_stem
from alltoall.ir.topology import Topology
from alltoall.ir.words import one_line

PROTOCOL = 177
"""The `proto` of our routes and rules, which identifies them for removal."""

SETTINGS = {
    "-4": ("ipv4/ip_forward 1", "ipv4/conf/all/rp_filter 0"),
    "-6": ("ipv6/conf/all/forwarding 1", "ipv6/conf/all/seg6_enabled 1"),
}
DEVICE_SETTING = {"-4": "ipv4/conf/{}/rp_filter 0", "-6": "ipv6/conf/{}/seg6_enabled 1"}
"""Settings below /proc/sys/net: hosts forward, return paths may differ, segments are accepted."""

SHARED_SETTING = {
    "-4": "ipv4/fib_multipath_hash_policy 1",
    "-6": "ipv6/fib_multipath_hash_policy 1",
}
"""Setting that balances next hops by connection, not by host."""

PRELUDE = """\
#!/bin/sh
# alltoall linux/1, steering={steering}: {deed} the routes of host {host} on {network}.
# As root: sh {own}, as often as you like; with --dry-run it prints its commands.
set -eu
kept=/run/alltoall-linux.{stem}
case "$*" in
"") dry= ;;
--dry-run) dry=1 ;;
*) echo "usage: sh $0 [--dry-run]" >&2; exit 2 ;;
esac
run() {{ if [ "$dry" ]; then echo "$*"; else "$@"; fi; }}
put() {{ if [ "$dry" ]; then echo "echo $2 > $1"; else echo "$2" > "$1"; fi; }}
has() {{ [ -z "$dry" ] && [ -n "$(ip "$@" 2> /dev/null)" ]; }}
batch() {{ if [ "$dry" ]; then sed 's/^/ip {family} /'; else ip {family} -batch -; fi; }}
"""

INSTALL = """\
setting() {{
    file=/proc/sys/net/$1
    if [ -z "$dry" ]; then
        old=$(cat "$file")
        [ "$old" != "$2" ] || return 0
        echo "$file $old" >> "$kept"
    fi
    put "$file" "$2"
}}
for device in {devices}; do
    [ "$dry" ] || has link show dev "$device" up || {{
        echo "$0: no device $device that is up; name those of this host with addresses=FILE" >&2
        exit 1
    }}
done
{settings}
if ! has {family} address show to {address}; then
    has link show dev a2a0 || run ip link add a2a0 type veth peer name a2a1
    run ip link set a2a0 up
    run ip link set a2a1 up
    run ip {family} address flush dev a2a0
    run ip {family} address add {address} dev a2a0{more}
fi
batch << 'END' || {{ echo "$0: not all is installed; run {other}" >&2; exit 1; }}
{lines}
END
"""

UNDO = """\
batch << 'END'
{lines}
END
{links}
if [ "$dry" ] || has link show dev a2a0; then run ip link delete a2a0; fi
if [ -e "$kept" ]; then
    tac "$kept" | while read -r file old; do put "$file" "$old"; done
    run rm "$kept"
fi
"""

FLUSH = [f"rule flush protocol {PROTOCOL}", f"route flush table all proto {PROTOCOL}"]


@dataclass
class HostScript:
    """The configuration of a host: address family, address, devices and commands."""

    family: str
    address: str
    devices: list[str]
    ends: list[str] = field(default_factory=list)
    """Addresses of links that arrive, each with its device: `ADDRESS dev DEVICE`."""
    lines: list[str] = field(default_factory=list)
    shared: bool = False

    def route(self, to: str, ways: list[tuple[int, str]], more: str) -> None:
        """Add a route by one next hop, or by several with their weights."""
        line = f"route add {to} {more} proto {PROTOCOL}"
        if len(ways) > 1:
            self.shared = True
            hops = " ".join(f"nexthop {way} weight {weight} onlink" for weight, way in ways)
        else:
            hops = f"{ways[0][1]} onlink"
        self.lines.append(f"{line} {hops}")

    def rule(self, text: str, preference: int) -> None:
        """Add a rule."""
        self.lines.append(f"rule add {text} pref {preference} protocol {PROTOCOL}")


def scripts(hosts: list[HostScript], topology: Topology, steering: str) -> dict[str, bytes]:
    """Return the two scripts of every host by their names."""
    found: dict[str, bytes] = {}
    for node, host in enumerate(hosts):
        name = topology.node_name(node)
        stem = _stem(name)
        files = [f"{stem}.sh", f"{stem}.undo.sh"]
        taken = next((file for file in files if file in found), None)
        if taken:
            raise FormatError(f"two hosts would have the file {taken}; rename host {name!r}")
        about = {
            "steering": steering,
            "host": one_line(name),
            "network": one_line(topology.name),
            "stem": stem,
            "family": host.family,
        }
        deeds = ((files, "installs", _install), (files[::-1], "removes", _undo))
        for (own, other), deed, body in deeds:
            text = PRELUDE.format(**about, own=own, deed=deed) + body(host, other)
            found[own] = text.encode()
    return found


def _stem(name: str) -> str:
    """Return a safe file name for a host: no option, not hidden."""
    stem = file_stem(name)
    return f"%{ord(stem[0]):02X}{stem[1:]}" if stem[0] in "-." else stem


def _install(host: HostScript, other: str) -> str:
    settings = [*SETTINGS[host.family], *map(DEVICE_SETTING[host.family].format, host.devices)]
    settings += [SHARED_SETTING[host.family]] if host.shared else []
    ends = [f"address replace {each} nodad noprefixroute" for each in host.ends]
    return INSTALL.format(
        devices=" ".join(host.devices),
        settings="\n".join(f"setting {each}" for each in settings),
        family=host.family,
        address=host.address,
        more=" nodad" if host.family == "-6" else "",
        other=other,
        lines="\n".join([*FLUSH, *ends, *host.lines]),
    )


def _undo(host: HostScript, other: str) -> str:
    ends = [each.partition(" dev ")[::2] for each in host.ends]
    links = [
        f'if [ "$dry" ] || has -6 address show dev {device} to {end}; then\n'
        f"    run ip -6 address delete {end} dev {device}\nfi"
        for end, device in ends
    ]
    lines = FLUSH if host.family == "-4" else FLUSH[1:]
    return UNDO.format(
        lines="\n".join(lines), links="\n".join([f"# {other} installs again", *links])
    )
