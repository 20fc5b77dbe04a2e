// SPDX-License-Identifier: BSD-3-Clause
// Events of ports between the moment they happen, under the device's gate, and the moment the
// stepping thread delivers them, with no lock held: a handler may make any call, even close its
// port.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "hca/hca.h"

namespace nicmem::sim {

class EventBox {
 public:
  using Handler = std::function<void(hca::PortEvent)>;

  void post(const hca::Port& owner, Handler handler, hca::PortEvent event) {
    if (handler == nullptr) return;
    const std::lock_guard lock(mutex_);
    waiting_.push_back({&owner, std::move(handler), event});
    any_.store(true, std::memory_order_relaxed);
  }

  /// Calls the handlers, in the order of the events.
  void deliver() {
    if (!any_.load(std::memory_order_relaxed)) return;
    std::unique_lock lock(mutex_);
    while (!waiting_.empty()) {
      const Event event = std::move(waiting_.front());
      waiting_.pop_front();
      busy_with_ = event.owner;
      busy_thread_ = std::this_thread::get_id();
      lock.unlock();
      event.handler(event.what);
      lock.lock();
      busy_with_ = nullptr;
      idle_.notify_all();
    }
    any_.store(false, std::memory_order_relaxed);
  }

  /// Without the gate. Once it has returned no handler of `owner` runs, unless it was called by
  /// one.
  void forget(const hca::Port& owner) {
    std::unique_lock lock(mutex_);
    std::erase_if(waiting_, [&](const Event& event) { return event.owner == &owner; });
    if (busy_thread_ == std::this_thread::get_id()) return;
    idle_.wait(lock, [&] { return busy_with_ != &owner; });
  }

 private:
  struct Event {
    const hca::Port* owner;
    Handler handler;
    hca::PortEvent what;
  };

  std::mutex mutex_;
  std::condition_variable idle_;
  std::deque<Event> waiting_;
  const hca::Port* busy_with_ = nullptr;  // whose handler runs now
  std::thread::id busy_thread_;           // by which thread
  std::atomic<bool> any_{false};          // a hint that spares deliver() the lock
};

}  // namespace nicmem::sim
