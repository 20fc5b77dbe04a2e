// SPDX-License-Identifier: BSD-3-Clause
// The four orderings between driver and device, each named once. The driver's and the model's code
// use these; a test rebuilds both with one of them relaxed and wants ThreadSanitizer to object.
#pragma once

#include <atomic>

// What the driver reads of a completion comes after its owner bit.
#ifndef NM_CQE_OWNER_ACQUIRE
#define NM_CQE_OWNER_ACQUIRE std::memory_order_acquire
#endif
// What the driver wrote into receive WQEs comes before the record that posts them.
#ifndef NM_RQ_RECORD_RELEASE
#define NM_RQ_RECORD_RELEASE std::memory_order_release
#endif
// What the driver wrote into send WQEs comes before the record that posts them.
#ifndef NM_SQ_RECORD_RELEASE
#define NM_SQ_RECORD_RELEASE std::memory_order_release
#endif
// What the driver read of completions comes before the record that lets the device write them
// again.
#ifndef NM_CQ_CONSUMER_RELEASE
#define NM_CQ_CONSUMER_RELEASE std::memory_order_release
#endif
