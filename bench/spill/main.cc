// SPDX-License-Identifier: BSD-3-Clause
// Split rings, counted: for each size of the card's memory, ring, load and form, how much of the
// payload stays on the card, and how long a burst may be before a frame finds no buffer. The model
// is single-stepped: the same figures on every machine. Writes one line of CSV each; spill.py draws
// them.
//
//   spill_bench --no-huge -m 512 --no-pci
#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

#include "rte_pmd_nicmem.h"

namespace {

constexpr uint32_t kFrameBytes = 1000;
constexpr uint16_t kBurst = 32;
// Laps of the ring and of what the program holds.
constexpr uint32_t kWarmUpLaps = 8;
constexpr uint32_t kCountedLaps = 8;
constexpr const char* kName = "net_nicmem0";

struct Form {
  const char* name;
  const char* arguments;
};
constexpr Form kForms[] = {
    {"sw", "spill=sw"}, {"hw", "spill=hw"}, {"auto", "spill=sw,min_posted=auto"}};

struct Case {
  uint32_t sram_kib;
  uint16_t ring;
  uint32_t held;  // packets that the program has at any time: the load
  Form form;
};

/// A started port with a generator that waits for buffers, and what the program holds.
class Receiver {
 public:
  Receiver(const Case& what, rte_mempool* pool) : held_most_(what.held) {
    const std::string arguments =
        "cpu=none,mode=nicmem,split=force,gen_size=" + std::to_string(kFrameBytes) + "," +
        what.form.arguments + ",sram=" + std::to_string(what.sram_kib) + "KiB";
    rte_eth_conf conf{};
    ok_ = rte_vdev_init(kName, arguments.c_str()) == 0 &&
          rte_eth_dev_get_port_by_name(kName, &port_) == 0 &&
          rte_eth_dev_configure(port_, 1, 1, &conf) == 0 &&
          rte_eth_rx_queue_setup(port_, 0, what.ring, SOCKET_ID_ANY, nullptr, pool) == 0 &&
          rte_eth_tx_queue_setup(port_, 0, 64, SOCKET_ID_ANY, nullptr) == 0 &&
          rte_eth_dev_start(port_) == 0;
  }
  ~Receiver() {
    held_most_ = 0;
    let_go();
    if (!ok_) return;
    rte_eth_dev_stop(port_);
    rte_eth_dev_close(port_);
    rte_vdev_uninit(kName);
  }
  bool ok() const { return ok_; }

  uint64_t count(const char* name) const {
    uint64_t id = 0, value = 0;
    if (rte_eth_xstats_get_id_by_name(port_, name, &id) != 0 ||
        rte_eth_xstats_get_by_id(port_, &id, &value, 1) != 1)
      std::abort();  // a name that the driver does not have
    return value;
  }

  void run(uint32_t frames) {
    for (uint32_t done = 0; done < frames; done += kBurst) {
      rte_pmd_nicmem_step(port_, kBurst);
      poll();
    }
  }

  /// Frames that would find a buffer now, as long as nobody polls.
  uint64_t posted() const { return count("payload_nicmem_posted") + count("payload_host_posted"); }

  /// run(); returns the largest burst that finds buffers at any time of it.
  uint64_t run_and_look(uint32_t frames) {
    uint64_t least = posted();
    for (uint32_t done = 0; done < frames; done += kBurst) {
      run(kBurst);
      least = std::min(least, posted());
    }
    return least;
  }

  /// Polls while nothing comes.
  void silence() {
    for (int i = 0; i < 4096; ++i) poll();
  }

  /// The wire sends without end while nobody polls. Returns what found a buffer.
  uint64_t burst() {
    const uint64_t before = count("rx_device_frames");
    for (int i = 0; i < 8; ++i) rte_pmd_nicmem_step(port_, 1u << 14);
    return count("rx_device_frames") - before;
  }

 private:
  void poll() {
    rte_mbuf* packets[kBurst];
    const uint16_t received = rte_eth_rx_burst(port_, 0, packets, kBurst);
    held_.insert(held_.end(), packets, packets + received);
    let_go();
  }
  void let_go() {
    for (; held_.size() > held_most_; held_.pop_front()) rte_pktmbuf_free(held_.front());
  }

  uint32_t held_most_;
  std::deque<rte_mbuf*> held_;
  uint16_t port_ = 0;
  bool ok_ = false;
};

bool measure(const Case& what, rte_mempool* pool) {
  Receiver receiver(what, pool);
  if (!receiver.ok()) return false;
  receiver.run(kWarmUpLaps * (what.ring + what.held));
  const uint64_t card = receiver.count("rx_payload_nicmem_bytes");
  const uint64_t host = receiver.count("rx_payload_host_bytes");
  const uint64_t burst = receiver.run_and_look(kCountedLaps * (what.ring + what.held));
  const uint64_t on_card = receiver.count("rx_payload_nicmem_bytes") - card;
  const uint64_t all = on_card + receiver.count("rx_payload_host_bytes") - host;
  receiver.silence();
  const uint64_t posted = receiver.posted();
  if (receiver.burst() != posted) return false;  // what is posted is what a burst finds
  std::printf("%u,%u,%u,%s,%lu,%lu,%lu,%lu\n", what.sram_kib, what.ring, what.held, what.form.name,
              receiver.count("payload_nicmem_buffers"), all == 0 ? 0 : on_card * 1000 / all, burst,
              receiver.count("rx_no_mbuf") + receiver.count("rx_no_buffer"));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (rte_eal_init(argc, argv) < 0) return EXIT_FAILURE;
  rte_mempool* const pool =
      rte_pktmbuf_pool_create("packets", 8191, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
  if (pool == nullptr) return EXIT_FAILURE;
  std::puts("sram_kib,ring,held,form,card_buffers,share_permille,largest_burst,lost");
  for (const Form& form : kForms)
    for (const uint32_t held : {0u, 64u, 512u})
      for (const int ring : {64, 128, 256, 512, 1024})
        for (uint32_t sram = 16; sram <= 1024; sram *= 2)
          if (!measure({sram, static_cast<uint16_t>(ring), held, form}, pool)) {
            std::fprintf(
                stderr,
                "sram %u KiB, ring %u, %s: the port does not start, or a burst ended early\n", sram,
                ring, form.arguments);
            return EXIT_FAILURE;
          }
  rte_mempool_free(pool);
  return EXIT_SUCCESS;
}
