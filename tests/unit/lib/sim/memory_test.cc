// SPDX-License-Identifier: BSD-3-Clause
// Device memory: pieces, guard mode, regions, what is refused.
#include <gtest/gtest.h>

#include "support/sim_rig.h"

namespace nicmem::test {
namespace {

std::unique_ptr<sim::Nic> make_nic(size_t bytes, bool guard = false) {
  return ok(sim::Nic::create({.sram_bytes = bytes, .guard = guard}));
}

TEST(SimMemory, RefusesSizesThatNoCardHas) {
  for (const size_t bytes : {size_t{0}, (size_t{128} << 20) + 1}) {
    const auto nic = sim::Nic::create({.sram_bytes = bytes});
    ASSERT_FALSE(nic.has_value());
    EXPECT_EQ(nic.error().code, Code::kInvalidArgument);
    EXPECT_NE(nic.error().what.find("128MiB"), std::string::npos) << nic.error().what;
  }
  EXPECT_EQ(make_nic(size_t{128} << 20)->capabilities().device_memory_bytes, size_t{128} << 20);
}

TEST(SimMemory, LengthsAreRoundedUpTo64) {
  const auto nic = make_nic(64_KiB);
  for (const size_t bytes : {1u, 63u, 64u, 65u}) {
    const auto memory = ok(nic->allocate_device_memory(bytes));
    EXPECT_EQ(memory->access().size(), (bytes + 63) / 64 * 64);
    EXPECT_EQ(memory->window().data(), memory->access().data());
  }
  EXPECT_EQ(nic->allocate_device_memory(0).error().code, Code::kInvalidArgument);
}

TEST(SimMemory, ExhaustionNamesWhatWasAskedAndWhatIsLeft) {
  const auto nic = make_nic(64_KiB);
  auto first = ok(nic->allocate_device_memory(16_KiB));
  auto second = ok(nic->allocate_device_memory(16_KiB));
  auto third = ok(nic->allocate_device_memory(16_KiB));
  second.reset();  // free: 16 KiB in the middle, 16 KiB at the end
  const auto refused = nic->allocate_device_memory(20_KiB);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::kExhausted);
  EXPECT_NE(refused.error().what.find("20KiB"), std::string::npos) << refused.error().what;
  EXPECT_NE(refused.error().what.find("16KiB"), std::string::npos) << refused.error().what;
  third.reset();  // the holes join
  EXPECT_TRUE(nic->allocate_device_memory(48_KiB).has_value());
  EXPECT_EQ(nic->allocate_device_memory(~size_t{0}).error().code, Code::kExhausted);
}

TEST(SimMemory, AllOfItCanBeOnePiece) {
  const auto nic = make_nic(8_MiB);
  EXPECT_EQ(nic->allocate_device_memory(8_MiB + 1).error().code, Code::kExhausted);
  EXPECT_EQ(ok(nic->allocate_device_memory(8_MiB))->access().size(), 8_MiB);
  const auto odd = make_nic(100);
  EXPECT_EQ(odd->allocate_device_memory(129).error().code, Code::kExhausted);
  EXPECT_EQ(ok(odd->allocate_device_memory(128))->access().size(), 128u);
}

TEST(SimMemory, AGuardedWindowIsOnlyAnAddress) {
  Rig<> rig({.guard = true});
  Buffer card = Buffer::on_card(*rig.nic, rig.domain, 8192);
  EXPECT_NE(card.memory->window().data(), card.memory->access().data());
  const Bytes frame = pattern(1000);
  std::ranges::copy(frame, card.data().begin());
  Sender sender(*rig.port, rig.domain, 16);
  sender.send({}, {card.at(0, 1000)});  // the address comes from the window
  rig.settle();
  ASSERT_EQ(rig.wire->outbox.size(), 1u);
  EXPECT_EQ(rig.wire->outbox[0], frame);
}

TEST(SimMemoryDeathTest, TouchingAGuardedWindowEndsTheProgram) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto nic = make_nic(64_KiB, true);
  const auto memory = ok(nic->allocate_device_memory(4096));
  volatile std::byte* at = memory->window().data();
  EXPECT_DEATH(static_cast<void>(at[0]), "");
  EXPECT_DEATH(at[4095] = std::byte{1}, "");
  memory->access()[0] = std::byte{1};  // copies are allowed
}

TEST(SimMemoryDeathTest, MemoryOutlivesItsRegions) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto nic = make_nic(64_KiB);
  const hca::Domain domain = ok(nic->create_domain());
  Buffer card = Buffer::on_card(*nic, domain, 4096);
  EXPECT_DEATH(card.memory.reset(), "registrations == 0");
  card.region.reset();
}

