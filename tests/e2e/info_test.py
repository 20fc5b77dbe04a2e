#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""nicmem-info on the fake libibverbs: what it says of cards, and of what is missing."""
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import programs
from captures import REPO

sys.path.insert(0, str(REPO / "tests" / "fake_verbs"))
import make_sysfs  # noqa: E402

INFO = programs.build() / "apps" / "info" / "nicmem-info"
FAKE = programs.build() / "tests" / "fake_verbs" / "libfake_verbs.so"
PLUGIN = programs.build() / "drivers" / "hca" / "verbs" / "nicmem_verbs.so"
CARD = "mlx5_0,sram=128KiB"
NO_RAW = "needs CAP_NET_RAW"


def run(*arguments, devices=CARD, netdev="", command=(), **environment):
    """nicmem-info where `devices` are; `command` comes before it. The exit status, what it
    printed, and what the fake says at the end."""
    names = [part.split(",")[0] for part in devices.split(";") if part]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        make_sysfs.make(folder / "sys", {name: netdev for name in names})
        fake = {"NM_FAKE_VERBS": devices, "NM_FAKE_VERBS_SYSFS": str(folder / "sys"),
                "NM_FAKE_VERBS_REPORT": str(folder / "report")}
        done = subprocess.run([*command, "env", f"LD_PRELOAD={FAKE}", INFO, *arguments],
                              text=True, capture_output=True, env=os.environ | fake | environment,
                              timeout=programs.PATIENCE_S)
        report = {}
        with contextlib.suppress(FileNotFoundError):  # where the fake was not loaded
            report = dict(line.split(" ", 1)
                          for line in (folder / "report").read_text().splitlines())
    return done, report


def inventory(**how):
    done, _ = run("--json", **how)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def card(**how):
    return inventory(**how)["devices"][0]


def lacks(device):
    return {name: ability["why_not"] for name, ability in device["abilities"].items()
            if not ability["works"]}


