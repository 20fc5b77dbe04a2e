/* SPDX-License-Identifier: BSD-3-Clause
 * What tests may do to the fake libibverbs beyond verbs. Found by dlsym: no program links it. */
#ifndef NM_FAKE_VERBS_H
#define NM_FAKE_VERBS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Steps the model of `device` ("mlx5_0"), which has cpu=none, by a budget of `frames` per port and
 * direction; returns how many it moved. */
size_t nm_fake_verbs_step(const char* device, uint32_t frames);

/* Live objects of a kind ("context", "pd", "mr", "dm", "cq", "wq", "rwq_ind_table", "qp", "flow",
 * "matcher", "counters", "comp_channel"), null: of all kinds. One whose destruction was called and
 * failed does not count. */
uint64_t nm_fake_verbs_live(const char* kind);
/* Objects that were live when their context was closed, which destroyed them. */
uint64_t nm_fake_verbs_leaked(void);

/* The k-th call from now on fails, k from 1; 0: none does. NM_FAKE_VERBS_FAIL does it from the
 * start. What fails: ENOMEM where an object was asked for, EIO else. */
void nm_fake_verbs_fail(uint64_t k);
/* Calls so far that could have failed. */
uint64_t nm_fake_verbs_calls(void);
/* The call that was made to fail last, or null. */
const char* nm_fake_verbs_failed(void);

/* Whether the process has CAP_NET_RAW, as far as the fake is concerned. */
void nm_fake_verbs_raw(int has);

/* "port_down", "port_up" (both only if the model runs), "fatal". 0, or an errno. */
int nm_fake_verbs_event(const char* device, const char* event);

/* The model's log of events; the device must have been given `fault=`. Returns its length. */
size_t nm_fake_verbs_log(const char* device, char* text, size_t size);

/* The largest frame that the port takes, without FCS: what an MTU is on a card. */
int nm_fake_verbs_max_frame(const char* device, uint32_t bytes);

#ifdef __cplusplus
}
#endif
#endif
