// SPDX-License-Identifier: BSD-3-Clause
// The model on the bus of real time, and the one that can fail, compiled once.
#include "sim/nic.h"

namespace nicmem::sim {

template class BasicPort<CountingBus>;
template class BasicNic<CountingBus>;

template class BasicPort<FaultBus>;
template class BasicNic<FaultBus>;

namespace {
template <class Kind>
Result<std::unique_ptr<hca::Hca>> make(NicOptions options) {
  NM_TRY(std::unique_ptr<hca::Hca> nic, Kind::create(std::move(options)));
  return nic;
}
}  // namespace

Result<std::unique_ptr<hca::Hca>> make_nic(NicOptions options) {
  return options.faults == nullptr ? make<Nic>(std::move(options))
                                   : make<FaultyNic>(std::move(options));
}

}  // namespace nicmem::sim
