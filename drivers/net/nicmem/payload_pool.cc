// SPDX-License-Identifier: BSD-3-Clause
#include "payload_pool.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "base/bits.h"
#include "log.h"

namespace nicmem::pmd {
namespace {

constexpr uint32_t kAlign = 64;

/// A per-lcore cache keeps buffers from other lcores: small pools, which the card's are, get none.
uint32_t cache_size(uint32_t buffers) { return buffers >= 4096 ? 64 : 0; }

tl::unexpected<Error> pool_failed(const PayloadPool::Options& options, uint32_t buffers) {
  return fail(Code::kExhausted,
              "pool of " + std::to_string(buffers) + " payload buffers of " +
                  std::to_string(options.buffer_bytes) + " bytes (" + options.name + "): " +
                  rte_strerror(rte_errno) + "; give EAL more memory (-m) or use smaller rings",
              rte_errno);
}

/// A pool without an owner.
struct LeftBehind {
  rte_mempool* pool;
  std::shared_ptr<Device> device;  // null: host memory
  Region region;
};

/// Never destroyed: what is in it at exit must not outlive the EAL by a destructor.
struct Abandoned {
  std::mutex mutex;
  std::vector<LeftBehind> pools;
};
Abandoned& abandoned() {
  static Abandoned& instance = *new Abandoned;
  return instance;
}

void free_pool(const LeftBehind& left) {
  rte_mempool_free(left.pool);
  if (left.device) static_cast<void>(left.device->heap->free(left.region));
}

}  // namespace

void PayloadPool::reap() {
  std::vector<LeftBehind> whole;  // freed without the lock: a device may go with its last pool
  {
    const std::lock_guard lock(abandoned().mutex);
    std::erase_if(abandoned().pools, [&whole](LeftBehind& left) {
      if (rte_mempool_in_use_count(left.pool) != 0) return false;
      whole.push_back(std::move(left));
      return true;
    });
  }
  for (const LeftBehind& left : whole) free_pool(left);
}

Result<std::unique_ptr<PayloadPool>> PayloadPool::on_card(std::shared_ptr<Device> device,
                                                          const Options& options,
                                                          size_t limit_bytes) {
  reap();
  const auto bytes = static_cast<uint16_t>(round_up<uint32_t>(options.buffer_bytes, kAlign));
  const size_t room = std::min(limit_bytes, device->heap->largest_free());
  const auto buffers = static_cast<uint32_t>(std::min<size_t>(options.buffers, room / bytes));
  if (buffers == 0)
    return fail(Code::kExhausted, "device memory: " + std::to_string(room) +
                                      " bytes for payload, one buffer takes " +
                                      std::to_string(bytes));
  NM_TRY(const Region region, device->heap->allocate(size_t{buffers} * bytes));
  rte_pktmbuf_extmem memory{};
  memory.buf_ptr = device->memory->pointer(region.offset);
  memory.buf_iova = RTE_BAD_IOVA;
  memory.buf_len = region.size;
  memory.elt_size = bytes;
  rte_mempool* const pool =
      rte_pktmbuf_pool_create_extbuf(options.name.c_str(), buffers, cache_size(buffers),
                                     options.private_bytes, bytes, options.socket, &memory, 1);
  if (pool == nullptr) {
    static_cast<void>(device->heap->free(region));
    return pool_failed(options, buffers);
  }
  auto made = std::unique_ptr<PayloadPool>(new PayloadPool(pool, bytes));
  made->device_ = std::move(device);
  made->region_ = region;
  return made;
}

Result<std::unique_ptr<PayloadPool>> PayloadPool::in_host(const Options& options) {
  reap();
  const auto bytes = static_cast<uint16_t>(round_up<uint32_t>(options.buffer_bytes, kAlign));
  rte_mempool* const pool =
      rte_pktmbuf_pool_create(options.name.c_str(), options.buffers, cache_size(options.buffers),
                              options.private_bytes, bytes, options.socket);
  if (pool == nullptr) return pool_failed(options, options.buffers);
  return std::unique_ptr<PayloadPool>(new PayloadPool(pool, bytes));
}

PayloadPool::~PayloadPool() {
  const uint32_t held = rte_mempool_in_use_count(pool_);
  if (held != 0) {
    NM_LOG(WARNING, "%s: %u payload buffers are still held by the program: the pool waits for them",
           pool_->name, held);
    const std::lock_guard lock(abandoned().mutex);
    abandoned().pools.push_back({pool_, device_, region_});
    return;
  }
  free_pool({pool_, device_, region_});
}

}  // namespace nicmem::pmd
