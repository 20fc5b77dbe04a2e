// SPDX-License-Identifier: BSD-3-Clause
#include "drivers/hca/verbs/events.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace nicmem::hca_verbs {
namespace {

/// EAL pins the thread that makes this one: it must not stay on that core.
void run_anywhere() {
  cpu_set_t all;
  std::memset(&all, 0xff, sizeof all);
  static_cast<void>(sched_setaffinity(0, sizeof all, &all));
}

}  // namespace

Result<std::unique_ptr<EventThread>> EventThread::start(ibv_context* context, Handler handler) {
  const int flags = fcntl(context->async_fd, F_GETFL);
  if (flags < 0 || fcntl(context->async_fd, F_SETFL, flags | O_NONBLOCK) < 0)
    return fail(Code::kSystem, std::string("events of the device: ") + std::strerror(errno), errno);
  const int wake_fd = eventfd(0, EFD_CLOEXEC);
  if (wake_fd < 0)
    return fail(Code::kSystem, std::string("eventfd: ") + std::strerror(errno), errno);
  std::unique_ptr<EventThread> made(new EventThread(context, std::move(handler), wake_fd));
  made->thread_ = std::thread([self = made.get()] { self->run(); });
  return made;
}

EventThread::~EventThread() {
  const uint64_t one = 1;
  static_cast<void>(!write(wake_fd_, &one, sizeof one));
  if (thread_.joinable()) thread_.join();
  close(wake_fd_);
}

void EventThread::run() {
  run_anywhere();
  std::array<pollfd, 2> fds{
      {{.fd = wake_fd_, .events = POLLIN, .revents = 0},
       {.fd = context_->async_fd, .events = POLLIN, .revents = 0}}};
  for (;;) {
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) return;
    if (fds[1].revents != 0) take_events();
  }
}

void EventThread::take_events() {
  ibv_async_event event{};
  while (ibv_get_async_event(context_, &event) == 0) {
    const ibv_event_type type = event.event_type;
    ibv_ack_async_event(&event);
    if (type == IBV_EVENT_PORT_ACTIVE || type == IBV_EVENT_PORT_ERR)
      handler_(hca::PortEvent::kLinkChanged);
    if (type == IBV_EVENT_DEVICE_FATAL) handler_(hca::PortEvent::kRemoved);
  }
}

}  // namespace nicmem::hca_verbs
