// SPDX-License-Identifier: BSD-3-Clause
// Random work requests, good and bad, against an obvious model: which bytes move where, and which
// syndrome an error has. The model keeps a shadow copy of all memory and compares all of it.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "support/seed.h"
#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

using hw::Syndrome;

/// CRC-32C of frames, so that a failure prints a number and not 1,500 bytes.
uint32_t crc(std::span<const std::byte> bytes) {
  uint32_t sum = ~0u;
  for (const std::byte byte : bytes) {
    sum ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ (0x82f63b78u & (0u - (sum & 1)));
  }
  return ~sum;
}

class ScatterGather : public testing::Test {
 protected:
  static constexpr size_t kBytes = 8192;
  static constexpr uint32_t kMaxFrame = 3000;

  /// A registered buffer, and what the test believes is in it.
  struct Known {
    Buffer buffer;
    hca::Domain domain;
    bool writable;
    Bytes shadow = Bytes(kBytes);
  };

  ScatterGather() {
    ok(rig.port->set_max_frame(kMaxFrame));
    const hca::Domain other = ok(rig.nic->create_domain());
    for (const hca::Domain domain : {rig.domain, other}) {
      for (const auto access : {hca::Access::kRead, hca::Access::kReadWrite}) {
        for (const bool on_card : {false, true}) {
          known.push_back({on_card ? Buffer::on_card(*rig.nic, domain, kBytes, access)
                                   : Buffer::in_host(*rig.nic, domain, kBytes, access),
                           domain, access == hca::Access::kReadWrite});
          for (size_t i = 0; i < kBytes; ++i) {
            known.back().shadow[i] = static_cast<std::byte>(rng.next());
          }
          std::ranges::copy(known.back().shadow, known.back().buffer.data().begin());
        }
      }
    }
  }

  /// One piece of memory, as a segment and as the model sees it.
  struct Piece {
    hw::DataSegment segment;
    Known* memory;  // null: the key is bad
    int64_t offset;
    uint32_t bytes;
  };

  Piece random_piece(uint32_t most, bool mostly_good) {
    const bool careless = !mostly_good || rng.below(40) == 0;
    Known& memory = known[rng.below(careless ? known.size() : 4)];
    const auto bytes = static_cast<uint32_t>(1 + rng.below(most));
    auto offset = static_cast<int64_t>(rng.below(kBytes - bytes + 1));
    if (careless && rng.below(3) == 0) {  // around both ends
      const auto slack = static_cast<int64_t>(rng.below(5)) - 2;
      offset = rng.below(2) == 0 ? slack : static_cast<int64_t>(kBytes) - bytes + slack;
    }
    hw::DataSegment segment = memory.buffer.at(0, bytes);
    segment.address.set(segment.address.get() + static_cast<uint64_t>(offset));
    Known* found = &memory;
    if (careless && rng.below(8) == 0) {
      segment.key.set(segment.key.get() ^ (1u << rng.below(32)));
      found = nullptr;
      for (Known& k : known) {
        if (k.buffer.region->key == segment.key.get()) found = &k;  // another's key: no matter
      }
      if (found != nullptr) return random_piece(most, mostly_good);
    }
    return {segment, found, offset, bytes};
  }

  bool allowed(const Piece& piece, uint32_t bytes, bool write) const {
    return piece.memory != nullptr && piece.memory->domain == rig.domain &&
           (!write || piece.memory->writable) && piece.offset >= 0 &&
           piece.offset + bytes <= static_cast<int64_t>(kBytes);
  }

  void expect_memory(const char* after) {
    for (size_t i = 0; i < known.size(); ++i) {
      ASSERT_EQ(crc(known[i].buffer.data()), crc(known[i].shadow)) << after << ", buffer " << i;
    }
  }

  Rng rng{test_seed()};
  Rig<> rig;
  std::vector<Known> known;
};

