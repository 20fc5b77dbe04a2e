// SPDX-License-Identifier: BSD-3-Clause
// The model on the bus of real time, compiled once.
#include "sim/nic.h"

namespace nicmem::sim {

template class BasicPort<CountingBus>;
template class BasicNic<CountingBus>;

}  // namespace nicmem::sim
