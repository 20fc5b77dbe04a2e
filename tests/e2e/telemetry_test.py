#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""DRV-44: the driver's telemetry is valid JSON, also with odd names and wrong parameters, while
ports come and go."""
import sys

import programs

ARGUMENTS = 'mode=nicmem,split=force,device=a"b'


def drv_44_telemetry():
    testpmd = programs.Testpmd([f"net_nicmem0,{ARGUMENTS}"], app=["--total-num-mbufs=8192"])
    testpmd.say("start")
    arguments = testpmd.process.args
    prefix = arguments[arguments.index("--file-prefix") + 1]

    def ask(command):
        return programs.telemetry(prefix, command)[command.split(",")[0]]

    good = ask("/nicmem/list") == [0]
    good &= ask("/nicmem/port,0")["device"] == 'a"b'
    good &= ask("/nicmem/memory,0")["device_bytes"] == 262144
    good &= "tx_descriptor" in ask("/nicmem/pcie,0")
    good &= all(ask(f"/nicmem/port{wrong}") is None for wrong in ("", ",x", ",99", ",0x"))
    for _ in range(10):
        testpmd.say("port attach net_nicmem1,wire=loop")
        good &= ask("/nicmem/list") == [0, 1] and ask("/nicmem/port,1")["name"] == "net_nicmem1"
        testpmd.say("port detach 1")
        good &= ask("/nicmem/list") == [0] and ask("/nicmem/port,1") is None
    return testpmd.quit() == 0 and good


if __name__ == "__main__":
    done = drv_44_telemetry()
    print(f"{'ok' if done else 'FAILED'}: DRV-44 telemetry while ports come and go")
    sys.exit(0 if done else 1)
