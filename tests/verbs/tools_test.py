#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rdma-core's own programs, unmodified, list the fake device; the fake exports what is called."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS / "fake_verbs"), str(TESTS / "verbs")]
import check_symbols  # noqa: E402
import make_sysfs  # noqa: E402

FAKE = pathlib.Path(os.environ.get("NICMEM_BUILD", TESTS.parent / "build"),
                    "tests", "fake_verbs", "libfake_verbs.so")


def run(*command):
    with tempfile.TemporaryDirectory() as folder:
        make_sysfs.make(folder, {"mlx5_0": "", "mlx5_1": ""})
        fake = {"LD_PRELOAD": str(FAKE), "NM_FAKE_VERBS_SYSFS": folder,
                "NM_FAKE_VERBS": "mlx5_0,sram=128KiB,wire=loop;mlx5_1"}
        return subprocess.run(command, check=True, text=True, capture_output=True,
                              env=os.environ | fake).stdout


class Tools(unittest.TestCase):
    def test_ibv_devices_lists_both(self):
        names = [line.split()[0] for line in run("ibv_devices").splitlines()[2:]]
        self.assertEqual(names, ["mlx5_0", "mlx5_1"])

    def test_ibv_devinfo_tells_of_them(self):
        said = " ".join(run("ibv_devinfo", "-v", "-d", "mlx5_0").split())
        for words in ("hca_id: mlx5_0", "fw_ver: 16.35.3006", "vendor_part_id: 4119",
                      "maximum available device memory: 131072Bytes", "state: PORT_ACTIVE (4)",
                      "link_layer: Ethernet", "SUPPORT_RAW_PACKET", "board_id: NM_0000000001"):
            self.assertIn(words, said)

    def test_what_the_fake_lacks_is_found(self):
        self.assertEqual(check_symbols.missing(shutil.which("ibv_devices"), FAKE), [])
        self.assertEqual(check_symbols.missing(shutil.which("ibv_devinfo"), FAKE),
                         ["ibv_read_sysfs_file"])


if __name__ == "__main__":
    for tool in ("ibv_devices", "ibv_devinfo"):
        if shutil.which(tool) is None:
            print(f"SKIP: needs {tool} (Debian package ibverbs-utils)")
            sys.exit(77)
    sys.exit(unittest.main(verbosity=2))
