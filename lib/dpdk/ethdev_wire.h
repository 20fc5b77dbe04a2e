// SPDX-License-Identifier: BSD-3-Clause
// Any DPDK ethdev as the wire of a modelled port: pcap files, TAP, af_packet, memif, a physical
// port. The wire owns the ethdev (other users do not see it) from open() until it is destroyed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/wire.h"

struct rte_mbuf;
struct rte_mempool;

namespace nicmem::dpdk {

class EthdevWire final : public sim::Wire {
 public:
  /// Takes and starts the ethdev `name`, which must have been probed before (give its --vdev
  /// first).
  static Result<std::unique_ptr<sim::Wire>> open(const std::string& name);
  ~EthdevWire() override;

  size_t receive(std::span<sim::Frame> out, Nanos now) override;
  size_t room() override { return kBurst; }
  /// A frame that the ethdev does not take after some tries is lost.
  size_t send(std::span<const sim::Frame> frames, Nanos now) override;
  bool lossless() const override { return true; }

 private:
  static constexpr size_t kBurst = 32;

  EthdevWire() = default;
  Result<void> start(const std::string& name);
  sim::Frame linear(const rte_mbuf& packet);
  void free_received();

  uint16_t port_ = 0;
  uint64_t owner_ = 0;
  rte_mempool* pool_ = nullptr;
  rte_mbuf* received_[kBurst] = {};
  uint16_t received_count_ = 0;
  std::vector<std::byte> scratch_;  // chains of the current burst, laid out flat
  size_t scratch_used_ = 0;
};

}  // namespace nicmem::dpdk
