#include "oracle.hpp"

namespace weir::model {

namespace {

/// What failed in a stream since it was last synchronised.
struct Poison {
  std::map<std::array<std::size_t, 2>, std::uint64_t> written, read;  ///< masks of words
  bool all = false;
  bool any = false;
  weir_status first = WEIR_STATUS_OK;
};

class Oracle {
 public:
  Oracle(const Program& program, const std::vector<bool>& cancelled)
      : program_(program), cancelled_(cancelled), poison_(program.streams.size()) {
    for (std::size_t buffer = 0; buffer < program.buffer_aliases.size(); ++buffer) {
      for (std::size_t word = 0; word < kWords; ++word) {
        result_.images[{buffer, 0}].words[word] = initial_word(buffer, word);
      }
    }
    result_.status.resize(program.steps.size(), WEIR_STATUS_OK);
    result_.reads.resize(program.steps.size());
  }

  Outcome run() {
    for (index_ = 0; index_ < program_.steps.size(); ++index_) {
      const Step& step = program_.steps[index_];
      if (step.kind == StepKind::host_synchronize) {
        result_.status[index_] = poison_[step.stream].first;
        poison_[step.stream] = {};
      } else if (step.enqueues()) {
        result_.status[index_] = enqueue(step);
      }
    }
    return std::move(result_);
  }

 private:
  weir_status enqueue(const Step& step) {
    if (cancelled_[index_]) return WEIR_STATUS_CANCELLED;
    Poison& poison = poison_[step.stream];
    if (poisoned(step, poison)) {
      note_failure(step, poison, WEIR_STATUS_POISONED);
      return WEIR_STATUS_POISONED;
    }
    if (step.fails) {
      note_failure(step, poison, WEIR_STATUS_KERNEL_ERROR);
      return WEIR_STATUS_KERNEL_ERROR;
    }
    if (step.kind == StepKind::compute) compute(step);
    if (step.kind == StepKind::transfer) transfer(step);
    return WEIR_STATUS_OK;
  }

  bool poisoned(const Step& step, const Poison& poison) const {
    for (const std::size_t event : step.events) {
      if (result_.status[event] != WEIR_STATUS_OK) return true;
    }
    const bool fifo = program_.streams[step.stream].policy == WEIR_DEPENDENCE_POLICY_FIFO;
    const bool orders_all = step.kind == StepKind::sync && step.scope != WEIR_SYNC_SCOPE_OPERANDS;
    if (poison.all || (poison.any && (fifo || orders_all))) return true;
    for (const Part& part : step.parts) {
      const std::array<std::size_t, 2> where{part.buffer, part.memory};
      const auto hits = [&](const auto& masks) {
        const auto found = masks.find(where);
        return found != masks.end() && (found->second & part.mask()) != 0;
      };
      if (hits(poison.written) || (part.writes() && hits(poison.read))) return true;
    }
    return false;
  }

  void note_failure(const Step& step, Poison& poison, weir_status status) {
    if (step.kind == StepKind::sync && step.scope == WEIR_SYNC_SCOPE_NOTHING) return;
    if (!poison.any) poison.first = status;
    poison.any = true;
    if (step.kind == StepKind::sync && step.scope == WEIR_SYNC_SCOPE_STREAM) poison.all = true;
    for (const Part& part : step.parts) {
      auto& masks = part.writes() ? poison.written : poison.read;
      masks[{part.buffer, part.memory}] |= part.mask();
    }
  }

  Image& image(const Part& part) { return result_.images[{part.buffer, part.memory}]; }

  void compute(const Step& step) {
    std::uint64_t read = 0;
    for (const Part& part : step.parts) {
      if (!part.reads()) continue;
      const Words& source = image(part).words;
      part.each_word([&](std::size_t word) {
        result_.reads[index_].push_back(source[word]);
        read = mix(read, source[word], step.key);
      });
    }
    for (const Part& part : step.parts) {
      if (!part.writes()) continue;
      Image& target = image(part);
      part.each_word([&](std::size_t word) {
        const std::uint64_t old = part.reads() ? target.words[word] : 0;
        target.words[word] = mix(old, read, step.key + word);
        target.writer[word] = index_;
        result_.producers.emplace_back(target.words[word], index_);
      });
    }
  }

  void transfer(const Step& step) {
    const auto from = step.parts[0].words(), to = step.parts[1].words();
    const Words& source = image(step.parts[0]).words;
    Image& target = image(step.parts[1]);
    for (std::size_t i = 0; i < from.size(); ++i) {
      target.words[to[i]] = source[from[i]];
      target.writer[to[i]] = index_;
    }
  }

  const Program& program_;
  const std::vector<bool>& cancelled_;
  std::vector<Poison> poison_;
  std::size_t index_ = 0;
  Outcome result_;
};

}  // namespace

Outcome run_sequentially(const Program& program, const std::vector<bool>& cancelled) {
  return Oracle(program, cancelled).run();
}

}  // namespace weir::model
