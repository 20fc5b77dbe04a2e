// SPDX-License-Identifier: BSD-3-Clause
// Every argument of the driver at its limits, and errors that name what is accepted. A port whose
// arguments are wrong does not come up and leaves nothing behind.
#include "drivers/net/nicmem/devargs.h"

#include <gtest/gtest.h>
#include <rte_bus_vdev.h>
#include <rte_ethdev.h>

#include "drivers/hca/sim/options.h"

namespace nicmem::test {
namespace {

/// The device's part and the model's part, as attach.cc puts them together.
Result<void> parse(const std::string& text) {
  NM_TRY(const pmd::Devargs args, pmd::parse_devargs(text));
  hca_sim::Options options;
  for (const auto& [key, value] : args.rest) {
    NM_TRY(const bool known, options.take(key, value));
    if (!known) return fail(Code::kInvalidArgument, "unknown " + key);
  }
  return {};
}

TEST(DriverDevargs, GoodValuesAreTaken) {
  for (const char* text : {"",
                           "hca=sim",
                           "mode=host",
                           "mode=split",
                           "mode=nicmem-noinline",
                           "mode=nicmem",
                           "header=18",
                           "header=19",
                           "header=511",
                           "header=512",
                           "split=auto",
                           "split=force",
                           "split=off",
                           "tx_inline=0",
                           "tx_inline=18",
                           "tx_inline=512",
                           "spill=sw",
                           "spill=hw",
                           "min_posted=auto",
                           "min_posted=8",
                           "min_posted=32768",
                           "guard=0",
                           "guard=1",
                           "promiscuous=0",
                           "promiscuous=1",
                           "device=a",
                           "mac=02:00:00:00:00:01",
                           "sram=4KiB",
                           "sram=4097",
                           "sram=128MiB",
                           "wire=gen",
                           "wire=loop",
                           "wire=pair:a",
                           "wire=ethdev:net_null0",
                           "cpu=any",
                           "cpu=none",
                           "cpu=0",
                           "cpu=4095",
                           "gen_size=60",
                           "gen_size=16384",
                           "gen_size=imix",
                           "gen_flows=1",
                           "gen_flows=1048576",
                           "gen_frames=0",
                           "gen_frames=18446744073709551615",
                           "gen_dst=10.0.0.0/8",
                           "gen_dst=10.0.0.1/32",
                           "gen_dst=10.0.0.1",
                           "gen_check=0",
                           "gen_check=1",
                           "rate=1",
                           "rate=1000000000",
                           "seed=0",
                           "fault=none",
                           "fault=allocation@1",
                           "fault=dma@2+",
                           "fault=completion@18446744073709551615+",
                           "fault=doorbell@18446744073709551615",
                           "mode=nicmem,,header=64",
                           "mode=nicmem,header=64,"}) {
    const auto parsed = parse(text);
    EXPECT_TRUE(parsed.has_value()) << text << ": " << parsed.error().what;
  }
}

struct Bad {
  const char* text;
  const char* accepted;  // part of the error
};

TEST(DriverDevargs, BadValuesAreErrorsThatNameKeyValueAndWhatIsAccepted) {
  const Bad all[] = {
      {"hca=card", "sim, verbs"},
      {"mode=fast", "host, split, nicmem-noinline, nicmem"},
      {"mode=", "host, split"},
      {"header=17", "18..512"},
      {"header=513", "18..512"},
      {"header=-1", "18..512"},
      {"header=18x", "18..512"},
      {"header=", "18..512"},
      {"header=99999999999999999999", "18..512"},
      {"split=on", "auto, force, off"},
      {"tx_inline=1", "18..512"},
      {"tx_inline=17", "18..512"},
      {"tx_inline=513", "512"},
      {"spill=card", "sw, hw"},
      {"min_posted=7", "auto, or 8..32768"},
      {"min_posted=32769", "auto, or 8..32768"},
      {"min_posted=full", "auto, or 8..32768"},
      {"min_posted=64,mode=host", "mode=nicmem"},
      {"spill=hw,min_posted=auto", "spill=sw"},
      {"guard=2", "0, 1"},
      {"promiscuous=yes", "0, 1"},
      {"device=", "a name"},
      {"mac=02:00:00:00:00", "unicast"},
      {"mac=01:00:00:00:00:01", "unicast"},
      {"mac=00:00:00:00:00:00", "unicast"},
      {"mac=02:00:00:00:00:01:02", "unicast"},
      {"sram=4095", "4KiB..128MiB"},
      {"sram=134217729", "4KiB..128MiB"},
      {"sram=", "sram"},
      {"sram=big", "sram"},
      {"wire=", "gen, loop, pair:NAME, ethdev:NAME"},
      {"wire=pair:", "pair:NAME"},
      {"wire=tap", "gen, loop"},
      {"cpu=4096", "0..4095"},
      {"cpu=some", "none"},
      {"gen_size=59", "60..16384"},
      {"gen_size=16385", "60..16384"},
      {"gen_size=large", "imix"},
      {"gen_flows=0", "1..1048576"},
      {"gen_flows=1048577", "1..1048576"},
      {"gen_frames=x", "0.."},
      {"gen_dst=10.0.0", "IPv4 prefix"},
      {"gen_dst=10.0.0.0/7", "8..32"},
      {"gen_dst=10.0.0.0/33", "8..32"},
      {"gen_check=2", "0..1"},
      {"rate=0", "1..1000000000"},
      {"rate=1000000001", "1..1000000000"},
      {"seed=-1", "0.."},
      {"fault=", "allocation@K, dma@K, completion@K, doorbell@K"},
      {"fault=dma", "dma@K"},
      {"fault=dma@", "dma@K"},
      {"fault=dma@0", "from 1"},
      {"fault=dma@-1", "from 1"},
      {"fault=dma@1-", "K+"},
      {"fault=dma@18446744073709551616", "from 1"},
      {"fault=none@1", "none"},
      {"fault=power@1", "completion@K"},
      {"mprq_en=1", "unknown"},  // DRV-02: there is no multi-packet receive to ask for
      {"header", "key=value"},
      {"=1", "unknown"},
      {"mode=host,mode=host", "twice"},
      {"sram=4KiB,sram=4KiB", "twice"},
  };
  for (const Bad& bad : all) {
    SCOPED_TRACE(bad.text);
    const auto parsed = parse(bad.text);
    ASSERT_FALSE(parsed.has_value());
    EXPECT_EQ(parsed.error().code, Code::kInvalidArgument);
    const std::string& what = parsed.error().what;
    EXPECT_NE(what.find(bad.accepted), std::string::npos) << what;
    const std::string text(bad.text);
    EXPECT_NE(what.find(text.substr(0, text.find('='))), std::string::npos) << what;
  }
}

TEST(DriverDevargs, InliningFollowsTheModeUnlessGiven) {
  const struct {
    const char* text;
    uint32_t inlined;
  } all[] = {{"", 128},
             {"mode=nicmem,header=64", 64},
             {"header=64,mode=nicmem", 64},
             {"mode=nicmem,tx_inline=0", 0},
             {"mode=nicmem-noinline", 0},
             {"mode=host", 0},
             {"mode=host,tx_inline=100", 100}};
  for (const auto& [text, inlined] : all) {
    const auto args = pmd::parse_devargs(text);
    ASSERT_TRUE(args.has_value()) << text;
    EXPECT_EQ(args->tx_inline_bytes, inlined) << text;
  }
}

TEST(DriverDevargs, APortWithWrongArgumentsDoesNotComeUp) {
  const uint16_t before = rte_eth_dev_count_avail();
  for (const char* text : {"colour=red", "mode=fast,cpu=none", "cpu=none,gen_size=1",
                           "cpu=none,wire=ethdev:no_such_port", "cpu=4095"}) {
    EXPECT_LT(rte_vdev_init("net_nicmem_bad", text), 0) << text;
    EXPECT_EQ(rte_eth_dev_count_avail(), before) << text;
  }
  ASSERT_EQ(rte_vdev_init("net_nicmem_bad", "cpu=none"), 0) << "the name is free again";
  EXPECT_EQ(rte_eth_dev_count_avail(), before + 1);
  EXPECT_EQ(rte_vdev_uninit("net_nicmem_bad"), 0);
}

/// Ports of one device agree on what belongs to it.
TEST(DriverDevargs, JoiningADeviceTakesTheSameDevice) {
  ASSERT_EQ(rte_vdev_init("net_nicmem_a", "cpu=none,device=one,sram=64KiB"), 0);
  for (const char* text :
       {"cpu=none,device=one,sram=128KiB", "cpu=any,device=one", "cpu=none,device=one,guard=1"})
    EXPECT_LT(rte_vdev_init("net_nicmem_b", text), 0) << text;
  EXPECT_EQ(rte_vdev_init("net_nicmem_b", "cpu=none,device=one"), 0);
  EXPECT_EQ(rte_vdev_uninit("net_nicmem_a"), 0);
  EXPECT_EQ(rte_vdev_uninit("net_nicmem_b"), 0);
  ASSERT_EQ(rte_vdev_init("net_nicmem_a", "cpu=none,device=one,sram=128KiB"), 0) << "gone";
  EXPECT_EQ(rte_vdev_uninit("net_nicmem_a"), 0);
}

}  // namespace
}  // namespace nicmem::test
