// SPDX-License-Identifier: BSD-3-Clause
// What the paper's figures say about the same configurations. [Pismenny et al., "The benefits of
// general-purpose on-NIC memory", ASPLOS'22; 1,500-byte frames, headers of 64 bytes, two
// ConnectX-5. Read from its figures: see bench/README.md]
#pragma once

#include <optional>
#include <string>

#include "row.h"

namespace nicmem::demo {

struct Range {
  double low = 0, high = 0;
};

/// PCIe bytes per packet; nothing where no figure was published.
struct Published {
  std::optional<Range> out;
  std::optional<Range> in;
};

inline Published published_for(const RowSpec& spec) {
  if (spec.traffic != "1500") return {};
  if (spec.mode == "host") return {Range{1904, 1944}, Range{1721, 1794}};
  if (spec.mode == "split" || spec.across_devices) return {Range{1984, 1997}, {}};
  if (spec.mode == "nicmem-noinline") return {Range{259, 270}, {}};
  if (spec.mode == "nicmem") return {Range{225, 234}, Range{217, 221}};
  return {};
}

/// Whether `value` is within a tenth of the published range, or nothing was published.
inline bool agrees(double value, const std::optional<Range>& range) {
  return !range || (value >= range->low * 0.9 && value <= range->high * 1.1);
}

/// A published figure is comparable when the payload had room on the card.
inline bool comparable(const Row& row) {
  const bool on_card = row.spec.mode == "nicmem" || row.spec.mode == "nicmem-noinline";
  return !on_card || row.spec.across_devices || row.nicmem_payload_share > 0.999;
}

inline bool agrees(const Row& row) {
  const Published published = published_for(row.spec);
  return !comparable(row) ||
         (agrees(row.pcie_out_bytes, published.out) && agrees(row.pcie_in_bytes, published.in));
}

}  // namespace nicmem::demo
