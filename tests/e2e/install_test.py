#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `meson install` puts where, and that programs can be built and run against it."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import programs
from captures import REPO

C_PROGRAM = """
#include <nicmem/nicmem.h>
#include <rte_pmd_nicmem.h>
int main(void) { struct nicmem_region region = {0}; return (int)region.size; }
"""
CPP_PROGRAM = """
#include <base/units.h>
#include <nicmem/heap.h>
#include <nicmem/memory.h>
#include <rte_pmd_nicmem.hpp>
int main() { return nicmem::parse_size("1KiB").value() == 1024 ? 0 : 1; }
"""


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        cls.done = subprocess.run(
            ["meson", "install", "-C", programs.build(), "--no-rebuild", "--destdir", cls.root],
            capture_output=True, text=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def one(self, pattern):
        found = list(self.root.rglob(pattern))
        self.assertEqual(len(found), 1, f"{pattern}: {found}\n{self.done.stdout[-2000:]}")
        return found[0]

    def test_everything_is_in_its_place(self):
        self.assertEqual(self.done.returncode, 0, self.done.stderr)
        for name in ("nicmem-l3fwd", "nicmem-demo", "nicmem-hello", "nicmem-hello-c"):
            self.assertEqual(self.one(name).parent.name, "bin")
        self.one("libnicmem.a")
        self.one("nicmem.pc")
        self.assertEqual(self.one("rte_pmd_nicmem.h").parent.name, "nicmem")

    def test_nothing_else_is_in_the_folder_that_eal_loads(self):
        driver = self.one("librte_net_nicmem.so")
        self.assertEqual([f.name for f in driver.parent.iterdir()], [driver.name])

    def flags(self, *what):
        environment = dict(os.environ, PKG_CONFIG_PATH=str(self.one("nicmem.pc").parent),
                           PKG_CONFIG_SYSROOT_DIR=str(self.root))
        return subprocess.run(["pkg-config", *what, "nicmem"], check=True, text=True,
                              capture_output=True, env=environment).stdout.split()

    def test_c_and_cpp_programs_build_against_it(self):
        for compiler, text, name in (("cc", C_PROGRAM, "x.c"), ("c++", CPP_PROGRAM, "x.cc")):
            with self.subTest(compiler=compiler):
                source = self.root / name
                source.write_text(text)
                standard = ["-std=c++20"] if compiler == "c++" else ["-std=c11"]
                subprocess.run([compiler, *standard, "-Wall", "-Werror", source,
                                *self.flags("--cflags"), *self.flags("--libs"),
                                "-o", self.root / "x"], check=True)
                self.assertEqual(subprocess.run([self.root / "x"]).returncode, 0)

    def test_the_installed_driver_loads(self):
        driver = self.one("librte_net_nicmem.so")
        path = subprocess.run([REPO / "scripts" / "pmd_dir.sh", driver], check=True, text=True,
                              capture_output=True).stdout.strip()
        arguments = programs.eal("inst", 256, "0,1")
        arguments[arguments.index("-d") + 1] = path
        done = subprocess.run(["dpdk-testpmd", *arguments, "--vdev", "net_nicmem0", "--",
                               "--total-num-mbufs=4096", "--stats-period=0", "-i"], input="quit\n",
                              text=True, capture_output=True, timeout=programs.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Port 0", done.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
