// SPDX-License-Identifier: BSD-3-Clause
#include "attach.h"

#include <algorithm>
#include <mutex>
#include <vector>

#include "compat.h"
#include "drivers/hca/sim/sim_device.h"
#include "drivers/hca/verbs/loader.h"
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
  const auto known = [&](const auto& entry) { return entry.lock() == device; };
  std::erase_if(registry().devices, [](const auto& entry) { return entry.expired(); });
  if (std::ranges::none_of(registry().devices, known)) registry().devices.push_back(device);
}

/// Gives `options` all arguments that the driver itself does not know.
template <class Options>
Result<void> parse_rest(const Devargs& args, const char* control, std::string_view keys,
                        Options& options) {
  for (const auto& [key, value] : args.rest) {
    NM_TRY(const bool known, options.take(key, value));
    if (!known)
      return fail(Code::kInvalidArgument, "unknown argument '" + key +
                                              "': accepted: " + std::string(kDevargKeys) +
                                              "; with hca=" + control + ": " + std::string(keys));
  }
  return {};
}

Result<std::shared_ptr<Device>> attach_sim(const std::string& port_name, const std::string& name,
                                           const Devargs& args) {
  hca_sim::Options options{.port_name = port_name, .guard = args.guard};
  NM_TRY_VOID(parse_rest(args, "sim", hca_sim::kKeys, options));
  if (auto device = find_device(name)) {
    if (device->control != Control::kSim)
      return fail(Code::kInvalidArgument, "device=" + name + ": it is a card: accepted: one port");
    NM_TRY_VOID(hca_sim::join(*device->hca, options));
    return device;
  }
  auto device = std::make_shared<Device>();
  device->name = name;
  device->stepped = options.stepped();
  const size_t sram_bytes = options.sram_bytes;
  NM_TRY(device->hca, hca_sim::open(name, options));
  NM_TRY_VOID(set_up(*device, sram_bytes));
  return device;
}

/// A card's frames go to one driver: the flows of two would take each other's.
Result<void> check_free(const hca_verbs::DeviceName& card) {
  for (uint16_t port = 0; port < RTE_MAX_ETHPORTS; ++port) {
    const rte_eth_dev& dev = rte_eth_devices[port];
    if (rte_eth_dev_is_valid_port(port) == 0 || dev.device == nullptr || card.pci_address.empty() ||
        card.pci_address != dev.device->name)
      continue;
    return fail(Code::kInvalidArgument, card.ibdev + " (" + card.pci_address + ") is port " +
                                            std::to_string(port) + " of the driver " +
                                            rte_driver_name(dev.device->driver) +
                                            ": accepted: EAL without it: -b " + card.pci_address +
                                            ", or -a ADDRESS for each of the other devices");
  }
  return {};
}

Result<std::shared_ptr<Device>> attach_verbs(const std::string& name, const Devargs& args) {
  hca_verbs::Options options{.guard = args.guard};
  NM_TRY_VOID(parse_rest(args, "verbs", hca_verbs::kKeys, options));
  if (find_device(name))
    return fail(Code::kInvalidArgument,
                "device=" + name + ": a card has one port, and it is taken");
  NM_TRY(hca_verbs::Plugin* const plugin, hca_verbs::load());
  NM_TRY(const hca_verbs::DeviceName card, plugin->find(options.ibdev));
  NM_TRY_VOID(check_free(card));
  auto device = std::make_shared<Device>();
  device->name = name;
  device->control = Control::kVerbs;
  NM_TRY(device->hca, plugin->open(options));
  const size_t all = device->hca->capabilities().device_memory_bytes;
  NM_TRY_VOID(set_up(*device, options.sram_bytes != 0 ? options.sram_bytes : all));
  return device;
}

}  // namespace

Result<std::shared_ptr<Device>> attach(const std::string& port_name, const Devargs& args) {
  const std::string& name = args.device.empty() ? port_name : args.device;
  NM_TRY(auto device,
         args.hca == Control::kSim ? attach_sim(port_name, name, args) : attach_verbs(name, args));
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
