// SPDX-License-Identifier: BSD-3-Clause
#include "placement.h"

#include <dlfcn.h>
#include <link.h>

#include <cstring>

namespace nicmem::l3fwd {
namespace {

int collect_names(dl_phdr_info* object, size_t, void* names) {
  if (object->dlpi_name && std::strstr(object->dlpi_name, "nicmem"))
    static_cast<std::vector<std::string>*>(names)->emplace_back(object->dlpi_name);
  return 0;
}

/// The EAL opens plugins with local scope, so RTLD_DEFAULT alone does not see into them.
void* find_symbol(const char* name) {
  if (void* found = dlsym(RTLD_DEFAULT, name)) return found;
  std::vector<std::string> objects;
  dl_iterate_phdr(collect_names, &objects);
  for (const std::string& object : objects) {
    void* handle = dlopen(object.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!handle) continue;
    void* found = dlsym(handle, name);
    dlclose(handle);  // gives back our reference only: the EAL keeps its own
    if (found) return found;
  }
  return nullptr;
}

}  // namespace

NicmemApi find_nicmem_api() {
  return {.same_device = reinterpret_cast<decltype(NicmemApi::same_device)>(
              find_symbol("rte_pmd_nicmem_same_device")),
          .set_mode_host_payload = reinterpret_cast<decltype(NicmemApi::set_mode_host_payload)>(
              find_symbol("rte_pmd_nicmem_set_mode_host_payload"))};
}

Result<PortPlacement> place_port(const NicmemApi& api, uint16_t port, const std::string& name,
                                 const std::string& driver, std::span<const uint16_t> egress) {
  PortPlacement placement{.port = port, .name = name, .kind = PortPlacement::Kind::kNotNicmem};
  if (driver != "net_nicmem") return placement;

  placement.kind = PortPlacement::Kind::kOnCard;
  for (const uint16_t other : egress) {
    if (other == port) continue;
    if (!api.same_device || api.same_device(port, other) != 1)
      placement.kind = PortPlacement::Kind::kHostPayload;
  }
  if (placement.kind == PortPlacement::Kind::kOnCard) return placement;
  const int rc = api.set_mode_host_payload ? api.set_mode_host_payload(port) : -1;
  if (rc != 0) {
    return fail(Code::kUnsupported,
                "port " + name +
                    ": its egress crosses devices and its driver cannot be switched to host "
                    "payload; accepted: mode=split or mode=host among its device arguments, or "
                    "a net_nicmem that exports rte_pmd_nicmem_set_mode_host_payload",
                rc);
  }
  return placement;
}

std::string describe(const PortPlacement& placement) {
  const std::string port = "port " + std::to_string(placement.port) + " (" + placement.name + "): ";
  switch (placement.kind) {
    case PortPlacement::Kind::kOnCard:
      return port +
             "all egress on its own device: payload stays on the card if its mode puts it there "
             "(split=force)";
    case PortPlacement::Kind::kHostPayload:
      return port + "egress crosses devices: payload in host memory (split)";
    case PortPlacement::Kind::kNotNicmem:
      break;
  }
  return port + "not a nicmem device";
}

}  // namespace nicmem::l3fwd
