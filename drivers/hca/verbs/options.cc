// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/verbs/options.h"

#include "base/units.h"

namespace nicmem::hca_verbs {

Result<bool> Options::take(const std::string& key, const std::string& value) {
  if (key == "ibdev") {
    if (value.empty())
      return fail(Code::kInvalidArgument,
                  "ibdev=: accepted: an InfiniBand device (mlx5_0) or a PCI address "
                  "(0000:ca:00.0)");
    ibdev = value;
  } else if (key == "sram") {
    const auto size = parse_size(value);
    if (!size || *size == 0)
      return fail(Code::kInvalidArgument,
                  "sram=" + value + ": accepted: a size in bytes or with K, KiB, M, MiB");
    sram_bytes = *size;
  } else {
    return false;
  }
  return true;
}

}  // namespace nicmem::hca_verbs
