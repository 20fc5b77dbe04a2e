// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/ethdev_wire.h"

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <cstring>

namespace nicmem::dpdk {
namespace {

constexpr uint16_t kDescriptors = 512;
constexpr uint32_t kBuffers = 2047;
constexpr uint16_t kBufferBytes = 9728;  // jumbo frames in one buffer
constexpr int kSendTries = 64;
constexpr size_t kMaxChainBytes = 1 << 18;  // libpcap's largest record

/// What a chain really holds: a 16-bit pkt_len, as net_pcap's, is wrong above 65,535.
size_t bytes_of(const rte_mbuf& packet) {
  size_t bytes = 0;
  for (const rte_mbuf* segment = &packet; segment != nullptr; segment = segment->next)
    bytes += segment->data_len;
  return bytes;
}

tl::unexpected<Error> refused(const std::string& name, const char* step, int error) {
  return fail(Code::kSystem, "wire=ethdev:" + name + ": " + step + ": " + rte_strerror(error),
              error);
}

}  // namespace

Result<std::unique_ptr<sim::Wire>> EthdevWire::open(const std::string& name) {
  std::unique_ptr<EthdevWire> wire(new EthdevWire);
  NM_TRY_VOID(wire->start(name));
  return wire;
}

Result<void> EthdevWire::start(const std::string& name) {
  if (rte_eth_dev_get_port_by_name(name.c_str(), &port_) != 0)
    return fail(Code::kNotFound,
                "wire=ethdev:" + name + ": there is no such ethdev: give its --vdev or -a before");
  rte_eth_dev_owner owner{};
  std::snprintf(owner.name, sizeof owner.name, "nicmem wire");
  if (const int error = rte_eth_dev_owner_new(&owner.id); error != 0)
    return refused(name, "owner", -error);
  if (const int error = rte_eth_dev_owner_set(port_, &owner); error != 0)
    return refused(name, "is in use by something else", -error);
  owner_ = owner.id;
  const std::string pool_name = "nm_wire" + std::to_string(port_);
  pool_ = rte_pktmbuf_pool_create(pool_name.c_str(), kBuffers, 0, 0,
                                  kBufferBytes + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
  if (pool_ == nullptr) return refused(name, "20 MiB of buffers", rte_errno);
  rte_eth_conf conf{};
  if (const int error = rte_eth_dev_configure(port_, 1, 1, &conf); error != 0)
    return refused(name, "configure", -error);
  if (const int error =
          rte_eth_rx_queue_setup(port_, 0, kDescriptors, SOCKET_ID_ANY, nullptr, pool_);
      error != 0)
    return refused(name, "receive queue", -error);
  if (const int error = rte_eth_tx_queue_setup(port_, 0, kDescriptors, SOCKET_ID_ANY, nullptr);
      error != 0)
    return refused(name, "send queue", -error);
  if (const int error = rte_eth_dev_start(port_); error != 0) return refused(name, "start", -error);
  static_cast<void>(
      rte_eth_promiscuous_enable(port_));  // the modelled port filters; some drivers have none
  scratch_.resize(kBurst * kMaxChainBytes);
  return {};
}

EthdevWire::~EthdevWire() {
  if (owner_ == 0) return;
  free_received();
  static_cast<void>(rte_eth_dev_stop(port_));
  static_cast<void>(rte_eth_dev_owner_unset(port_, owner_));
  if (pool_ != nullptr && rte_mempool_in_use_count(pool_) == 0) rte_mempool_free(pool_);
}

void EthdevWire::free_received() {
  rte_pktmbuf_free_bulk(received_, received_count_);
  received_count_ = 0;
  scratch_used_ = 0;
}

sim::Frame EthdevWire::linear(const rte_mbuf& packet) {
  if (packet.next == nullptr) return {rte_pktmbuf_mtod(&packet, const std::byte*), packet.data_len};
  std::byte* const start = scratch_.data() + scratch_used_;
  const size_t bytes = std::min(bytes_of(packet), kMaxChainBytes);
  size_t copied = 0;
  for (const rte_mbuf* segment = &packet; segment != nullptr && copied < bytes;
       segment = segment->next) {
    const size_t here = std::min<size_t>(segment->data_len, bytes - copied);
    std::memcpy(start + copied, rte_pktmbuf_mtod(segment, const std::byte*), here);
    copied += here;
  }
  scratch_used_ += bytes;
  return {start, bytes};
}

size_t EthdevWire::receive(std::span<sim::Frame> out, Nanos /*now*/) {
  free_received();
  const auto want = static_cast<uint16_t>(std::min(out.size(), kBurst));
  received_count_ = rte_eth_rx_burst(port_, 0, received_, want);
  for (uint16_t i = 0; i < received_count_; ++i) out[i] = linear(*received_[i]);
  return received_count_;
}

size_t EthdevWire::send(std::span<const sim::Frame> frames, Nanos /*now*/) {
  size_t sent = 0;
  while (sent < frames.size()) {
    rte_mbuf* batch[kBurst];
    const auto count = static_cast<uint16_t>(std::min(frames.size() - sent, kBurst));
    if (rte_pktmbuf_alloc_bulk(pool_, batch, count) != 0) return sent;
    for (uint16_t i = 0; i < count; ++i) {
      const sim::Frame frame = frames[sent + i];
      const auto bytes = static_cast<uint16_t>(std::min<size_t>(frame.size(), kBufferBytes));
      std::memcpy(rte_pktmbuf_mtod(batch[i], void*), frame.data(), bytes);
      batch[i]->data_len = bytes;
      batch[i]->pkt_len = bytes;
    }
    uint16_t taken = 0;
    for (int tries = 0; taken < count && tries < kSendTries; ++tries)
      taken = static_cast<uint16_t>(
          taken + rte_eth_tx_burst(port_, 0, batch + taken, static_cast<uint16_t>(count - taken)));
    rte_pktmbuf_free_bulk(batch + taken, static_cast<unsigned>(count - taken));
    sent += taken;
    if (taken < count) return sent;
  }
  return sent;
}

}  // namespace nicmem::dpdk
