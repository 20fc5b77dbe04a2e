#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What `meson install` puts where, and that programs can be built and run against it."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

import programs
from captures import REPO

# They use the API as a program would, without a device: the linker must find every name.
C_PROGRAM = """
#include <nicmem/nicmem.h>
#include <stdio.h>
int main(int argc, char** argv) {
  struct nicmem_region region = {0};
  if (argc > 1)
    return nicmem_slow_read(&region, 0, argv, 4, 0) + nicmem_copy_to(&region, 0, argv, 4);
  return puts("c") == EOF;
}
"""
CPP_PROGRAM = """
#include <base/units.h>
#include <nicmem/copy.h>
#include <nicmem/heap.h>
#include <nicmem/memory.h>
#include <cstdio>
int main(int argc, char**) {
  auto* const card = static_cast<nicmem::hca::Hca*>(nullptr);
  if (argc > 1) return nicmem::Memory::allocate(*card, {}, 4096).has_value();
  return nicmem::parse_size("1KiB").value() == 1024 && std::puts("c++") != EOF ? 0 : 1;
}
"""
INSTALLED = """
bin/nicmem-demo bin/nicmem-hello bin/nicmem-hello-c bin/nicmem-info bin/nicmem-l3fwd
include/nicmem/base/bits.h include/nicmem/base/check.h include/nicmem/base/core.h
include/nicmem/base/endian.h include/nicmem/base/result.h include/nicmem/base/units.h
include/nicmem/hca/hca.h include/nicmem/hca/steering.h
include/nicmem/hw/cqe.h include/nicmem/hw/doorbell.h include/nicmem/hw/ether.h
include/nicmem/hw/icmp.h include/nicmem/hw/ipv4.h include/nicmem/hw/ipv6.h
include/nicmem/hw/order.h include/nicmem/hw/pcie.h include/nicmem/hw/tcp.h
include/nicmem/hw/udp.h
include/nicmem/nicmem/copy.h include/nicmem/nicmem/errno.h include/nicmem/nicmem/heap.h
include/nicmem/nicmem/memory.h include/nicmem/nicmem/nicmem.h include/nicmem/nicmem/region.h
include/nicmem/rte_pmd_nicmem.h include/nicmem/rte_pmd_nicmem.hpp
LIB/libnicmem.a LIB/libnicmem_base.a LIB/libnicmem_dpdk.a LIB/nicmem/nicmem_verbs.so
LIB/pkgconfig/nicmem.pc
PMD/librte_net_nicmem.so
""".split()


def options():
    described = subprocess.run(["meson", "introspect", "--buildoptions", programs.build()],
                               check=True, capture_output=True, text=True).stdout
    return {option["name"]: option["value"] for option in json.loads(described)}


