// SPDX-License-Identifier: BSD-3-Clause
// Arguments that a card understands. No rdma-core here: the driver reads them before it looks for
// the verbs piece.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace nicmem::hca_verbs {

inline constexpr std::string_view kKeys = "ibdev, sram";

struct Options {
  std::string ibdev;      // InfiniBand device ("mlx5_0") or PCI address ("0000:ca:00.0")
  size_t sram_bytes = 0;  // device memory to ask for; 0: all that the card gives
  bool guard = false;     // the window of device memory allows no access

  /// Stores one argument. False: not a key of ours. Error: a value that is not accepted.
  Result<bool> take(const std::string& key, const std::string& value);
};

}  // namespace nicmem::hca_verbs
