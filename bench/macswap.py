#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Stock testpmd macswap over net_nicmem, beside net_vhost + virtio_user and a pair of net_memif, in
interleaved rounds.

Each contender has two CPUs: net_nicmem one forwarding core and one core that runs the modelled
card; vhost and memif (with a client that copies nothing) one core on each side of the ring, both
forwarding. A figure is the packets per second through a forwarding core. Prints one JSON line a
run, then a table of medians, ranges and ratios.

Run as root, with 2 MiB huge pages (vhost needs shared memory), two CPUs, nothing else running:
  setsid sh -c 'echo -20 > /proc/self/autogroup; exec bench/macswap.py --pmd FILE'
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

BURST = "--rxd=1024 --txd=1024 --total-num-mbufs=32768 --mbuf-size=2176 --forward-mode=macswap"
EAL = "--no-pci --in-memory -m 512 --single-file-segments --force-max-simd-bitwidth=512"


class Testpmd:
    """One testpmd process, driven through its prompt."""

    def __init__(self, eal, app):
        self.process = subprocess.Popen(
            ["stdbuf", "-oL", "dpdk-testpmd", *eal.split(), "--", "-i", *app.split()],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def say(self, *commands):
        for command in commands:
            self.process.stdin.write(command + "\n")
        self.process.stdin.flush()

    def finish(self):
        self.say("quit")
        output, _ = self.process.communicate(timeout=60)
        return output.replace("\r", "")


def rates(output):
    """Rx packets per second that the `show port stats` commands printed, in Mpps."""
    return [int(value) / 1e6 for value in re.findall(r"Rx-pps:\s+(\d+)", output)]


def measure(process, seconds):
    """testpmd's rate is the average since the last `show`: the second one covers the window."""
    process.say("show port stats all")
    time.sleep(seconds)
    process.say("show port stats all")
    time.sleep(0.1)


def run_nicmem(options, frame_bytes, mode, seconds, queues=1):
    """With several queues, each has an lcore of its own; all of them share CPU 0."""
    lcores = ",".join(f"{i}@0" for i in range(queues + 1))
    vdev = (f"net_nicmem0,mode={mode},split=force,header=64,sram=8MiB,cpu=1,"
            f"gen_size={frame_bytes}")
    eal = f"--lcores {lcores} {EAL} --file-prefix nm -d {options.pmd} --vdev {vdev}"
    spread_over = f" --rxq={queues} --txq={queues} --nb-cores={queues} --rss-udp"
    process = Testpmd(eal, BURST + (spread_over if queues > 1 else ""))
    process.say("start")
    time.sleep(1.0)
    measure(process, seconds)
    return rates(process.finish())[-1]


def run_ring(host, guest, bursts, seconds):
    """Packets that circle between two programs, once both have them: rate of the first."""
    time.sleep(1.5)
    guest.say("start")
    time.sleep(0.3)
    host.say(f"start tx_first {bursts}")
    time.sleep(0.5)
    measure(host, seconds)
    rate = rates(host.finish())[-1]
    guest.finish()
    return rate


def wait_for(path):
    for _ in range(200):
        if os.path.exists(path):
            return
        time.sleep(0.05)


def run_vhost(_options, frame_bytes, seconds):
    with tempfile.TemporaryDirectory() as folder:
        socket = os.path.join(folder, "vhost.sock")
        app = f"{BURST} --no-lsc-interrupt --txpkts={frame_bytes}"
        vhost = f"net_vhost0,iface={socket},queues=1"
        host = Testpmd(f"--lcores 0@0,1@0 {EAL} --file-prefix vh --vdev {vhost}", app)
        wait_for(socket)
        virtio = (f"net_virtio_user0,path={socket},queues=1,queue_size=1024,packed_vq=1,"
                  "mrg_rxbuf=0,in_order=1,vectorized=1")
        guest = Testpmd(f"--lcores 0@1,1@1 {EAL} --file-prefix vu --vdev {virtio}", app)
        return run_ring(host, guest, 64, seconds)


def run_memif(_options, frame_bytes, seconds):
    with tempfile.TemporaryDirectory() as folder:
        socket = os.path.join(folder, "memif.sock")
        app = f"{BURST} --no-lsc-interrupt --txpkts={frame_bytes}"
        memif = f"net_memif0,socket={socket},socket-abstract=no,rsize=10,bsize=2048"
        host = Testpmd(f"--lcores 0@0,1@0 {EAL} --file-prefix ms --vdev {memif},role=server", app)
        wait_for(socket)
        guest = Testpmd(f"--lcores 0@1,1@1 {EAL} --file-prefix mc --vdev {memif},role=client,"
                        "zero-copy=yes", app)
        return run_ring(host, guest, 32, seconds)


def spread(values):
    return f"{statistics.median(values):5.2f} [{min(values):.2f}-{max(values):.2f}]"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pmd", required=True,
                        help="librte_net_nicmem.so, below no world-writable folder")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--two-queues", action="store_true",
                        help="also net_nicmem with two queues on two lcores")
    parser.add_argument("--seconds", type=float, default=1.2, help="of each window")
    options = parser.parse_args()
    contenders = {
        "vhost": lambda size: run_vhost(options, size, options.seconds),
        "memif, zero-copy client": lambda size: run_memif(options, size, options.seconds),
        "nicmem mode=host": lambda size: run_nicmem(options, size, "host", options.seconds),
        "nicmem mode=nicmem": lambda size: run_nicmem(options, size, "nicmem", options.seconds),
    }
    if options.two_queues:
        contenders["nicmem mode=nicmem, 2 queues"] = lambda size: run_nicmem(
            options, size, "nicmem", options.seconds, queues=2)
    results = {}
    for round_number in range(options.rounds):
        for size in (64, 1500):
            for name, run in contenders.items():
                mpps = run(size)
                results.setdefault((size, name), []).append(mpps)
                print(json.dumps({"round": round_number, "bytes": size, "name": name,
                                  "mpps": round(mpps, 3)}), flush=True)
    print(f"\n{'bytes':>5} {'contender':<28} {'median Mpps [range]':<24} ratio to vhost, by round")
    for (size, name), values in results.items():
        vhost = results[(size, "vhost")]
        ratios = [ours / theirs for ours, theirs in zip(values, vhost) if theirs > 0]
        print(f"{size:>5} {name:<28} {spread(values):<24} {spread(ratios)}")


if __name__ == "__main__":
    sys.exit(main())
