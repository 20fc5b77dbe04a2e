// SPDX-License-Identifier: BSD-3-Clause
#include "attach.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "compat.h"
#include "drivers/hca/sim/sim_device.h"
#include "log.h"

namespace nicmem::pmd {
namespace {

/// The devices of this process: joining ports and telling foreign memory need all of them.
struct Registry {
  std::mutex mutex;
  std::vector<std::weak_ptr<Device>> devices;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

std::shared_ptr<Device> find_device(const std::string& name) {
  const std::lock_guard lock(registry().mutex);
  for (const auto& entry : registry().devices)
    if (auto device = entry.lock(); device && device->name == name) return device;
  return nullptr;
}

void remember(const std::shared_ptr<Device>& device) {
  const std::lock_guard lock(registry().mutex);
  std::erase_if(registry().devices, [](const auto& entry) { return entry.expired(); });
  registry().devices.push_back(device);
}

Result<hca_sim::Options> parse_rest(const std::string& port_name, const Devargs& args) {
  hca_sim::Options options{.port_name = port_name, .guard = args.guard};
  for (const auto& [key, value] : args.rest) {
    NM_TRY(const bool known, options.take(key, value));
    if (!known)
      return fail(Code::kInvalidArgument, "unknown argument '" + key +
                                              "': accepted: " + std::string(kDevargKeys) +
                                              "; with hca=sim: " + std::string(hca_sim::kKeys));
  }
  return options;
}

}  // namespace

Result<std::shared_ptr<Device>> attach(const std::string& port_name, const Devargs& args) {
  NM_TRY(hca_sim::Options options, parse_rest(port_name, args));
  const std::string name = args.device.empty() ? port_name : args.device;
  if (auto device = find_device(name)) {
    NM_TRY_VOID(hca_sim::join(*device->hca, options));
    return device;
  }
  auto device = std::make_shared<Device>();
  device->name = name;
  device->stepped = options.stepped();
  const size_t sram_bytes = options.sram_bytes;
  NM_TRY(device->hca, hca_sim::open(name, options));
  NM_TRY_VOID(set_up(*device, sram_bytes));
  remember(device);
  return device;
}

bool is_device_memory(const void* pointer) {
  const std::lock_guard lock(registry().mutex);
  return std::ranges::any_of(registry().devices, [pointer](const auto& entry) {
    const auto device = entry.lock();
    return device && device->memory && device->memory->contains(pointer);
  });
}

}  // namespace nicmem::pmd