class Cards(unittest.TestCase):
    def test_json_has_the_facts(self):
        device = card()
        for key, value in {"name": "mlx5_0", "hca": "verbs", "kind": "ConnectX-5",
                           "devargs": "hca=verbs,ibdev=mlx5_0", "pci_address": "0000:ca:00.0",
                           "firmware": "16.35.3006", "board": "NM_0000000001", "netdev": "",
                           "numa_node": -1, "mtu": 0, "refused": "", "problems": [],
                           "link": {"up": True, "speed_mbps": 100000},
                           "device_memory": {"bytes": 131072, "alignment": 64}}.items():
            self.assertEqual(device[key], value, key)
        self.assertEqual(device["limits"]["queue_depth"], 32768)

    def test_what_a_card_lacks(self):
        self.assertEqual(set(lacks(card())),
                         {"spill_hw", "rx_inline", "own_statistics", "pcie_statistics"})
        self.assertEqual(set(lacks(inventory()["devices"][-1])), {"rx_inline"})

    def test_the_document_names_every_member(self):
        document = (REPO / "docs" / "connectx.md").read_text()
        for name in (*inventory(), *card(), *card()["device_memory"], *card()["link"],
                     *card(NM_FAKE_VERBS_RAW="0")["abilities"]["split"]):
            self.assertIn(f"`{name}`", document)

    def test_text_says_the_same(self):
        done, report = run(devices=CARD + ";mlx5_1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        said = " ".join(done.stdout.split())
        for words in ("mlx5_0: ConnectX-5", "mlx5_1: ConnectX-5", "sim: software ConnectX",
                      "PCI address 0000:ca:00.1", "device memory 128KiB at most, in units of 64B",
                      "firmware 16.35.3006, board NM_0000000001", "link up, 100000 Mb/s",
                      "use --vdev net_nicmem0,hca=verbs,ibdev=mlx5_1", "yes payload ",
                      "no spill_hw "):
            self.assertIn(words, said)
        self.assertNotIn("problem", said)
        self.assertEqual(report["leaked"], "0")

    @unittest.skipIf(programs.no_namespaces(), "needs namespaces and veth interfaces")
    def test_with_an_interface(self):
        add = "ip link add nmv0 type veth peer name nmp0 && ip link set nmp0 up && "
        for state, problems in (("up", 0), ("down", 1)):
            with self.subTest(state=state):
                device = card(netdev="nmv0", command=(
                    "unshare", "-Urn", "sh", "-c",
                    add + f'ip link set nmv0 {state} mtu 4000 && exec "$@"', "sh"))
                self.assertEqual((device["netdev"], device["mtu"]), ("nmv0", 4000))
                self.assertEqual(device["link"]["up"], state == "up")
                self.assertEqual(len(device["problems"]), problems)
                self.assertNotIn("payload", lacks(device))
                if problems:
                    self.assertIn("ip link set nmv0 up", device["problems"][0])


class Missing(unittest.TestCase):
    def test_cap_net_raw(self):
        device = card(NM_FAKE_VERBS_RAW="0")
        self.assertEqual(len(device["problems"]), 1)
        self.assertIn(NO_RAW, device["problems"][0])
        for ability in ("payload", "transmit", "split", "spill_sw", "tx_inline", "flow_rules"):
            self.assertIn(NO_RAW, lacks(device)[ability])
        self.assertEqual(device["device_memory"]["bytes"], 131072)

    def test_a_problem_is_said_once(self):
        done, _ = run(NM_FAKE_VERBS_RAW="0")
        self.assertEqual(done.stdout.count(NO_RAW), 1)
        self.assertIn("(mode=split): see the problem above", done.stdout)

    def test_device_memory(self):
        device = card(NM_FAKE_VERBS_ABSENT="alloc_dm")
        self.assertEqual(device["device_memory"]["bytes"], 0)
        self.assertIn("mlxconfig -d 0000:ca:00.0 query MEMIC_SIZE_LIMIT", device["problems"][0])
        self.assertEqual(set(lacks(device)) - set(lacks(card())), {"payload", "transmit"})

    def test_regions_of_device_memory(self):
        device = card(NM_FAKE_VERBS_ABSENT="reg_dm_mr")
        self.assertIn("region of device memory", lacks(device)["payload"])

    def test_matchers_and_counters(self):
        lacking = lacks(card(NM_FAKE_VERBS_ABSENT="create_flow_matcher"))
        self.assertIn("whole fields only", lacking["flow_masks"])
        self.assertNotIn("flow_rules", lacking)
        lacking = lacks(card(NM_FAKE_VERBS_ABSENT="create_counters"))
        self.assertNotIn("flow_rules", lacking)
        self.assertIn("flow_counters", lacking)

    def test_any_call_may_fail(self):
        for k in range(1, 200):
            done, report = run("--json", NM_FAKE_VERBS_FAIL=str(k))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(json.loads(done.stdout)["devices"][-1]["name"], "sim")
            self.assertEqual(report["leaked"], "0", report)
            if report["failed"] == "-":
                break
        self.assertEqual(report["failed"], "-")
        self.assertGreater(k, 20)

    def test_cards(self):
        found = inventory(devices="")
        self.assertIn("lists no ConnectX", found["no_cards"])
        self.assertEqual([device["name"] for device in found["devices"]], ["sim"])

    def test_rdma_core(self):
        with tempfile.TemporaryDirectory() as folder:
            # the piece as it is, but for the name of the library that it needs
            piece = PLUGIN.read_bytes().replace(b"libibverbs.so.1\0", b"libibverbx.so.1\0")
            (pathlib.Path(folder) / PLUGIN.name).write_bytes(piece)
            for words in (("--json",), ()):
                done = subprocess.run([INFO, *words], text=True, capture_output=True,
                                      env=os.environ | {"NICMEM_LIBRARY_DIR": folder})
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertIn("needs rdma-core (Debian packages libibverbs1", done.stdout)
                self.assertIn("software ConnectX", done.stdout)


class CommandLine(unittest.TestCase):
    def test_help_and_what_is_not_accepted(self):
        done, _ = run("--help")
        self.assertEqual(done.returncode, 0)
        self.assertIn("--json", done.stdout)
        for wrong in ("--jason", "mlx5_0"):
            self.assertEqual(run(wrong)[0].returncode, 2)


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
