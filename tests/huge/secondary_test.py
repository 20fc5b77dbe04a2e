#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Secondary processes beside a stock testpmd that forwards: they read, and never harm it.

NM_ROUNDS: how often they come and go (default 5; 100 by hand).
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import programs  # noqa: E402

SKIPPED = 77
PAGES = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
PREFIX = f"huge{os.getpid()}"
HUGE = tempfile.TemporaryDirectory()  # a hugetlbfs of the test's own is mounted here
ROUNDS = int(os.environ.get("NM_ROUNDS", "5"))


WANTED = int(os.environ.get("NM_HUGE_PAGES", "256"))  # pages; the primary takes half


def eal(*more):
    return ["--no-pci", "--huge-dir", HUGE.name, "--file-prefix", PREFIX, "-d",
            programs.driver(), *more]


class Primary(programs.Testpmd):
    def __init__(self):
        command = ["stdbuf", "-oL", "dpdk-testpmd", *eal("-l", "0,1", "-m", "256"), "--vdev",
                   "net_nicmem0,mode=nicmem,split=force,sram=1MiB", "--", "-i",
                   "--forward-mode=macswap", "--total-num-mbufs=8192"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, errors="replace")
        self.output = ""
        self.marks = 0


def secondary(*arguments):
    command = ["stdbuf", "-oL", "dpdk-proc-info", *eal(), "--", *arguments]
    return subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(process):
    try:
        out, _ = process.communicate(timeout=programs.PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, _ = process.communicate()
        return None, "does not end\n" + out
    return process.returncode, out


def kill_at_work(process):
    """Kills it once it has attached: a process that dies while it does may leave a lock of DPDK's
    shared configuration taken, which no driver can help."""
    for line in process.stdout:
        if "statistics" in line:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()


def check(what, good, detail=""):
    print(f"{'ok' if good else 'FAILED'}: {what}" + (f": {detail}" if not good else ""))
    return bool(good)


def forwards(primary):
    before = primary.received()[0]
    return primary.wait_for(lambda: primary.received()[0] > before)


def drv_41_secondaries_read_and_leave(primary):
    good = True
    for round_ in range(ROUNDS):
        status, out = finish(secondary("--xstats"))
        value = re.search(r"^rx_good_packets: (\d+)", out, re.M)
        good &= check(f"DRV-41 round {round_}: a secondary reads extended statistics",
                      status == 0 and value is not None and int(value[1]) > 0
                      and "rx_payload_nicmem_bytes" in out,
                      out[-2000:])
        status, out = finish(secondary("--stats"))
        good &= check(f"DRV-41 round {round_}: and basic ones", status == 0 and "RX-packets" in out,
                      out[-2000:])
        kill_at_work(secondary("--xstats"))
        good &= check(f"DRV-41 round {round_}: the primary forwards on", forwards(primary))
    return good


def drv_41_what_a_secondary_may_not_do_is_refused(primary):
    status, out = finish(secondary("--stats-reset"))
    return check("DRV-41 a secondary resets nothing",
                 status is not None and status >= 0 and "packets" not in out
                 and primary.xstats(0)["rx_good_packets"] > 0,
                 out[-2000:])


def drv_37_link_from_a_secondary(primary):
    status, out = finish(secondary("--show-port"))
    return check("DRV-37 a secondary reads the link",
                 status == 0 and "100" in out and "up" in out.lower(),
                 out[-2000:])


def drv_41_secondary_outlives_primary(primary):
    primary.say("stop")
    primary.process.kill()
    primary.process.communicate()
    status, _ = finish(secondary("--xstats"))
    return check("DRV-41 without a primary a secondary ends by itself",
                 status is not None and status >= 0, status)


def main():
    if not PAGES.exists() or int(PAGES.read_text()) < WANTED:
        print(f"SKIP: needs {WANTED} free huge pages of 2 MiB (scripts/hugepages.sh)")
        return SKIPPED
    mounted = subprocess.run(["mount", "-t", "hugetlbfs", "-o", "pagesize=2M", "nicmem-test",
                              HUGE.name], stderr=subprocess.DEVNULL)
    if mounted.returncode != 0:
        print("SKIP: needs root, to mount a hugetlbfs")
        return SKIPPED
    primary = Primary()
    try:
        primary.say("start")
        good = check("the primary forwards", forwards(primary), primary.output[-2000:])
        for test in (drv_41_what_a_secondary_may_not_do_is_refused, drv_37_link_from_a_secondary,
                     drv_41_secondaries_read_and_leave, drv_41_secondary_outlives_primary):
            good &= test(primary)
        return 0 if good else 1
    finally:
        if primary.process.poll() is None:
            primary.process.kill()
            primary.process.communicate()
        subprocess.run(["umount", "--lazy", HUGE.name], check=True)


if __name__ == "__main__":
    sys.exit(main())
