# SPDX-License-Identifier: BSD-3-Clause
"""One testpmd over net_nicmem on a card, for hw-check: started, spoken to, ended."""
import re
import subprocess
import threading

from hw_check_wire import Failed

PATIENCE_S = 60
LEFT_BEHIND = "it stays until the device is closed"
# Counters that stay at 0 where driver and card mean the same.
NEVER = ("rx_wqe_error", "tx_wqe_error", "tx_device_error", "rx_stuck", "tx_stuck",
         "tx_foreign_memory", "tx_unknown_memory", "nicmem_reads")


class Testpmd:
    left_behind = []  # lines of all runs

    def __init__(self, eal, devargs, app=(), forward="macswap"):
        self.output = ""
        self.marks = 0
        self.port = "P"
        self.process = subprocess.Popen(
            ["stdbuf", "-oL", "dpdk-testpmd", *eal, "--vdev", f"net_nicmem0,{devargs}", "--", "-i",
             f"--forward-mode={forward}", "--total-num-mbufs=16384", "--nb-cores=1", *app],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace")
        self.say()
        found = re.search(r"^Port (\d+): ([0-9A-F:]{17})$", self.output, re.M)
        if not found:
            self.quit()
            raise Failed(f"testpmd has no port: {self.last_words()}")
        self.port = found.group(1)
        self.mac = bytes.fromhex(found.group(2).replace(":", ""))

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.quit()
        if kind is None and self.process.returncode != 0:
            raise Failed(f"testpmd ended with status {self.process.returncode}: "
                         f"{self.last_words()}")

    def last_words(self):
        lines = [line for line in self.output.splitlines() if line.strip()]
        told = [line for line in lines if re.search("nicmem|error|fail|cannot", line, re.I)]
        return " | ".join((told or lines)[-3:])

    def say(self, *commands):
        """Gives commands, with P for the port's number; returns what they print."""
        self.marks += 1
        mark = f"mark{self.marks}"  # not a command: answered with itself
        said, answered = "", False
        watchdog = threading.Timer(PATIENCE_S, self.process.kill)
        watchdog.start()
        try:
            for command in (*commands, mark):
                self.process.stdin.write(re.sub(r"\bP\b", self.port, command) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended: what it said is worth reading
        while not answered and (line := self.process.stdout.readline()):
            said += line.replace("\r", "")
            answered = mark in line and "testpmd>" in line
        watchdog.cancel()
        self.output += said
        if not answered:
            self.process.wait()
            raise Failed(f"testpmd has ended or did not answer: {self.last_words()}")
        return said

    def xstats(self):
        said = self.say("show port xstats P")
        return {name: int(value) for name, value in re.findall(r"^(\w+): (\d+)$", said, re.M)}

    def healthy_xstats(self):
        x = self.xstats()
        wrong = [f"{name} is {x[name]}" for name in NEVER if x[name] != 0]
        if wrong:
            raise Failed(", ".join(wrong) + "; accepted: 0")
        return x

    def quit(self):
        try:
            rest, _ = self.process.communicate("stop\nquit\n", timeout=PATIENCE_S)
        except (subprocess.TimeoutExpired, BrokenPipeError, ValueError):
            self.process.kill()
            rest, _ = self.process.communicate()
        self.output += rest.replace("\r", "")
        self.note_what_is_left()

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def note_what_is_left(self):
        Testpmd.left_behind += [line for line in self.output.splitlines() if LEFT_BEHIND in line]
