// Ranks of one process: one for the test, the others serve it, or all run the same program.
#pragma once

#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <weir/fabric.h>
#include <weir/rank.h>
#include <weir/weir.hpp>

namespace weir {

/// Runs `ranks` ranks, whose messages take ways inside the process. All except 0 serve, with the
/// kernels that `prepare` registers, until the fleet goes.
class Fleet {
 public:
  explicit Fleet(unsigned ranks, std::function<void(const Runtime&)> prepare = {})
      : prepare_(std::move(prepare)) {
    std::future<weir_fabric*> opened = fabric_.get_future();
    thread_ = std::thread([this, ranks] {
      weir_fabric_options options = WEIR_FABRIC_OPTIONS_INIT;
      options.transport = "inproc";
      status_ = weir_fabric_simulate(&options, ranks, run, this);
      if (status_ != WEIR_STATUS_OK) message_ = weir_last_error();
    });
    mine_ = opened.get();
  }
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;
  ~Fleet() { end(); }

  /// That of rank 0.
  weir_fabric* fabric() const noexcept { return mine_; }

  /// Ends it. Returns what went wrong in the ranks, "": nothing.
  std::string end() {
    if (thread_.joinable()) {
      over_.set_value();
      thread_.join();
    }
    return message_;
  }

 private:
  static weir_status run(weir_fabric* fabric, void* payload) {
    auto& fleet = *static_cast<Fleet*>(payload);
    if (weir_fabric_rank(fabric) > 0) return fleet.serve(fabric);
    fleet.fabric_.set_value(fabric);
    fleet.over_.get_future().wait();
    return WEIR_STATUS_OK;
  }

  weir_status serve(weir_fabric* fabric) const {
    weir_runtime_options options = WEIR_RUNTIME_OPTIONS_INIT;
    options.domains = "rank:*";
    options.fabric = fabric;
    const Runtime runtime(options);
    if (prepare_) prepare_(runtime);
    bool served = false;
    return weir_rank_serve(runtime.handle(), &served);
  }

  const std::function<void(const Runtime&)> prepare_;
  std::promise<weir_fabric*> fabric_;
  std::promise<void> over_;
  weir_fabric* mine_ = nullptr;
  weir_status status_ = WEIR_STATUS_OK;
  std::string message_;
  std::thread thread_;
};

/// Runs a program on two ranks. An exception of the program fails the test.
inline void on_two_ranks(std::function<void(weir_fabric*)> program) {
  const auto run = [](weir_fabric* fabric, void* payload) {
    try {
      (*static_cast<std::function<void(weir_fabric*)>*>(payload))(fabric);
      return WEIR_STATUS_OK;
    } catch (const std::exception& error) {
      ADD_FAILURE() << "rank " << weir_fabric_rank(fabric) << ": " << error.what();
      return WEIR_STATUS_INTERNAL;
    }
  };
  EXPECT_EQ(weir_fabric_simulate(nullptr, 2, run, &program), WEIR_STATUS_OK) << weir_last_error();
}

}  // namespace weir
