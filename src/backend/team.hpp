// What a parallel kernel sees of the threads of its place.
#pragma once

#include <cstddef>

#include <weir/kernel.h>

/// The public weir_team. Contracts as in weir/kernel.h.
struct weir_team {
  virtual std::size_t size() const noexcept = 0;
  virtual void for_each(std::size_t count, std::size_t grain, weir_team_body body,
                        void* payload) = 0;
  virtual void run(weir_team_function function, void* payload) = 0;
  virtual void barrier() = 0;

 protected:
  ~weir_team() = default;
};

namespace weir::rt {

/// A team of the calling thread alone.
class SingleTeam final : public weir_team {
 public:
  std::size_t size() const noexcept override { return 1; }
  void for_each(std::size_t count, std::size_t, weir_team_body body, void* payload) override {
    if (count > 0) body(0, count, 0, payload);
  }
  void run(weir_team_function function, void* payload) override { function(this, 0, payload); }
  void barrier() override {}
};

}  // namespace weir::rt
