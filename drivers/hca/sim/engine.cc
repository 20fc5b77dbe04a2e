// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/sim/engine.h"

#include <rte_pause.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace nicmem::hca_sim {
namespace {

constexpr uint32_t kBurst = 64;  // frames a step moves per port and direction
constexpr uint32_t kSpinsBeforeYield = 64;
constexpr uint32_t kYieldsBeforeSleep = 256;
constexpr auto kSleep = std::chrono::microseconds(50);

/// A thread and the models that it steps.
class Runner {
 public:
  explicit Runner(const cpu_set_t& cpus) : thread_([this, cpus] { run(cpus); }) {}
  ~Runner() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

  void add(hca::Hca& nic) {
    const std::lock_guard lock(mutex_);
    nics_.push_back(&nic);
  }
  void remove(hca::Hca& nic) {
    waiting_.store(true, std::memory_order_relaxed);
    const std::lock_guard lock(mutex_);
    waiting_.store(false, std::memory_order_relaxed);
    std::erase(nics_, &nic);
  }
  bool has(const hca::Hca& nic) const { return std::ranges::count(nics_, &nic) != 0; }
  bool empty() const { return nics_.empty(); }

 private:
  void run(cpu_set_t cpus) {
    pthread_setname_np(pthread_self(), "nicmem-model");
    sched_setaffinity(0, sizeof cpus, &cpus);  // probe's thread is pinned to the main lcore
    uint32_t idle = 0;
    while (!stop_.load(std::memory_order_relaxed)) {
      size_t moved = 0;
      {
        const std::lock_guard lock(mutex_);
        for (hca::Hca* nic : nics_) moved += nic->step(kBurst);
      }
      idle = moved != 0 ? 0 : idle + 1;
      rest(idle);
    }
  }

  void rest(uint32_t idle) const {
    if (waiting_.load(std::memory_order_relaxed)) {
      sched_yield();
    } else if (idle >= kSpinsBeforeYield + kYieldsBeforeSleep) {
      std::this_thread::sleep_for(kSleep);
    } else if (idle >= kSpinsBeforeYield) {
      sched_yield();
    } else if (idle != 0) {
      rte_pause();
    }
  }

  std::mutex mutex_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> waiting_{false};
  std::vector<hca::Hca*> nics_;
  std::thread thread_;
};

struct Runners {
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<Runner>> by_cpu;
};
Runners& runners() {
  static Runners instance;
  return instance;
}

Result<cpu_set_t> cpus_of(const std::string& text, const cpu_set_t& any) {
  if (text == "any") return any;
  int cpu = 0;
  std::from_chars(text.data(), text.data() + text.size(), cpu);  // options.cc has checked it
  const long count = sysconf(_SC_NPROCESSORS_ONLN);
  if (cpu >= count)
    return fail(Code::kInvalidArgument,
                "cpu=" + text + ": accepted: 0.." + std::to_string(count - 1) + ", any, none");
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  return set;
}

}  // namespace

Result<void> Engine::add(hca::Hca& nic, const std::string& cpu, const cpu_set_t& any) {
  NM_TRY(const cpu_set_t cpus, cpus_of(cpu, any));
  const std::lock_guard lock(runners().mutex);
  auto& runner = runners().by_cpu[cpu];
  if (!runner) runner = std::make_unique<Runner>(cpus);
  runner->add(nic);
  return {};
}

void Engine::remove(hca::Hca& nic) {
  const std::lock_guard lock(runners().mutex);
  std::erase_if(runners().by_cpu, [&nic](auto& entry) {
    if (!entry.second->has(nic)) return false;
    entry.second->remove(nic);
    return entry.second->empty();
  });
}

}  // namespace nicmem::hca_sim
