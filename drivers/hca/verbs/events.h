// SPDX-License-Identifier: BSD-3-Clause
// A thread that waits for what happens to the device by itself.
#pragma once

#include <functional>
#include <memory>
#include <thread>

#include "base/result.h"
#include "drivers/hca/verbs/handles.h"
#include "hca/hca.h"

namespace nicmem::hca_verbs {

class EventThread {
 public:
  using Handler = std::function<void(hca::PortEvent)>;

  /// `context` outlives it. The handler is called by the thread, and not after the destructor.
  static Result<std::unique_ptr<EventThread>> start(ibv_context* context, Handler handler);
  ~EventThread();
  EventThread(const EventThread&) = delete;
  EventThread& operator=(const EventThread&) = delete;

 private:
  EventThread(ibv_context* context, Handler handler, int wake_fd)
      : context_(context), handler_(std::move(handler)), wake_fd_(wake_fd) {}
  void run();
  void take_events();

  ibv_context* context_;
  Handler handler_;
  int wake_fd_;  // readable: the thread ends
  std::thread thread_;
};

}  // namespace nicmem::hca_verbs
