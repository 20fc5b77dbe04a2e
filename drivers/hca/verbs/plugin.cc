// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/verbs/plugin.h"

#include "drivers/hca/verbs/device.h"
#include "drivers/hca/verbs/inventory.h"

namespace nicmem::hca_verbs {
namespace {

class VerbsPlugin final : public Plugin {
 public:
  Result<std::vector<DeviceName>> list() override { return list_devices(); }
  Result<DeviceName> find(const std::string& ibdev) override { return find_device(ibdev); }
  Result<std::unique_ptr<hca::Hca>> open(const Options& options) override {
    NM_TRY(const DeviceName name, find_device(options.ibdev));
    return VerbsDevice::open(name, options.guard);
  }
  Result<DeviceReport> report(const DeviceName& device) override { return report_on(device); }
};

}  // namespace
}  // namespace nicmem::hca_verbs

extern "C" [[gnu::visibility("default")]] nicmem::hca_verbs::Plugin* nm_hca_verbs_plugin(
    uint32_t version) {
  static nicmem::hca_verbs::VerbsPlugin plugin;
  return version == nicmem::hca_verbs::kPluginVersion ? &plugin : nullptr;
}
