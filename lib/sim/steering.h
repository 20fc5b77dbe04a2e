// SPDX-License-Identifier: BSD-3-Clause
// Which frames a port takes, and which queue each goes to.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/view.h"
#include "hca/hca.h"
#include "hw/ether.h"
#include "sim/rings.h"
#include "sim/rss.h"

namespace nicmem::sim {

class Steering {
 public:
  /// Takes nothing.
  Steering() = default;

  /// `queues`: the device's side of `options.rss.table`, in the same order.
  Steering(const hca::SteeringOptions& options, std::vector<ReceiveRing*> queues)
      : queues_(std::move(queues)),
        promiscuous_(options.promiscuous),
        all_multicast_(options.all_multicast) {
    if (!options.unicast.empty()) mac_ = options.unicast[0];
    if (queues_.size() < 2) return;
    toeplitz_ = std::make_unique<Toeplitz>(options.rss.key);
    // Cards index a table whose size is a power of two; other lists are repeated in a larger one.
    const size_t listed = queues_.size();
    if (std::has_single_bit(listed)) return;
    queues_.resize(std::max(kTableEntries, std::bit_ceil(listed)));
    for (size_t i = listed; i < queues_.size(); ++i) queues_[i] = queues_[i % listed];
  }

  /// By destination address. `frame` has an Ethernet header.
  bool accepts(Frame frame) const {
    if (queues_.empty()) return false;
    if (promiscuous_) return true;
    const hw::MacAddress& to = view_as<hw::EtherHeader>(frame)->destination;
    if (!to.is_group()) return to == mac_;
    return all_multicast_ || to == kBroadcast;
  }

  /// For a frame that is accepted. One queue: no hash is computed. Not IP: the first queue.
  ReceiveRing& pick(Frame frame, const Parsed& parsed, RssHash& hash) const {
    if (toeplitz_ == nullptr) return *queues_[0];
    hash = rss_hash(*toeplitz_, frame, parsed);
    return *queues_[hash.type == 0 ? 0 : hash.value & (queues_.size() - 1)];
  }

  bool uses(const ReceiveRing& queue) const {
    return std::find(queues_.begin(), queues_.end(), &queue) != queues_.end();
  }

 private:
  static constexpr size_t kTableEntries = 512;
  static constexpr hw::MacAddress kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

  std::vector<ReceiveRing*> queues_;
  std::unique_ptr<Toeplitz> toeplitz_;  // null: at most one queue
  hw::MacAddress mac_{};
  bool promiscuous_ = false;
  bool all_multicast_ = false;
};

}  // namespace nicmem::sim
