#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes the folders in which programs look for what a fake device is.

    make_sysfs.py FOLDER IBDEV=NETDEV ...

The netdev must exist where the program runs; IBDEV= gives a device without one.
FOLDER/pci/0000:ca:00.N is a PCI function (SYSFS_PCI_DEVICES=FOLDER/pci for DPDK), FOLDER/ib/IBDEV
an InfiniBand one (NM_FAKE_VERBS_SYSFS=FOLDER for the fake)."""
import pathlib
import sys

CONNECTX5 = {"vendor": "0x15b3", "device": "0x1017", "subsystem_vendor": "0x15b3",
             "subsystem_device": "0x0020", "class": "0x020000", "numa_node": "-1",
             "resource": "\n".join(6 * [" ".join(3 * [f"0x{0:016x}"])])}

COUNTERS = ["port_rcv_packets", "port_rcv_data", "port_rcv_errors", "port_xmit_packets",
            "port_xmit_data", "port_xmit_discards"]


def address(index):
    return f"0000:ca:00.{index}"


def write(folder, files):
    folder.mkdir(parents=True)
    for name, text in files.items():
        (folder / name).write_text(text + "\n")


def make(folder, devices):
    """`devices`: InfiniBand name -> name of its network interface, or none."""
    folder = pathlib.Path(folder)
    for index, (ibdev, netdev) in enumerate(devices.items()):
        pci = folder / "pci" / address(index)
        write(pci, CONNECTX5 | {"uevent": f"DRIVER=mlx5_core\nPCI_SLOT_NAME={address(index)}"})
        (pci / "driver").symlink_to(folder / "drivers" / "mlx5_core")  # it may dangle
        if netdev:
            write(pci / "net" / netdev, {"dev_port": "0", "dev_id": "0x0"})
        ib = folder / "ib" / ibdev
        write(ib, {"board_id": "NM_0000000001", "hca_type": "MT4119", "fw_ver": "16.35.3006",
                   "node_type": "1: CA"})
        write(ib / "ports" / "1" / "hw_counters", {"out_of_buffer": "0"})
        write(ib / "ports" / "1" / "counters", {name: "0" for name in COUNTERS})
        (ib / "device").symlink_to(pci)


def main():
    if len(sys.argv) < 3 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 2
    make(sys.argv[1], dict(argument.split("=", 1) for argument in sys.argv[2:]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
