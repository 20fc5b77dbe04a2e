// SPDX-License-Identifier: BSD-3-Clause
// What probe.cc defines for the driver; these tests have no vdev.
#include "drivers/net/nicmem/log.h"

namespace nicmem::pmd {
int log_type = 0;
}
