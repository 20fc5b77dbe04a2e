// SPDX-License-Identifier: BSD-3-Clause
#include "secondary.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "log.h"
#include "port.h"

namespace nicmem::pmd {
namespace {

constexpr const char* kAction = "net_nicmem";
constexpr timespec kPatience{.tv_sec = 2, .tv_nsec = 0};

struct Question {
  uint16_t port_id;
};
struct Answer {
  int result;
};

template <class T>
rte_mp_msg message(const T& content) {
  rte_mp_msg made{};
  std::snprintf(made.name, sizeof made.name, "%s", kAction);
  made.len_param = sizeof content;
  std::memcpy(made.param, &content, sizeof content);
  return made;
}

template <class T>
bool content_of(const rte_mp_msg& received, T& out) {
  if (received.len_param != sizeof out) return false;
  std::memcpy(&out, received.param, sizeof out);
  return true;
}

SharedPort& shared_of(const rte_eth_dev* dev) {
  return *static_cast<SharedPort*>(dev->data->dev_private);
}

/// In the primary, under the control lock.
void write_snapshot(rte_eth_dev* dev, Snapshot& out) {
  out = {};
  out.info.switch_info.domain_id = RTE_ETH_DEV_SWITCH_DOMAIN_ID_INVALID;
  static_cast<void>(dev_info(dev, &out.info));
  static_cast<void>(stats_get(dev, &out.stats));
  for (uint16_t i = 0; i < std::min<uint32_t>(dev->data->nb_rx_queues, kMaxSharedQueues); ++i)
    if (rx_queue(dev, i) != nullptr) rxq_info(dev, i, &out.rx[i]);
  for (uint16_t i = 0; i < std::min<uint32_t>(dev->data->nb_tx_queues, kMaxSharedQueues); ++i)
    if (tx_queue(dev, i) != nullptr) txq_info(dev, i, &out.tx[i]);
  rte_eth_xstat xstats[kMaxXstats];
  const int count = xstats_get(dev, xstats, kMaxXstats);
  xstats_get_names(dev, out.names, kMaxXstats);
  out.xstats = std::min(static_cast<uint32_t>(std::max(0, count)), kMaxXstats);
  for (uint32_t i = 0; i < out.xstats; ++i) out.values[i] = xstats[i].value;
}

int refresh(uint16_t port_id) {
  const std::lock_guard lock(control_mutex());
  Port* const port = live_port(port_id);
  if (port == nullptr) return -ENODEV;
  SharedPort& shared = shared_of(port->ethdev);
  shared.version.fetch_add(1);
  std::atomic_thread_fence(std::memory_order_release);
  write_snapshot(port->ethdev, shared.snapshot);
  shared.version.fetch_add(1);
  return 0;
}

/// The primary's side. Runs in DPDK's thread for messages.
int answer(const rte_mp_msg* request, const void* peer) {
  Question question{};
  const Answer done{content_of(*request, question) ? refresh(question.port_id) : -EINVAL};
  rte_mp_msg reply = message(done);
  return rte_mp_reply(&reply, static_cast<const char*>(peer));
}

/// The secondary's side: 0, or -EIO when no primary answers.
int ask(uint16_t port_id) {
  rte_mp_msg request = message(Question{port_id});
  struct rte_mp_reply replies {};
  if (rte_mp_request_sync(&request, &replies, &kPatience) != 0) return -EIO;
  Answer answered{-EIO};
  if (replies.nb_received == 1) static_cast<void>(content_of(replies.msgs[0], answered));
  std::free(replies.msgs);
  return answered.result;
}

/// A copy that the primary did not write to meanwhile: another secondary may have asked, too.
std::unique_ptr<Snapshot> look(const rte_eth_dev* dev, int& error) {
  error = ask(dev->data->port_id);
  if (error != 0) return nullptr;
  const SharedPort& shared = shared_of(dev);
  auto copy = std::make_unique<Snapshot>();
  for (uint32_t attempt = 0; attempt < 1000; ++attempt) {
    const uint32_t before = shared.version.load();
    std::memcpy(copy.get(), &shared.snapshot, sizeof *copy);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before % 2 == 0 && shared.version.load() == before) return copy;
    rte_pause();
  }
  error = -EAGAIN;
  return nullptr;
}

int look_info(rte_eth_dev* dev, rte_eth_dev_info* out) {
  int error = 0;
  const auto snapshot = look(dev, error);
  if (!snapshot) return error;
  rte_device* const device = out->device;
  *out = snapshot->info;
  out->device = device;
  return 0;
}

int look_stats(rte_eth_dev* dev, rte_eth_stats* out) {
  int error = 0;
  const auto snapshot = look(dev, error);
  if (snapshot) *out = snapshot->stats;
  return error;
}

int look_xstats(rte_eth_dev* dev, rte_eth_xstat* out, unsigned size) {
  int error = 0;
  const auto snapshot = look(dev, error);
  if (!snapshot) return error;
  for (uint32_t i = 0; i < std::min(size, snapshot->xstats) && out != nullptr; ++i)
    out[i] = {.id = i, .value = snapshot->values[i]};
  return static_cast<int>(snapshot->xstats);
}

int look_xstat_names(rte_eth_dev* dev, rte_eth_xstat_name* out, unsigned size) {
  int error = 0;
  const auto snapshot = look(dev, error);
  if (!snapshot) return error;
  if (out != nullptr) std::copy_n(snapshot->names, std::min(size, snapshot->xstats), out);
  return static_cast<int>(snapshot->xstats);
}

void look_rxq(rte_eth_dev* dev, uint16_t index, rte_eth_rxq_info* out) {
  int error = 0;
  if (const auto snapshot = look(dev, error)) *out = snapshot->rx[index % kMaxSharedQueues];
}

void look_txq(rte_eth_dev* dev, uint16_t index, rte_eth_txq_info* out) {
  int error = 0;
  if (const auto snapshot = look(dev, error)) *out = snapshot->tx[index % kMaxSharedQueues];
}

/// The primary keeps what ethdev shows up to date.
int shown_link(rte_eth_dev* /*dev*/, int /*wait*/) { return 0; }

/// Nothing of a secondary's own is to be released.
int detach(rte_eth_dev* /*dev*/) { return 0; }

uint16_t no_burst(void* /*queue*/, rte_mbuf** /*packets*/, uint16_t /*count*/) { return 0; }

eth_dev_ops make_secondary_ops() {
  eth_dev_ops ops{};
  ops.dev_close = detach;
  ops.dev_infos_get = look_info;
  ops.dev_supported_ptypes_get = supported_ptypes;
  ops.link_update = shown_link;
  ops.rxq_info_get = look_rxq;
  ops.txq_info_get = look_txq;
  ops.stats_get = look_stats;
  ops.xstats_get = look_xstats;
  ops.xstats_get_names = look_xstat_names;
  return ops;
}

const eth_dev_ops kSecondaryOps = make_secondary_ops();

}  // namespace

void answer_secondaries() {
  // refused where EAL has no other processes (--in-memory), and the second time
  static_cast<void>(rte_mp_action_register(kAction, answer));
}

int attach_secondary(rte_vdev_device* vdev) {
  const char* const name = rte_vdev_device_name(vdev);
  rte_eth_dev* const dev = rte_eth_dev_attach_secondary(name);
  if (dev == nullptr) {
    NM_LOG(ERR, "%s: the primary process has no such port", name);
    return -ENODEV;
  }
  dev->device = &vdev->device;
  dev->dev_ops = &kSecondaryOps;
  dev->rx_pkt_burst = no_burst;
  dev->tx_pkt_burst = no_burst;
  rte_eth_dev_probing_finish(dev);
  return 0;
}

}  // namespace nicmem::pmd
