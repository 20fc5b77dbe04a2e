// SPDX-License-Identifier: BSD-3-Clause
// main() of the tests here: EAL without hugepages or devices, one lcore.
#include <gtest/gtest.h>
#include <rte_eal.h>
#include <unistd.h>

#include <iterator>
#include <string>

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string prefix = "driver_test" + std::to_string(getpid());
  const char* eal[] = {"driver_test",    "--no-huge",   "-m", "512",         "--no-pci",
                       "--no-telemetry", "-l",          "0",  "--log-level", "4",
                       "--file-prefix",  prefix.c_str()};
  if (rte_eal_init(static_cast<int>(std::size(eal)), const_cast<char**>(eal)) < 0) return 1;
  const int result = RUN_ALL_TESTS();
  rte_eal_cleanup();
  return result;
}
