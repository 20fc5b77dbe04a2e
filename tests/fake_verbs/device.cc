// SPDX-License-Identifier: BSD-3-Clause
// Devices and contexts: list, open, close, what they report, and their events.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "drivers/hca/sim/engine.h"
#include "drivers/hca/sim/wires.h"
#include "fake.h"
#include "hw/wqe.h"
#include "sim/nic.h"
#include "surroundings.h"

namespace nicmem::fake {
namespace {

constexpr uint32_t kPageBytes = 4096;

cpu_set_t all_cpus() {
  cpu_set_t all;
  CPU_ZERO(&all);
  const long count = std::min<long>(sysconf(_SC_NPROCESSORS_ONLN), CPU_SETSIZE);
  for (int cpu = 0; cpu < count; ++cpu) CPU_SET(static_cast<size_t>(cpu), &all);
  return all;
}

int say(const Device& device, const Error& error) {
  std::fprintf(stderr, "fake_verbs: %s: %s\n", device.verbs.name, error.what.c_str());
  return errno_of(error);
}

}  // namespace

/// From an object beside this one, which alone needs DPDK.
Result<std::unique_ptr<sim::Wire>> open_ethdev_wire(const std::string& name) {
  using Wire = Result<std::unique_ptr<sim::Wire>>;
  Dl_info here{};
  dladdr(reinterpret_cast<void*>(&open_ethdev_wire), &here);
  const auto path = std::filesystem::path(here.dli_fname).parent_path() / "libfake_verbs_ethdev.so";
  void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const symbol = object != nullptr ? dlsym(object, "nm_fake_verbs_open_ethdev") : nullptr;
  if (symbol == nullptr) {
    return nicmem::fail(Code::kSystem, std::string("wire=ethdev: ") + dlerror(), ENOENT);
  }
  const std::unique_ptr<Wire> wire(reinterpret_cast<Wire* (*)(const std::string&)>(symbol)(name));
  return std::move(*wire);
}

Device::Device() = default;
Device::~Device() = default;

uint64_t Device::guid() const {
  const auto same = [this](const auto& device) { return device.get() == this; };
  const auto at = std::ranges::find_if(devices(), same);
  return 0x0200'00ff'fe00'0001 + static_cast<uint64_t>(at - devices().begin());
}

int Device::open() {
  surroundings = std::make_unique<Surroundings>(*this);
  sim::NicOptions nic{.name = verbs.name, .sram_bytes = options.sram_bytes, .guard = options.guard};
  nic.ports = {.keep_unmatched = keep_unmatched,
               .rule_priorities = kModelPriorities,
               .flush_receives = true};
  nic.numa_node = options.numa_node;
  nic.faults = options.faults;
  nic.wire = [this](const hca::PortOptions& open_port) {
    return hca_sim::make_wire(options, open_port, open_ethdev_wire);
  };
  nic.memory = [this](sim::QueueKind kind, size_t bytes) {
    return creating->queue_memory(kind, bytes);
  };
  if (!options.stepped()) {
    nic.now = [this] {
      const Nanos now = hca_sim::steady_now();
      surroundings->look(now);
      return now;
    };
  } else if (options.faults == nullptr) {
    nic.now = hca_sim::steady_now;
  }
  auto made = sim::make_nic(std::move(nic));
  if (!made) return say(*this, made.error());
  auto opened = (*made)->open_port({.name = verbs.name,
                                    .mac = surroundings->mac(),
                                    .on_event = [this](hca::PortEvent event) { tell(event); }});
  if (!opened) return say(*this, opened.error());
  hca = std::move(*made);
  port = std::move(*opened);
  fatal = false;
  static_cast<void>(port->set_max_frame(sim::kMaxFrameBytes));
  static_cast<void>(port->start());
  surroundings->look();
  if (options.stepped()) return 0;
  const auto runs = hca_sim::Engine::add(*hca, options.cpu, all_cpus());
  return runs ? 0 : say(*this, runs.error());
}

size_t Device::step(uint32_t frames) {
  const size_t moved = fatal ? 0 : hca->step(frames);
  surroundings->look();
  return moved;
}

void Device::close() {
  if (hca == nullptr) return;
  hca_sim::Engine::remove(*hca);
  port = nullptr;
  hca = nullptr;
  surroundings = nullptr;
}

/// Called by the thread that steps the model, without the fake's lock: contexts are closed only
/// after the port, or while `contexts_mutex` is held.
void Device::tell(hca::PortEvent event) {
  const std::lock_guard lock(contexts_mutex);
  const bool up = port != nullptr && port->link().up;
  ibv_event_type type = up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR;
  if (event != hca::PortEvent::kLinkChanged) type = IBV_EVENT_DEVICE_FATAL;
  for (Context* context : contexts) context->post(type);
}

void Device::fail() {
  if (!options.stepped()) hca_sim::Engine::remove(*hca);
  fatal = true;
  const std::lock_guard lock(contexts_mutex);
  for (Context* context : contexts) context->post(IBV_EVENT_DEVICE_FATAL);
}

void Context::post(ibv_event_type type) {
  ibv_async_event event{};
  event.event_type = type;
  event.element.port_num = 1;
  const std::lock_guard lock(events_mutex);
  events.push_back(event);
  const uint64_t one = 1;
  static_cast<void>(!write(verbs.context.async_fd, &one, sizeof one));
}

namespace {

void* allocate(const mlx5dv_ctx_allocators& allocators, size_t bytes) {
  void* const buffer = allocators.alloc != nullptr
                           ? allocators.alloc(bytes, allocators.data)
                           : std::aligned_alloc(kPageBytes, round_up<size_t>(bytes, kPageBytes));
  if (buffer != nullptr) std::memset(buffer, 0, bytes);
  return buffer;
}

/// What one queue has, until it is gone.
struct Buffers {
  Context& context;
  const mlx5dv_ctx_allocators allocators;  // as they were when it was made
  void* ring = nullptr;
  void* records = nullptr;
  void* uar = nullptr;
  size_t page = 0;