TEST_F(ScatterGather, ReceiveDoesWhatTheModelDoes) {
  Receiver receiver(*rig.port, rig.domain, 4, 8);
  rig.receive_on({receiver.rq.get()});
  hca::PortCounters expected;
  for (int round = 0; round < 6000; ++round) {
    const bool mostly_good = rng.below(4) != 0;
    std::vector<Piece> pieces(rng.below(9));
    std::vector<hw::DataSegment> list;
    for (Piece& piece : pieces) {
      piece = random_piece(900, mostly_good);
      if (rng.below(6) == 0) {  // an empty entry changes nothing
        piece.bytes = 0;
        piece.segment.byte_count.set(0);
      }
      list.push_back(piece.segment);
    }
    Bytes frame(14 + rng.below(1800));
    for (std::byte& byte : frame) byte = static_cast<std::byte>(rng.next());

    Syndrome syndrome = Syndrome::kNone;
    size_t done = 0;
    for (const Piece& piece : pieces) {
      const bool ends_the_list =
          piece.segment.byte_count.get() == 0 && piece.segment.key.get() == hw::kInvalidKey;
      if (ends_the_list) break;  // a damaged key may happen to be that one
      const auto bytes = static_cast<uint32_t>(std::min<size_t>(piece.bytes, frame.size() - done));
      if (bytes == 0) continue;
      if (!allowed(piece, bytes, true)) {
        syndrome = Syndrome::kLocalProtection;
        break;
      }
      std::copy_n(frame.begin() + static_cast<ptrdiff_t>(done), bytes,
                  piece.memory->shadow.begin() + piece.offset);
      done += bytes;
    }
    if (syndrome == Syndrome::kNone && done < frame.size()) syndrome = Syndrome::kLocalLength;

    receiver.post(list);
    rig.wire->inbox.push_back(frame);
    rig.settle();
    const auto entry = receiver.completions.poll();
    ASSERT_TRUE(entry.has_value()) << "round " << round;
    if (syndrome == Syndrome::kNone) {
      ASSERT_FALSE(hw::is_error(entry->op_own)) << "round " << round;
      ASSERT_EQ(entry->byte_count.get(), frame.size());
      ++expected.rx_frames;
    } else {
      ASSERT_TRUE(hw::is_error(entry->op_own)) << "round " << round;
      ASSERT_EQ(syndrome_of(*entry), syndrome) << "round " << round;
      ++expected.rx_error;
      if (syndrome == Syndrome::kLocalProtection) receiver.reset();
    }
    if (round % 16 == 0) expect_memory("receive");
  }
  EXPECT_EQ(rig.port->counters().rx_frames, expected.rx_frames);
  EXPECT_EQ(rig.port->counters().rx_error, expected.rx_error);
  EXPECT_GT(expected.rx_frames, 300u);
  EXPECT_GT(expected.rx_error, 300u);
}

TEST_F(ScatterGather, SendDoesWhatTheModelDoes) {
  Sender sender(*rig.port, rig.domain, 64);
  uint64_t sent = 0, errors = 0;
  for (int round = 0; round < 6000; ++round) {
    const bool mostly_good = rng.below(4) != 0;
    Bytes expected(rng.below(3) == 0 ? 0 : rng.below(400));
    for (std::byte& byte : expected) byte = static_cast<std::byte>(rng.next());
    const Bytes inlined = expected;
    std::vector<hw::DataSegment> list;
    Syndrome syndrome = Syndrome::kNone;
    for (uint64_t n = rng.below(7); n > 0; --n) {
      const Piece piece = random_piece(900, mostly_good);
      list.push_back(piece.segment);
      if (syndrome != Syndrome::kNone) continue;
      if (expected.size() + piece.bytes > kMaxFrame) {
        syndrome = Syndrome::kLocalLength;
      } else if (!allowed(piece, piece.bytes, false)) {
        syndrome = Syndrome::kLocalProtection;
      } else {
        const auto from = piece.memory->shadow.begin() + piece.offset;
        expected.insert(expected.end(), from, from + piece.bytes);
      }
    }
    if (syndrome == Syndrome::kNone && expected.size() < 14) syndrome = Syndrome::kLocalLength;

    sender.send(inlined, list);
    rig.settle();
    const auto entry = sender.completions.poll();
    ASSERT_TRUE(entry.has_value()) << "round " << round;
    if (syndrome == Syndrome::kNone) {
      ASSERT_FALSE(hw::is_error(entry->op_own)) << "round " << round;
      ASSERT_EQ(rig.wire->outbox.size(), 1u);
      ASSERT_EQ(crc(rig.wire->outbox[0]), crc(expected)) << "round " << round;
      ++sent;
    } else {
      ASSERT_TRUE(hw::is_error(entry->op_own)) << "round " << round;
      ASSERT_EQ(syndrome_of(*entry), syndrome) << "round " << round;
      ASSERT_TRUE(rig.wire->outbox.empty());
      ++errors;
      sender.reset();
    }
    rig.wire->outbox.clear();
  }
  expect_memory("send");
  EXPECT_EQ(rig.port->counters().tx_frames, sent);
  EXPECT_EQ(rig.port->counters().tx_error, errors);
  EXPECT_GT(sent, 300u);
  EXPECT_GT(errors, 300u);
}

}  // namespace
}  // namespace nicmem::test
