// SPDX-License-Identifier: BSD-3-Clause
// Keeps control calls and step() apart, and lets a control call in although step() is called in an
// endless loop by another thread: a plain mutex would let the loop take it again and again. The
// driver's data path never comes here.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

namespace nicmem::sim {

class Gate {
 public:
  /// Held by a control call.
  class Control {
   public:
    explicit Control(Gate& gate) : gate_(gate) {
      gate_.waiting_.fetch_add(1, std::memory_order_relaxed);
      gate_.mutex_.lock();
      gate_.waiting_.fetch_sub(1, std::memory_order_relaxed);
    }
    ~Control() { gate_.mutex_.unlock(); }
    Control(const Control&) = delete;
    Control& operator=(const Control&) = delete;

   private:
    Gate& gate_;
  };

  /// Held by step(): stands back while a control call waits.
  class Step {
   public:
    explicit Step(Gate& gate) : gate_(gate) {
      while (gate_.waiting_.load(std::memory_order_relaxed) > 0) std::this_thread::yield();
      gate_.mutex_.lock();
    }
    ~Step() { gate_.mutex_.unlock(); }
    Step(const Step&) = delete;
    Step& operator=(const Step&) = delete;

   private:
    Gate& gate_;
  };

 private:
  std::mutex mutex_;
  std::atomic<int> waiting_{0};
};

}  // namespace nicmem::sim