TEST(SimMemory, RegionsStayInsideTheirMemory) {
  const auto nic = make_nic(64_KiB);
  const auto other_nic = make_nic(64_KiB);
  const hca::Domain domain = ok(nic->create_domain());
  const auto memory = ok(nic->allocate_device_memory(4096));
  const auto try_region = [&](size_t offset, size_t length) {
    return nic->register_device_memory(domain, *memory, offset, length, hca::Access::kRead)
        .has_value();
  };
  EXPECT_TRUE(try_region(0, 4096));
  EXPECT_TRUE(try_region(1, 4095));
  EXPECT_FALSE(try_region(1, 4096));
  EXPECT_FALSE(try_region(4097, 1));
  EXPECT_FALSE(try_region(2, ~size_t{0}));
  EXPECT_FALSE(try_region(0, 0));
  const auto foreign = ok(other_nic->allocate_device_memory(4096));
  EXPECT_EQ(nic->register_device_memory(domain, *foreign, 0, 64, hca::Access::kRead).error().code,
            Code::kInvalidArgument);
  EXPECT_EQ(
      nic->register_device_memory(hca::Domain{77}, *memory, 0, 64, hca::Access::kRead).error().code,
      Code::kNotFound);
  EXPECT_EQ(nic->register_host_memory(domain, nullptr, 64, hca::Access::kRead).error().code,
            Code::kInvalidArgument);
}

TEST(SimMemory, ARegionInTheMiddleCountsFromItsStart) {
  Rig<> rig;
  const auto memory = ok(rig.nic->allocate_device_memory(8192));
  const auto region =
      ok(rig.nic->register_device_memory(rig.domain, *memory, 1000, 500, hca::Access::kReadWrite));
  EXPECT_EQ(region->address_of(memory->window().data() + 1000), 0u);
  const Bytes frame = pattern(500);
  std::ranges::copy(frame, memory->access().begin() + 1000);
  Sender sender(*rig.port, rig.domain, 16);
  sender.send({}, {segment(region->key, 0, 500)});
  rig.settle();
  ASSERT_EQ(rig.wire->outbox.size(), 1u);
  EXPECT_EQ(rig.wire->outbox[0], frame);
}

TEST(SimMemory, NoKeyIsTheInvalidOne) {
  const auto nic = make_nic(64_KiB);
  const hca::Domain domain = ok(nic->create_domain());
  for (int i = 0; i < 600; ++i) {  // more than the generations of one entry
    Buffer first = Buffer::in_host(*nic, domain, 64);
    Buffer second = Buffer::in_host(*nic, domain, 64);
    for (const Buffer* buffer : {&first, &second}) {
      EXPECT_NE(buffer->region->key, hw::kInvalidKey);
      EXPECT_NE(buffer->region->key, 0u);
    }
  }
}

TEST(SimPort, RefusesWhatACardRefuses) {
  Rig<> rig;
  const auto cq = ok(rig.port->create_completion_queue({.depth = 8}));
  for (const uint32_t depth : {0u, 3u, 65536u}) {
    EXPECT_EQ(rig.port->create_completion_queue({.depth = depth}).error().code,
              Code::kInvalidArgument);
    EXPECT_EQ(rig.port->create_send_queue(rig.domain, *cq, depth).error().code,
              Code::kInvalidArgument);
    EXPECT_EQ(rig.port->create_receive_queue(rig.domain, *cq, {.depth = depth}).error().code,
              Code::kInvalidArgument);
  }
  for (const uint32_t entries : {0u, 33u}) {
    EXPECT_EQ(
        rig.port->create_receive_queue(rig.domain, *cq, {.depth = 8, .scatter_entries = entries})
            .error()
            .code,
        Code::kInvalidArgument);
  }
  EXPECT_EQ(rig.port->create_send_queue(hca::Domain{9}, *cq, 8).error().code, Code::kNotFound);
  EXPECT_EQ(rig.port->set_max_frame(59).error().code, Code::kInvalidArgument);
  EXPECT_EQ(rig.port->set_max_frame(sim::kMaxFrameBytes + 1).error().code, Code::kInvalidArgument);
  const auto other = rig.nic->open_port({}, std::make_unique<ScriptedWire>());
  EXPECT_EQ(other->create_send_queue(rig.domain, *cq, 8).error().code, Code::kInvalidArgument);
  const auto rq = ok(rig.port->create_receive_queue(rig.domain, *cq, {.depth = 8}));
  EXPECT_EQ(other->steer({.rss = {.table = std::vector{rq.get()}}}).error().code,
            Code::kInvalidArgument);
  EXPECT_EQ(rig.nic->open_port({}).error().code, Code::kInvalidArgument);  // no wire factory
  std::vector<std::unique_ptr<hca::SendQueue>> queues;
  for (uint32_t i = 0; i < sim::kMaxQueues; ++i) {
    queues.push_back(ok(rig.port->create_send_queue(rig.domain, *cq, 8)));
  }
  EXPECT_EQ(rig.port->create_send_queue(rig.domain, *cq, 8).error().code, Code::kExhausted);
}

}  // namespace
}  // namespace nicmem::test
