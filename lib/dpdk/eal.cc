// SPDX-License-Identifier: BSD-3-Clause
#include "dpdk/eal.h"

#include <rte_eal.h>
#include <rte_errno.h>

#include "dpdk/error.h"

namespace nicmem::dpdk {

SplitArguments split_arguments(int argc, char** argv) {
  const std::vector<std::string> all(argv, argv + argc);
  SplitArguments split;
  for (size_t i = 1; i < all.size(); ++i) {
    if (all[i] != "--") continue;
    const auto at = all.begin() + static_cast<std::ptrdiff_t>(i);
    split.eal.assign(all.begin(), at);
    split.own.assign(at + 1, all.end());
    split.own.insert(split.own.begin(), all[0]);
    return split;
  }
  split.own = all;
  if (!all.empty()) split.eal = {all[0]};
  return split;
}

Result<Eal> Eal::start(std::vector<std::string> arguments) {
  std::vector<char*> argv;  // rte_eal_init reorders the pointers and keeps none of them
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  const int consumed = rte_eal_init(static_cast<int>(arguments.size()), argv.data());
  if (consumed < 0) return fail_rte("starting DPDK (arguments before '--')", rte_errno);
  Eal eal;
  if (consumed + 1 < static_cast<int>(arguments.size())) {
    return fail(Code::kInvalidArgument,
                std::string("EAL argument '") + argv[static_cast<size_t>(consumed) + 1] +
                    "': not an option; accepted: EAL options only, before '--'");
  }
  return eal;
}

Eal::~Eal() {
  if (started_) rte_eal_cleanup();
}

}  // namespace nicmem::dpdk