def eal_default_folder():
    """Where DPDK's own drivers lie, which EAL loads all."""
    flags = subprocess.run(["pkg-config", "--cflags", "libdpdk"], check=True, text=True,
                           capture_output=True).stdout.split()
    macros = subprocess.run(["cc", *flags, "-include", "rte_build_config.h", "-dM", "-E", "-x",
                             "c", "/dev/null"], check=True, text=True, capture_output=True).stdout
    return re.search(r'RTE_EAL_PMD_PATH "(.*)"', macros).group(1)


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # The same folder in each run, and below the build: pmd_dir.sh may keep a copy of the driver
        # for each place that it came from, and nothing may be executed in many a /tmp.
        cls.folder = programs.build() / "install-test"
        shutil.rmtree(cls.folder, ignore_errors=True)
        cls.root, cls.work = cls.folder / "root", cls.folder / "work"
        cls.work.mkdir(parents=True)
        subprocess.run(["meson", "install", "-C", programs.build(), "--no-rebuild", "--destdir",
                        cls.root], check=True, stdout=subprocess.DEVNULL)
        chosen = options()
        cls.prefix = pathlib.PurePath(chosen["prefix"])
        cls.lib = cls.prefix / chosen["libdir"]
        eal = eal_default_folder()
        default = eal if str(cls.prefix) == "/usr" else cls.lib / "dpdk" / pathlib.Path(eal).name
        cls.pmd = cls.prefix / (chosen["pmd_dir"] or default)

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def at(self, path):
        """Where an installed path lies in this test's folder."""
        return self.root / path.relative_to("/")

    def driver(self):
        installed = self.at(self.pmd / "librte_net_nicmem.so")
        return subprocess.run([REPO / "scripts" / "pmd_dir.sh", installed], check=True, text=True,
                              capture_output=True).stdout.strip()

    def flags(self, *packages):
        environment = dict(os.environ, PKG_CONFIG_SYSROOT_DIR=str(self.root),
                           PKG_CONFIG_PATH=str(self.at(self.lib / "pkgconfig")))
        if packages != ("nicmem",):  # DPDK lies where the system has it
            del environment["PKG_CONFIG_SYSROOT_DIR"]
        return subprocess.run(["pkg-config", "--cflags", "--libs", *packages], check=True,
                              text=True, capture_output=True, env=environment).stdout.split()

    def compile(self, source, *arguments):
        compiler, standard = ("cc", "c11") if source.suffix == ".c" else ("c++", "c++20")
        program = self.work / f"program-{compiler}"
        subprocess.run([compiler, f"-std={standard}", "-D_GNU_SOURCE", "-Wall", "-Wextra",
                        "-Werror", source, *arguments, "-o", program], check=True)
        return program

    def test_everything_is_in_its_place_and_nothing_else_is(self):
        expected = []
        for name in INSTALLED:
            place, _, rest = name.partition("/")
            base = {"LIB": self.lib, "PMD": self.pmd}.get(place)
            expected.append(str(base / rest if base else self.prefix / name))
        found = [f"/{path.relative_to(self.root)}" for path in self.root.rglob("*")
                 if not path.is_dir()]
        self.assertEqual(sorted(found), sorted(expected))

    def test_the_folder_that_eal_loads_holds_the_driver_alone(self):
        self.assertEqual([path.name for path in self.at(self.pmd).iterdir()],
                         ["librte_net_nicmem.so"])

    def test_each_installed_header_compiles_alone(self):
        folder = self.at(self.prefix / "include" / "nicmem")
        for header in sorted(path.relative_to(folder) for path in folder.rglob("*.h*")):
            c_too = header.name in ("nicmem.h", "rte_pmd_nicmem.h")
            for suffix in (".cc", ".c") if c_too else (".cc",):
                with self.subTest(header=str(header), suffix=suffix):
                    source = self.work / f"alone{suffix}"
                    source.write_text(f"#include <{header}>\n")
                    self.compile(source, "-fsyntax-only", *self.flags("nicmem"))

    def test_the_driver_exports_what_the_headers_declare(self):
        folder = self.at(self.prefix / "include" / "nicmem")
        text = "".join((folder / name).read_text()
                       for name in ("nicmem/nicmem.h", "rte_pmd_nicmem.h"))
        code = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        declared = set(re.findall(r"^(?:int|void\*) (\w+)\(", code, re.M))
        self.assertGreaterEqual(len(declared), 13)
        listed = subprocess.run(["nm", "-D", "--defined-only",
                                 self.at(self.pmd / "librte_net_nicmem.so")],
                                check=True, text=True, capture_output=True).stdout
        self.assertEqual({line.split()[2] for line in listed.splitlines()}, declared)

    def test_c_and_cpp_programs_build_against_it(self):
        for text, name, said in ((C_PROGRAM, "x.c", "c\n"), (CPP_PROGRAM, "x.cc", "c++\n")):
            with self.subTest(name=name):
                source = self.work / name
                source.write_text(text)
                program = self.compile(source, *self.flags("nicmem"))
                self.assertEqual(subprocess.run([program], text=True, check=True,
                                                capture_output=True).stdout, said)

    def test_the_examples_build_and_run_against_the_installed_driver(self):
        pmd = self.at(self.pmd)
        ours = [flag for flag in self.flags("nicmem") if flag.startswith("-I")]
        dpdk = [flag.replace("-I", "-isystem", 1) for flag in self.flags("libdpdk")]
        for name in ("hello.c", "hello.cc"):
            with self.subTest(name=name):
                source = shutil.copy(REPO / "apps" / "hello" / name, self.work / name)
                program = self.compile(source, *ours, *dpdk, f"-L{pmd}",
                                       "-l:librte_net_nicmem.so", f"-Wl,-rpath,{pmd}")
                done = subprocess.run(
                    [program, "-l", "0", "--no-huge", "-m", "128", "--no-pci", "--no-telemetry",
                     "--file-prefix", f"inst{os.getpid()}", "--vdev", "net_nicmem0"],
                    text=True, capture_output=True, timeout=programs.PATIENCE_S)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("hello from the card's own memory", done.stdout)

    def test_nicmem_info_opens_the_installed_piece(self):
        folder = self.at(self.lib / "nicmem")
        done = subprocess.run([self.at(self.prefix / "bin" / "nicmem-info"), "--json"], text=True,
                              capture_output=True, env=os.environ | {"NICMEM_LIBRARY_DIR": folder})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(str(folder), json.loads(done.stdout)["no_cards"])

    def test_stock_testpmd_loads_the_installed_driver(self):
        arguments = programs.eal("inst", 256, "0,1")
        arguments[arguments.index("-d") + 1] = self.driver()
        done = subprocess.run(["dpdk-testpmd", *arguments, "--vdev", "net_nicmem0", "--",
                               "--total-num-mbufs=4096", "-i"], input="show port info 0\nquit\n",
                              text=True, capture_output=True, timeout=programs.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("Driver name: net_nicmem", done.stdout)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
