#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rte_flow through stock testpmd: its flow commands against the driver's own generator."""
import re
import sys
import unittest

import programs

FRAMES = 20000  # many more than two rings hold
APP = ["--total-num-mbufs=16384", "--nb-cores=1", "--rxq=2", "--txq=2"]
VDEV = f"net_nicmem0,split=force,guard=1,promiscuous=1,gen_dst=198.18.1.0/24,gen_frames={FRAMES}"


class Flow(unittest.TestCase):
    def setUp(self):
        # started by the test, once its rules are there: the generator waits for the port
        self.testpmd = programs.Testpmd([VDEV], [*APP, "--disable-device-start"])
        self.testpmd.say("set fwd rxonly")
        self.addCleanup(self.testpmd.quit)

    def traffic(self):
        """Runs until every frame of the generator is somewhere; the statistics."""
        self.testpmd.say("port start 0", "start")
        self.assertTrue(self.testpmd.wait_for(self.all_seen), self.testpmd.output[-3000:])
        self.testpmd.say("stop")
        x, = self.testpmd.quiet_xstats([0])
        self.assertEqual(programs.problems_of(x), [], self.testpmd.output[-3000:])
        return x

    def all_seen(self):
        x = self.testpmd.xstats(0)
        seen = ("rx_good_packets", "rx_dropped_by_rule", "rx_filtered", "rx_stopped")
        return sum(x[name] for name in seen) == FRAMES

    def test_drv_46_validate_create_list_query_destroy_flush(self):
        say = self.testpmd.say
        say("port start 0", "port stop 0")  # testpmd configures queues at the first start only
        rule = "ingress pattern eth / ipv4 dst spec 198.18.1.0 dst mask 255.255.255.0 / end "
        self.assertIn("Flow rule validated",
                      say(f"flow validate 0 {rule} actions count / queue index 1 / end"))
        self.assertIn("Flow rule #0 created",
                      say(f"flow create 0 priority 1 {rule} actions count / queue index 1 / end"))
        self.assertIn("Flow rule #1 created", say(
            "flow create 0 ingress pattern eth / ipv4 / tcp / end actions drop / end"))
        said = say("flow list 0")
        self.assertIn("ETH IPV4 => COUNT QUEUE", said)
        self.assertIn("ETH IPV4 TCP => DROP", said)
        x = self.traffic()
        after = FRAMES - x["rx_stopped"]  # the first stop left some in the rings
        self.assertGreater(after, 0)
        self.assertEqual(x["rx_q1_packets"], after)
        self.assertIn(f"hits: {after}", say("flow query 0 0 count"))
        self.assertIn("Flow rule #1 destroyed", say("flow destroy 0 rule 1"))
        say("flow flush 0")
        self.assertNotIn("=>", say("flow list 0"))
        print("DRV-46 flow commands: validate, create, list, query, destroy, flush")

    def test_drv_46_drop_is_counted(self):
        self.assertIn("created", self.testpmd.say(
            "flow create 0 ingress pattern eth / ipv4 / udp / end actions drop / end"))
        x = self.traffic()
        self.assertEqual(x["rx_dropped_by_rule"], FRAMES)
        print("DRV-46 dropped frames are counted")

    def test_drv_46_isolate(self):
        self.assertIn("restricted", self.testpmd.say("flow isolate 0 1"))
        x = self.traffic()
        self.assertEqual(x["rx_filtered"], FRAMES)
        print("DRV-46 isolated: only what rules take comes in")

    def test_drv_46_what_is_refused_says_what_is_accepted(self):
        for rule, accepted in (
                ("egress pattern eth / end actions drop / end", "accepted: ingress"),
                ("ingress group 1 pattern eth / end actions drop / end", "group: accepted: 0"),
                ("ingress pattern eth / vxlan / end actions drop / end", "accepted: eth, vlan"),
                ("ingress pattern eth / end actions queue index 2 / end", "below the port's"),
                ("ingress pattern eth / end actions count / end", "no fate"),
                ("ingress pattern udp src spec 1 src last 2 src mask 65535 / end "
                 "actions drop / end", "last equal to spec")):
            with self.subTest(rule=rule):
                for verb in ("validate", "create"):
                    said = self.testpmd.say(f"flow {verb} 0 {rule}")
                    self.assertTrue(re.search("[Cc]aught.*error", said), said)
                    self.assertIn(accepted, said)
        print("DRV-46 refusals name what is accepted")


if __name__ == "__main__":
    sys.exit(unittest.main(verbosity=2))
