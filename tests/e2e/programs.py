# SPDX-License-Identifier: BSD-3-Clause
"""Runs stock testpmd and other DPDK programs with the driver, and checks that sums add up."""
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

from captures import REPO

sys.path.append(str(REPO / "tests" / "fake_verbs"))
import make_sysfs  # noqa: E402

PATIENCE_S = 60  # for anything to happen; never a measure of speed
ON_CARD = os.environ.get("NM_E2E_HCA") == "verbs"  # every port a card's: the fake libibverbs'
# What the driver itself understands; all else is about the device.
DRIVER_KEYS = {"mode", "split", "header", "tx_inline", "spill", "min_posted", "promiscuous", "mac",
               "guard"}


def build():
    return pathlib.Path(os.environ.get("NICMEM_BUILD", REPO / "build"))


def driver_object():
    return build() / "drivers" / "net" / "nicmem" / "librte_net_nicmem.so"


def driver():
    return subprocess.run([REPO / "scripts" / "pmd_dir.sh", driver_object()], check=True,
                          text=True, capture_output=True).stdout.strip()


def stock(*command):
    """The command of a program that is not ours. A driver built under AddressSanitizer loads only
    where its runtime was first; what such a program itself leaks is not reported."""
    needed = subprocess.run(["readelf", "-d", driver_object()], check=True, text=True,
                            capture_output=True).stdout
    runtimes = re.findall(r"\[(lib(?:asan|ubsan)\.so[.\d]*)\]", needed)
    if not runtimes:
        return list(command)
    return ["env", f"LD_PRELOAD={':'.join(runtimes)}", "ASAN_OPTIONS=detect_leaks=0", *command]


class FakeCards:
    """Ports of the model's, made ports of cards that the fake libibverbs has: `vdevs` as they are
    to be given, and `environment` for the program."""

    def __init__(self, vdevs):
        self.vdevs, cards = [], []
        for vdev in vdevs:
            name, *arguments = vdev.split(",")
            if not name.startswith("net_nicmem"):
                self.vdevs.append(vdev)
                continue
            keys = [argument.split("=")[0] for argument in arguments]
            card = f"mlx5_{len(cards)}"
            ours = [a for a, key in zip(arguments, keys) if key in DRIVER_KEYS]
            its = [a for a, key in zip(arguments, keys) if key not in DRIVER_KEYS]
            self.vdevs.append(",".join([name, "hca=verbs", f"ibdev={card}", *ours]))
            cards.append(",".join([card, *its, "unmatched=wait"]))
        self.folder = tempfile.TemporaryDirectory()
        make_sysfs.make(self.folder.name, {f"mlx5_{i}": "" for i in range(len(cards))})
        self.report = pathlib.Path(self.folder.name, "report")
        self.environment = {
            "NM_FAKE_VERBS": ";".join(cards), "NM_FAKE_VERBS_SYSFS": self.folder.name,
            "NM_FAKE_VERBS_REPORT": str(self.report),
            "LD_PRELOAD": str(build() / "tests" / "fake_verbs" / "libfake_verbs.so")}

    def left_over(self):
        """Objects that the program has not destroyed; None if it has not ended in order."""
        if not self.report.exists():
            return None
        said = dict(line.split(" ", 1) for line in self.report.read_text().splitlines())
        return int(said["leaked"]) + int(said["live"])


def eal(prefix, memory=512, lcores="0,1"):
    return ["-l", lcores, "--no-huge", "-m", str(memory), "--no-pci", "--file-prefix",
            f"{prefix}{os.getpid()}", "-d", driver()]


