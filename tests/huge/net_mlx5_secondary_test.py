#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""net_mlx5's secondary process on the fake verbs: it maps the primary's doorbell page by the file
that verbs gave for it, and sends from a queue of its own. As root, in its own namespaces of network
and mounts."""
import os
import pathlib
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / folder)
                for folder in ("e2e", "verbs", "fake_verbs")]
import make_sysfs  # noqa: E402
import net_mlx5  # noqa: E402
import programs  # noqa: E402

PAGES = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
WANTED = int(os.environ.get("NM_HUGE_PAGES", "256"))


def testpmd(kind, number, huge):
    arguments = ["-l", "0,1", "--proc-type", kind, "--huge-dir", huge, "--file-prefix",
                 f"mlx5mp{os.getppid()}", "-a", f"{make_sysfs.address(0)},dv_flow_en=0"]
    if kind == "primary":
        arguments += ["-m", "256"]
    return programs.Testpmd([], ["--num-procs=2", f"--proc-id={number}", "--rxq=2", "--txq=2",
                                 "--nb-cores=1", "--total-num-mbufs=8192",
                                 "--no-mlockall"], eal_arguments=arguments)


def sent(program, queue):
    return program.xstats(0)[f"tx_q{queue}_packets"]


def run(huge):
    primary = testpmd("primary", 0, huge)
    secondary = None
    try:
        primary.say("set fwd txonly")
        secondary = testpmd("secondary", 1, huge)
        secondary.say("set fwd txonly", "start")
        moved = secondary.wait_for(lambda: sent(secondary, 1) > 10000)
        secondary.say("stop")
        print(f"{'ok' if moved else 'FAILED'}: the secondary sends by a queue of its own",
              "" if moved else secondary.output[-3000:])
        primary.say("start")
        both = primary.wait_for(lambda: sent(primary, 0) > 10000)
        primary.say("stop")
        print(f"{'ok' if both else 'FAILED'}: the primary sends beside it",
              "" if both else primary.output[-3000:])
        ended = secondary.quit() == 0 and primary.quit() == 0
        print(f"{'ok' if ended else 'FAILED'}: both end")
        return moved and both and ended
    finally:
        for program in (secondary, primary):
            if program is not None and program.process.poll() is None:
                program.end()


def main():
    if not PAGES.exists() or int(PAGES.read_text()) < WANTED:
        net_mlx5.skip(f"{WANTED} free huge pages of 2 MiB (scripts/hugepages.sh)")
    if os.geteuid() != 0:
        net_mlx5.skip("root, to mount a hugetlbfs")
    net_mlx5.enter_namespace("-nm")
    with tempfile.TemporaryDirectory() as huge:
        net_mlx5.run("mount", "-t", "hugetlbfs", "-o", "pagesize=2M", "nicmem-test", huge)
        try:
            with net_mlx5.machine(["wire=gen,gen_frames=1"]):
                return 0 if run(huge) else 1
        finally:
            net_mlx5.run("umount", huge)


if __name__ == "__main__":
    sys.exit(main())
