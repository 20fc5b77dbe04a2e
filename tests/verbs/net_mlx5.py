# SPDX-License-Identifier: BSD-3-Clause
"""Debian's unmodified net_mlx5 on the fake libibverbs, in a user namespace of its own: no root, no
card, and nothing is left behind."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "e2e"), str(TESTS / "fake_verbs")]
import make_sysfs  # noqa: E402
import programs  # noqa: E402

SKIPPED = 77
INSIDE = "NM_IN_NAMESPACE"
PMD = "librte_net_mlx5.so.23"


def skip(what):
    print(f"SKIP: needs {what}")
    sys.exit(SKIPPED)


def has_net_mlx5():
    return any(pathlib.Path("/usr/lib").glob(f"*/dpdk/pmds-*/{PMD}"))


def run(*command):
    subprocess.run(command, check=True)


def enter_namespace(kinds="-Urnm"):
    """Runs this program again in namespaces of users, network and mounts, unless it is there."""
    if INSIDE in os.environ:
        for place in ("/var/log", "/var/tmp"):  # net_mlx5 leaves a dump, and a socket, there
            run("mount", "-t", "tmpfs", "none", place)
        return
    if not has_net_mlx5():
        skip(f"{PMD} (Debian package librte-net-mlx5-23)")
    for tool in ("unshare", "ip", "dpdk-testpmd"):
        if shutil.which(tool) is None:
            skip(tool)
    probe = subprocess.run(["unshare", kinds, "ip", "link", "add", "nmv", "type", "veth", "peer",
                            "name", "nmp"], capture_output=True, text=True)
    if probe.returncode != 0:
        skip(f"namespaces ({kinds}) and veth interfaces: {probe.stderr.strip()}")
    os.environ[INSIDE] = "1"
    os.execvp("unshare", ["unshare", kinds, sys.executable, *sys.argv])


@contextlib.contextmanager
def machine(devices):
    """`devices`: their arguments, as the fake's. Makes what net_mlx5 looks for and a folder for the
    test's own files, and gives the latter."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for i in range(len(devices)):
            run("ip", "link", "add", f"nmv{i}", "type", "veth", "peer", "name", f"nmp{i}")
            run("ip", "link", "set", f"nmp{i}", "up")
            run("ip", "link", "set", f"nmv{i}", "up", "mtu", "9600")
        make_sysfs.make(folder / "sys", {f"mlx5_{i}": f"nmv{i}" for i in range(len(devices))})
        os.environ |= {
            "NM_FAKE_VERBS": ";".join(f"mlx5_{i},{d}" for i, d in enumerate(devices)),
            "NM_FAKE_VERBS_SYSFS": str(folder / "sys"), "RUNTIME_DIRECTORY": name,
            "NM_FAKE_VERBS_REPORT": str(folder / "report"),
            "SYSFS_PCI_DEVICES": str(folder / "sys" / "pci"),
            "LD_PRELOAD": str(programs.build() / "tests" / "fake_verbs" / "libfake_verbs.so")}
        try:
            yield folder
        finally:
            del os.environ["LD_PRELOAD"]
            for i in range(len(devices)):
                run("ip", "link", "del", f"nmv{i}")


def mac(index):
    """Of the device's network interface."""
    text = subprocess.run(["ip", "-br", "link", "show", f"nmv{index}"], check=True, text=True,
                          capture_output=True).stdout.split()[2]
    return bytes.fromhex(text.replace(":", ""))


class Testpmd(programs.Testpmd):
    """With one net_mlx5 port for each device. `arguments`: of each port, without a comma first."""

    def __init__(self, folder, devices=1, vdevs=(), arguments="", app=()):
        more = "," + arguments if arguments else ""
        ports = []
        for i in range(devices):
            ports += ["-a", f"{make_sysfs.address(i)},dv_flow_en=0{more}"]
        self.folder = folder
        super().__init__(vdevs, ["--total-num-mbufs=16384", "--nb-cores=1", *app],
                         eal_arguments=["-l", "0,1", "--no-huge", "-m", "512", "--file-prefix",
                                        f"mlx5{os.getpid()}-{programs.Testpmd.count}", *ports])

    def report(self):
        """What the fake says at the end: of calls, failed, leaked, live."""
        lines = (self.folder / "report").read_text().splitlines()
        return dict(line.split(" ", 1) for line in lines)