class Testpmd:
    """One stock testpmd, driven through its prompt."""

    count = 0  # one that a failed test has left behind is not in the way of the next

    def __init__(self, vdevs, app=(), memory=512, eal_arguments=None, command=None):
        """`command`: all of the command, in place of the one that is made of the others."""
        Testpmd.count += 1
        self.cards = FakeCards(vdevs) if ON_CARD and command is None else None
        if self.cards:
            vdevs = self.cards.vdevs
        if command is None:
            command = stock("stdbuf", "-oL", "dpdk-testpmd",
                            *(eal_arguments or eal(f"e2e{Testpmd.count}-", memory)))
            for vdev in vdevs:
                command += ["--vdev", vdev]
            command += ["--", "-i", *app]
        environment = os.environ | (self.cards.environment if self.cards else {})
        self.process = subprocess.Popen(command, cwd=REPO, env=environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, errors="replace")
        self.output = ""
        self.marks = 0

    def say(self, *commands):
        """Gives commands; returns what was printed until they were done."""
        self.marks += 1
        if self.process.poll() is not None:
            raise RuntimeError(f"testpmd has ended or did not answer: {self.output[-3000:]}")
        for command in commands:
            self.process.stdin.write(command + "\n")
        # an unknown command is answered with itself: it marks the end of the others' output
        self.process.stdin.write(f"mark{self.marks}\n")
        self.process.stdin.flush()
        said = ""
        watchdog = threading.Timer(PATIENCE_S, self.process.kill)
        watchdog.start()
        for line in self.process.stdout:
            said += line.replace("\r", "")
            if f"mark{self.marks}" in line and "testpmd>" in line:
                break
        watchdog.cancel()
        self.output += said
        return said

    def received(self):
        """Packets that each port's application has received."""
        return [int(n) for n in re.findall(r"RX-packets: (\d+)", self.say("show port stats all"))]

    def wait_for(self, done):
        """Until `done()` or patience ends; whether it did."""
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if done():
                return True
            time.sleep(0.05)
        return False

    def xstats(self, port):
        said = self.say(f"show port xstats {port}")
        return {name: int(value) for name, value in re.findall(r"^(\w+): (\d+)$", said, re.M)}

    def quiet_xstats(self, ports, cut=None):
        """Statistics of `ports` once their devices have sent what they were given. `cut`: for each
        port, how many frames more than packets leave, because the device cuts them into segments;
        they are taken off what it has sent."""

        def now():
            found = [self.xstats(port) for port in ports]
            for x, more in zip(found, cut or []):
                x["tx_device_frames"] -= more
            return found

        self.wait_for(lambda: all(unsent(x) == 0 for x in now()))
        return now()

    def end(self):
        """Ends it without a word, if a test has left it behind."""
        self.process.kill()
        self.process.communicate()
        if self.cards:
            self.cards.folder.cleanup()

    def quit(self):
        try:
            rest, _ = self.process.communicate("quit\n", timeout=PATIENCE_S)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self.process.kill()
            rest, _ = self.process.communicate()
        self.output += rest.replace("\r", "")
        if self.cards and self.process.returncode == 0 and self.cards.left_over() != 0:
            self.output += f"objects left on the card: {self.cards.left_over()}\n"
            return "leaked"
        return self.process.returncode


def unsent(x):
    return x["tx_good_packets"] - x["tx_device_frames"] - x["tx_wire_drops"]


def given(x):
    """Packets that the program has given the port to send."""
    return x["tx_good_packets"] + x["tx_stopped"] + sum(x[k] for k in NEVER if k.startswith("tx_"))


def dropped_by_program(stop_output):
    """Packets that testpmd itself has dropped, by port, from what it says at `stop`."""
    return {int(port): int(count) for port, count in re.findall(
        r"Forward statistics for port (\d+) .*?TX-dropped: (\d+)", stop_output, re.S)}


# Counters that a well-behaved program on a healthy device leaves at 0.
NEVER = ("nicmem_reads", "slow_reads", "slow_reads_refused", "rx_wqe_error", "tx_wqe_error",
         "tx_device_error", "tx_foreign_memory", "tx_unknown_memory", "tx_too_many_segments",
         "tx_empty", "tx_bad_length")


def problems_of(x, offered=None, dropped=None, in_flight=None):
    """What does not add up in a quiet port's statistics; an empty list is good. `offered`: frames
    that the wire had; else what its generator made. `dropped`: by a program that sends all else
    out of the port that it came from. `in_flight`: of all ports that send what came by this one;
    else its own. README.md of the driver has the equations."""
    found = []

    def check(name, left, right):
        if left != right:
            found.append(f"{name}: {left} != {right}")

    kept = ("rx_device_frames", "rx_no_buffer", "rx_oversize", "rx_filtered", "rx_dropped_by_rule",
            "rx_wqe_error", "rx_malformed", "wire_held")
    check("offered", x["wire_generated"] if offered is None else offered, sum(x[k] for k in kept))
    check("received", x["rx_device_frames"],
          x["rx_good_packets"] + x["rx_no_mbuf"] + x["rx_stopped"])
    check("not sent yet", unsent(x), 0)
    if dropped is not None:
        check("forwarded", x["rx_good_packets"], given(x) + dropped)
    in_flight = x["tx_in_flight"] if in_flight is None else in_flight
    for pool in ("nicmem", "host"):
        total = x[f"payload_{pool}_buffers"]
        held = total - x[f"payload_{pool}_free"] - x[f"payload_{pool}_posted"]
        if not 0 <= held <= in_flight:
            found.append(f"payload buffers, {pool}: {held} held, {in_flight} in flight")
    for name in NEVER:
        check(name, x[name], 0)
    return found


def no_namespaces():
    """Why no interfaces can be made in a namespace of our own; empty: they can."""
    probe = ["unshare", "-Urn", "ip", "link", "add", "nmv", "type", "veth", "peer", "name", "nmp"]
    try:
        done = subprocess.run(probe, capture_output=True, text=True)
    except FileNotFoundError as error:
        return str(error)
    return "" if done.returncode == 0 else f"namespaces (-Urn) and veth: {done.stderr.strip()}"


def telemetry(prefix, command):
    """DPDK's telemetry of the process with that file prefix, as root."""
    path = f"/var/run/dpdk/{prefix}/dpdk_telemetry.v2"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as link:
        link.settimeout(PATIENCE_S)
        link.connect(path)
        link.recv(1 << 16)  # the greeting
        link.send(command.encode())
        return json.loads(link.recv(1 << 16))