  Buffers(Context& owner, size_t ring_bytes)
      : context(owner),
        allocators(owner.allocators),
        ring(allocate(allocators, ring_bytes)),
        records(allocate(allocators, sim::kLineBytes)) {}
  ~Buffers() {
    if (ring != nullptr) give_back(ring);
    if (records != nullptr) give_back(records);
    if (uar != nullptr) munmap(uar, kPageBytes);
    if (uar != nullptr) context.uar_pages[page] = false;
  }
  void give_back(void* buffer) const {
    if (allocators.free != nullptr) {
      allocators.free(buffer, allocators.data);
    } else {
      std::free(buffer);
    }
  }
};

}  // namespace

/// Memory of a ring and its records as libmlx5 gets it: from the program's allocator if there is
/// one. The record is a pair there: receive, send.
Result<sim::QueueMemory> Context::queue_memory(sim::QueueKind kind, size_t bytes) {
  const auto buffers = std::make_shared<Buffers>(*this, bytes);
  if (buffers->ring == nullptr || buffers->records == nullptr) {
    return nicmem::fail(Code::kExhausted, "queue: no memory for its ring");
  }
  sim::QueueMemory memory{.owner = buffers, .ring = static_cast<std::byte*>(buffers->ring)};
  memory.record = static_cast<hw::DoorbellRecord*>(buffers->records);
  if (kind != sim::QueueKind::kSend) return memory;
  memory.record += MLX5_SND_DBR;
  buffers->page = static_cast<size_t>(std::ranges::find(uar_pages, false) - uar_pages.begin());
  if (buffers->page == uar_pages.size()) uar_pages.push_back(false);
  const auto offset = static_cast<off_t>(buffers->page * kPageBytes);
  void* const uar =
      ftruncate(uar_fd, static_cast<off_t>(uar_pages.size() * kPageBytes)) == 0
          ? mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, uar_fd, offset)
          : MAP_FAILED;
  if (uar == MAP_FAILED) return nicmem::fail(Code::kSystem, "queue: no UAR page", errno);
  uar_pages[buffers->page] = true;
  buffers->uar = uar;
  last_uar_offset = offset;
  memory.doorbell =
      reinterpret_cast<hw::DoorbellRegister*>(static_cast<std::byte*>(uar) + kDoorbellOffset);
  const uint64_t silent = 0;
  memory.doorbell->ring(&silent);
  return memory;
}

}  // namespace nicmem::fake
