// SPDX-License-Identifier: BSD-3-Clause
// The forwarding function against an obvious model that reads the whole frame, recomputes the
// checksum, and knows nothing of segments; over frames with random damage and random splits.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "support/seed.h"
#include "unit/lib/nf/router_fixture.h"

namespace nicmem::nf {
namespace {

using test::Frame;

uint32_t byte_at(const Frame& frame, size_t i) { return static_cast<uint32_t>(frame[i]); }
uint32_t word_at(const Frame& frame, size_t i) {
  return byte_at(frame, i) << 8 | byte_at(frame, i + 1);
}
uint32_t long_at(const Frame& frame, size_t i) {
  return word_at(frame, i) << 16 | word_at(frame, i + 2);
}

uint16_t slow_checksum(const Frame& frame, size_t from, size_t bytes) {
  uint32_t sum = 0;
  for (size_t i = from; i < from + bytes; i += 2) sum += i == from + 10 ? 0 : word_at(frame, i);
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

bool slow_martian(uint32_t a) { return a < 0x01000000 || a >> 24 == 127 || a >= 0xe0000000; }

class RouterProperty : public Router {
 protected:
  /// The model of a whole frame of IPv4: forwarded or not, and what leaves.
  bool model_v4(Frame& frame) {
    if (frame.size() < 34 || (byte_at(frame, 0) & 1) != 0) return false;
    if (!(test::ether_of(frame).destination == in.mac) || word_at(frame, 12) != 0x0800)
      return false;
    const uint32_t header = (byte_at(frame, 14) & 15) * 4;
    const uint32_t total = word_at(frame, 16);
    if (byte_at(frame, 14) >> 4 != 4 || header < 20 || total < header) return false;
    if (frame.size() < 14 + total) return false;
    // One sum has two representations of zero: both are right on receipt.
    const uint32_t stated = word_at(frame, 24);
    const uint32_t computed = slow_checksum(frame, 14, header);
    if (stated != computed && !(stated == 0xffff && computed == 0)) return false;
    const uint32_t source = long_at(frame, 26);
    const uint32_t destination = long_at(frame, 30);
    if (slow_martian(source) || slow_martian(destination)) return false;
    for (const uint32_t refused : refused_v4)
      if (source == refused) return false;
    const NextHopId id = routes.lookup(destination);
    if (id == kNoRoute || hops[id].kind != NextHop::Kind::kForward) return false;
    if (byte_at(frame, 22) < 2 || total > hops[id].mtu_bytes) return false;
    frame[22] = static_cast<std::byte>(byte_at(frame, 22) - 1);
    const uint16_t sum = slow_checksum(frame, 14, header);
    frame[24] = static_cast<std::byte>(sum >> 8);
    frame[25] = static_cast<std::byte>(sum & 0xff);
    std::memcpy(frame.data(), hops[id].destination.bytes, 6);
    std::memcpy(frame.data() + 6, hops[id].source.bytes, 6);
    return true;
  }
};

/// A frame that is mostly right: random routable or odd addresses, then perhaps some damage.
Frame random_frame(Rng& rng) {
  const auto address = [&rng] {
    const uint32_t low = static_cast<uint32_t>(rng.below(4)) * 85;
    return rng.below(8) == 0
               ? static_cast<uint32_t>(rng.next())
               : test::v4(198, 18, static_cast<uint8_t>(rng.below(4)), static_cast<uint8_t>(low));
  };
  Frame frame =
      test::make_ipv4({.source = address(),
                       .destination = address(),
                       .ttl = static_cast<uint8_t>(rng.below(2) ? rng.below(4) : rng.next()),
                       .id = static_cast<uint16_t>(rng.next()),
                       .payload_bytes = rng.below(80),
                       .options = std::vector<uint8_t>(4 * rng.below(11), 1),
                       .padding_bytes = rng.below(8)});
  if (rng.below(2) == 0) {
    const size_t at = rng.below(std::min<size_t>(frame.size(), 80));
    frame[at] = static_cast<std::byte>(rng.next());
    if (rng.below(2) == 0) test::seal(frame);
  }
  if (rng.below(8) == 0) frame.resize(rng.below(frame.size() + 1));
  return frame;
}

TEST_F(RouterProperty, AgreesWithTheModelAndNeverReadsBeyondTheFirstSegment) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(testing::Message() << "replay with NM_SEED=" << seed);
  Rng rng(seed);
  int forwarded = 0;
  for (int step = 0; step < 200000; ++step) {
    const Frame frame = random_frame(rng);
    Frame want = frame;
    const bool passes = model_v4(want);
    Frame got = frame;
    const Verdict whole = run(got);
    ASSERT_EQ(whole.kind == Verdict::Kind::kForward, passes)
        << "step " << step << ": " << name_of(whole.reason);
    ASSERT_EQ(got, want) << "step " << step;
    forwarded += passes;

    Frame split = frame;
    const size_t first = rng.below(frame.size() + 1);
    const Verdict part = run(split, first);
    if (part == Verdict::drop(DropReason::kNeedsPayload)) continue;  // declined, not guessed
    ASSERT_EQ(part, whole) << "step " << step << ", first segment of " << first;
    ASSERT_EQ(split, got) << "step " << step;
  }
  EXPECT_GT(forwarded, 1000) << "the generator makes too few frames that pass";
}

TEST_F(RouterProperty, RandomBytesAreNeverForwardedUnchecked) {
  const uint64_t seed = test::test_seed();
  SCOPED_TRACE(testing::Message() << "replay with NM_SEED=" << seed);
  Rng rng(seed);
  in.accept_any_mac = true;
  for (int step = 0; step < 100000; ++step) {
    Frame frame(rng.below(100));
    for (std::byte& b : frame) b = static_cast<std::byte>(rng.next());
    if (frame.size() > 14) {
      frame[0] &= std::byte{0xfe};
      test::ether_of(frame).type.set(rng.below(2) ? hw::kEtherTypeIpv4 : hw::kEtherTypeIpv6);
      frame[14] = static_cast<std::byte>(rng.below(2) ? 0x45 : 0x60);
    }
    const Frame before = frame;
    const Verdict verdict = run(frame, rng.below(frame.size() + 1));
    ASSERT_NE(verdict.kind, Verdict::Kind::kPunt);
    if (verdict.kind == Verdict::Kind::kDrop) {
      ASSERT_EQ(frame, before);
    }
  }
}

}  // namespace
}  // namespace nicmem::nf
