// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/verbs/loader.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace nicmem::hca_verbs {
namespace {

namespace fs = std::filesystem;

/// Where the object lies that this code is part of.
fs::path own_folder() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<void*>(&own_folder), &here) == 0) return {};
  std::error_code error;
  return fs::canonical(here.dli_fname, error).parent_path();
}

/// What the environment says, where it was installed, beside the driver, and where it lies in a
/// build tree, as seen from there.
std::vector<fs::path> places() {
  std::vector<fs::path> all;
  if (const char* const given = secure_getenv("NICMEM_LIBRARY_DIR")) all.emplace_back(given);
  all.emplace_back(NM_LIBRARY_DIR);
  for (const char* const there : {".", "../../hca/verbs", "../../drivers/hca/verbs"})
    all.push_back(own_folder() / there);
  return all;
}

Result<Plugin*> open(const fs::path& path) {
  void* const object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr)
    return fail(Code::kUnsupported, std::string("hca=verbs: ") + dlerror() +
                                        ": needs rdma-core (Debian packages libibverbs1, "
                                        "ibverbs-providers)");
  void* const entry = dlsym(object, kPluginSymbol);
  Plugin* const plugin =
      entry != nullptr ? reinterpret_cast<PluginEntry*>(entry)(kPluginVersion) : nullptr;
  if (plugin == nullptr)
    return fail(Code::kUnsupported,
                "hca=verbs: " + path.string() + " is of another version of nicmem");
  return plugin;
}

Result<Plugin*> find() {
  std::string tried;
  for (const fs::path& folder : places()) {
    const fs::path path = folder / kPluginFile;
    std::error_code error;
    if (fs::exists(path, error)) return open(path);
    tried += (tried.empty() ? "" : ", ") + folder.string();
  }
  return fail(Code::kUnsupported, std::string("hca=verbs: ") + kPluginFile + " is in none of: " +
                                      tried + " (NICMEM_LIBRARY_DIR names another folder)");
}

}  // namespace

Result<Plugin*> load() {
  static Plugin* loaded = nullptr;  // calls are serialised, as all of the control path
  if (loaded == nullptr) {
    NM_TRY(loaded, find());
  }
  return loaded;
}

}  // namespace nicmem::hca_verbs
