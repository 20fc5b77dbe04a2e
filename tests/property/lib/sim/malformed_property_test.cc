// SPDX-License-Identifier: BSD-3-Clause
// Hostile drivers: any bytes in rings, records and registers. The device must neither crash nor
// touch memory outside its regions (a sanitizer build sees that), it keeps count of every frame,
// and a reset brings each queue back.
#include <gtest/gtest.h>

#include "base/rng.h"
#include "support/seed.h"
#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

class Malformed : public testing::Test {
 protected:
  Malformed() { rig.receive_on({receiver.rq.get()}); }

  /// Writes random bytes, or a field that is nearly right, into a random part of `ring`.
  void damage(std::span<std::byte> ring) {
    for (uint64_t n = 1 + rng.below(6); n > 0; --n) {
      std::byte* at = ring.data() + rng.below(ring.size() / 4) * 4;
      const uint32_t likely[] = {host.region->key,
                                 card.region->key,
                                 hw::kInvalidKey,
                                 0,
                                 0x80000000u | static_cast<uint32_t>(rng.below(200)),
                                 static_cast<uint32_t>(rng.below(9000)),
                                 static_cast<uint32_t>(rng.next())};
      const be32 word(likely[rng.below(std::size(likely))]);
      std::memcpy(at, &word, sizeof word);
    }
  }

  /// Drains what was completed; returns how many.
  uint64_t drain(Completions& completions) {
    uint64_t count = 0;
    while (completions.poll()) ++count;
    return count;
  }

  Rng rng{test_seed()};
  Rig<> rig;
  Buffer host = Buffer::in_host(*rig.nic, rig.domain, 8192);
  Buffer card = Buffer::on_card(*rig.nic, rig.domain, 8192);
  Receiver receiver{*rig.port, rig.domain, 16, 4};
  Sender sender{*rig.port, rig.domain, 16, 256};
};

TEST_F(Malformed, ReceiveRingsAndRecords) {
  uint64_t offered = 0;
  for (int round = 0; round < 20'000; ++round) {
    const bool lossless = rng.below(2) == 0;
    rig.wire->waits = lossless;
    for (uint64_t n = rng.below(4); n > 0; --n) {
      rig.wire->inbox.push_back(pattern(rng.below(1700)));
      ++offered;
    }
    receiver.post({host.at(0, 128), card.at(0, 2048)});
    damage(receiver.rq->ring);
    if (rng.below(10) == 0) {
      receiver.rq->producer->publish<NM_RQ_RECORD_RELEASE>(static_cast<uint32_t>(rng.next()));
    }
    if (rng.below(10) == 0) {
      receiver.completions.cq->consumer->publish<NM_CQ_CONSUMER_RELEASE>(
          static_cast<uint32_t>(rng.next()));
    }
    rig.nic->step(++rig.now, static_cast<uint32_t>(rng.below(8)));
    drain(receiver.completions);
    const hca::PortCounters c = rig.port->counters();
    ASSERT_EQ(offered, c.rx_frames + c.rx_no_buffer + c.rx_oversize + c.rx_filtered + c.rx_error +
                           c.rx_malformed + c.wire_held)
        << "round " << round;
    if (rng.below(20) == 0) receiver.reset();
  }
  const hca::PortCounters c = rig.port->counters();
  EXPECT_GT(c.rx_frames, 500u);
  EXPECT_GT(c.rx_error, 100u);
  rig.wire->inbox.clear();
  rig.wire->waits = false;
  receiver.reset();
  rig.settle();
  receiver.reset();
  receiver.post({host.at(0, 128), card.at(0, 2048)});
  rig.wire->inbox.push_back(pattern(500));
  rig.settle();
  const auto entry = receiver.completions.poll();
  ASSERT_TRUE(entry.has_value());
  EXPECT_FALSE(hw::is_error(entry->op_own));
}

TEST_F(Malformed, SendRingsRecordsAndRegisters) {
  // Every WQE asks for a completion, so at rest: completed = sent + refused by the wire + errors.
  for (int round = 0; round < 20'000; ++round) {
    const hca::PortCounters before = rig.port->counters();
    sender.reset();
    const uint64_t frames = 1 + rng.below(4);
    for (uint64_t n = 0; n < frames; ++n) {
      Bytes wqe = sender.build(pattern(rng.below(100)),
                               {host.at(0, static_cast<uint32_t>(1 + rng.below(1500))),
                                card.at(0, static_cast<uint32_t>(1 + rng.below(100)))});
      sender.put(wqe);
    }
    const bool damaged = rng.below(4) != 0;
    if (damaged) damage(sender.sq->ring);
    if (rng.below(20) == 0) sender.posted = static_cast<uint16_t>(rng.next());
    sender.ring();
    rig.settle();
    const uint64_t completed = drain(sender.completions);
    const hca::PortCounters c = rig.port->counters();
    const uint64_t ended = (c.tx_frames - before.tx_frames) + (c.tx_error - before.tx_error) +
                           (c.tx_wire_drops - before.tx_wire_drops);
    ASSERT_EQ(rig.wire->outbox.size(), c.tx_frames - before.tx_frames);
    if (!damaged && ended == frames) {
      ASSERT_EQ(completed, frames);
    }
    // Damage may ask for no completion, but not of the first error.
    if (c.tx_error > before.tx_error) {
      ASSERT_GT(completed, 0u) << "round " << round;
    }
    rig.wire->outbox.clear();
  }
  EXPECT_GT(rig.port->counters().tx_frames, 1000u);
  EXPECT_GT(rig.port->counters().tx_error, 1000u);
  sender.reset();
  sender.send(pattern(100), {});
  rig.settle();
  ASSERT_EQ(rig.wire->outbox.size(), 1u);
  EXPECT_EQ(rig.wire->outbox[0], pattern(100));
}

/// Work requests of nothing but noise.
TEST_F(Malformed, Noise) {
  for (int round = 0; round < 20'000; ++round) {
    for (std::byte& byte : sender.sq->ring) byte = static_cast<std::byte>(rng.next());
    for (std::byte& byte : receiver.rq->ring) byte = static_cast<std::byte>(rng.next());
    if (rng.below(2) == 0) {  // past the first check: index and queue are right
      hw::ControlSegment control{};
      constexpr uint32_t kOpcodes[] = {0x00, 0x0a, 0x0e, 0x29};
      control.opmod_index_opcode.set(kOpcodes[rng.below(4)]);
      control.qpn_ds.set(sender.sq->number << 8 | static_cast<uint32_t>(rng.below(64)));
      std::memcpy(sender.sq->ring.data(), &control, sizeof control);
      std::memset(sender.sq->ring.data() + 16, 0, 12);
      if (rng.below(2) == 0) sender.sq->ring[28] = std::byte{0};
    }
    sender.posted = static_cast<uint16_t>(rng.below(20));
    sender.put({});
    receiver.rq->producer->publish<NM_RQ_RECORD_RELEASE>(static_cast<uint32_t>(rng.below(20)));
    sender.sq->producer->publish<NM_SQ_RECORD_RELEASE>(sender.posted);
    sender.sq->doorbell->ring(sender.sq->ring.data());
    rig.wire->inbox.push_back(pattern(14 + rng.below(200)));
    rig.settle();
    drain(sender.completions);
    drain(receiver.completions);
    sender.reset();
    receiver.reset();
    rig.wire->outbox.clear();
  }
}

}  // namespace
}  // namespace nicmem::test
