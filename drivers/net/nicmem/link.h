// SPDX-License-Identifier: BSD-3-Clause
// The link, and what a device reports by itself: link changes, resets, removal.
#pragma once

#include <atomic>
#include <mutex>

#include "compat.h"
#include "hca/hca.h"

namespace nicmem::pmd {

/// Where a device's events go. Shared with the device's callback, which may run while the port is
/// being closed: after detach() it does nothing.
///
/// The program's callbacks run in the thread that runs the device, and may call ethdev, but not
/// close, reset or remove the port.
class PortEvents {
 public:
  /// Until then events are lost: nobody can have asked for them.
  void attach(rte_eth_dev* dev);
  void notify(hca::PortEvent event);
  /// Waits for a callback that is running.
  void detach();
  bool removed() const { return removed_; }

 private:
  std::recursive_mutex mutex_;
  rte_eth_dev* dev_ = nullptr;
  std::atomic<bool> removed_{false};
};

/// What ethdev shows of the link of a port that is started, or not.
int show_link(rte_eth_dev* dev, bool started);
int link_update(rte_eth_dev* dev, int wait);
int set_link_up(rte_eth_dev* dev);
int set_link_down(rte_eth_dev* dev);
int is_removed(rte_eth_dev* dev);

}  // namespace nicmem::pmd
